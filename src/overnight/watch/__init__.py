"""Showing a run to a person: while it goes on, and when it is over."""
