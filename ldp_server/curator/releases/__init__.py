"""The central mechanisms, one kind of release in each module.

A kind is a frozen dataclass: its parameters and its price are known before any record is looked at. Each docstring has
the theorem. tests/server/curator runs every one of them on small instances over all outcomes of its draws.
"""
