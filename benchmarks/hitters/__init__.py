"""Heavy hitters: what is found, how fast, with which guarantees, and under attack."""
