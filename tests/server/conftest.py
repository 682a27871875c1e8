"""Fixtures that the tests of several folders share."""

from tests.server.postgres import postgres

__all__ = ["postgres"]
