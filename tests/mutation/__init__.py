"""Mutation testing: change one thing in the source, run the tests that reach it, and see whether one of them fails.

`python -m tests.mutation --help` says how to run it; docs/mutation.md has the results.
"""
