"""Sealed records of volunteers, as the collection server keeps them: it cannot open one.

kept    the store, a file of its own: give, withdraw, and take for a release
"""
