"""Sums over reports whose probabilities stand in a table: exact laws, saddlepoints, and the intervals that follow."""
