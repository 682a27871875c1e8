"""Answers about several fields of records at any number of reports: intervals for every look, and "did it change?".

sums      the sum of a score of each report, with a known mean for those who are counted and for everybody else
tables    the scores of the rows of a table of fields
areas     the scores of areas of a map
averages  the average of a number in a cell: a test of every average that it may be
"""
