"""Tables of the fields of records, out of what the devices were asked.

state      counts of the reports about each of several tables
sources    which counts know something about a table that is asked for, and with which law
view       such a table as an oracle: estimates of its cells, of slices and of sums, with errors and intervals
mixture    the law of a sum of reports about several tables, inverted to intervals
"""
