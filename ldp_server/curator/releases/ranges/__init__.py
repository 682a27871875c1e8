"""Releases of whole numbers from a range so large that its length counts: quantiles, interior points.

steps      a score that is constant on stretches of a range: its windows, its blocks, a draw from it
concave    RecConcave: a point of a large range with a large score
quantiles  quantiles and interior points by RecConcave
"""
