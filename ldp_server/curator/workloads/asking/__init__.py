"""Answers to many sets of fields after some were asked: an oracle of statistical queries, and what learns from it.

oracle   counts with noise, one query after the other, up to a number that is paid for
sets     how many people hold any of a set of fields, for all sets
"""
