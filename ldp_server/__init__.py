"""Hearsay's server: it takes reports, keeps them durably, and computes estimates from them. It never sees an item."""

from ldp_client import __version__

__all__ = ["__version__"]
