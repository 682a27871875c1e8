"""Hearsay's server: it takes reports, keeps them durably, and computes estimates from them. It never sees an item."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("hearsay")
except PackageNotFoundError:  # run from a checkout that was never installed
    __version__ = "0+checkout"
