"""Dictionaries from public texts: their words, and the likeliest words of a model of their characters."""
