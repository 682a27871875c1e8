"""Synthetic records, made where the analyst is: `records`."""
