"""Central releases about several fields of each person together: tables, averages, synthetic data.

universe    the cells of all fields, and the tables that are wanted
average     a count, a sum and a sum of squares, for the price of the sum
tables      every cell of every table, with noise: the classical baseline
"""
