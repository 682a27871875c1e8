"""Synthetic users: what would be learned, from how many, at what privacy; and whether it is true."""
