"""Synthetic users: which item each of them holds."""
