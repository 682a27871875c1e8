"""Answers to linear queries through a strategy: the matrix mechanism.

queries      conditions on fields as counts of cells
sensitivity  how far one person moves the rows of a strategy, exactly
strategies   rows that may be measured instead of the queries
optimised    weights of rows, and the best strategy for Gaussian noise
widths       how large a weighted sum of draws may be
plans        a strategy with its noise: the error of each query
answers      the release
"""
