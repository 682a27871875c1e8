"""Answers for people: estimates with intervals, numbers, and the choice of a mechanism."""
