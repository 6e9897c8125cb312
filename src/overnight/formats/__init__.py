"""Translating between bytes of the outside and values of ours. Pure."""
