"""Central releases about several fields of each person together: tables, averages, synthetic data.

universe    the cells of all fields, and the tables that are wanted
average     a count, a sum and a sum of squares, for the price of the sum
tables      every cell of every table, with noise: the classical baseline
fourier     tables of yes/no fields by their parities
mwem        tables out of a distribution that is fitted to those that were known worst
online      cells one after the other, of which only those that a fit gets wrong cost (PMW)
matrix      linear queries of one's own, through the strategy that errs least
knorm       counts of overlapping groups of items: the K-norm mechanism
fit         the distribution that fits noisy tables: post-processing
synthetic   made-up people whose tables are like those of a release: post-processing
kinds       from a wish to a mechanism
"""
