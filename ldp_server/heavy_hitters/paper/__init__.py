"""The decoder of the paper: argmax lists, spectral clusters and a list-recoverable code."""
