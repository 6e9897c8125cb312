"""Deciding. Pure machines and functions: no I/O, no clock, no randomness, no logging."""
