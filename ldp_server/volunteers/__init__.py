"""Sealed records of volunteers, as the collection server keeps them: it cannot open one.

interface   what a store of them does: give, withdraw, and take for a release
kept        a file in the data directory of one server
shared      on PostgreSQL, for several servers
opening     which of the two
"""
