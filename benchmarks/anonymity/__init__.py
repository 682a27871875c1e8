"""Measurements of what a relay and sealed reports cost and are worth."""
