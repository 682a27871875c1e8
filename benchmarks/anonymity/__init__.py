"""Measurements of what a relay does and is worth."""
