"""Theorem 3.13 beside Theorem 3.3: the error against the failure probability, down to 10^-4."""
