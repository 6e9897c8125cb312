"""Values: what things are. No I/O, no clock, no decision. Python 3.9, standard library."""
