"""Charts as SVG, drawn here: they need no script, print well, and hold the numbers of the answer.

draw        elements, scales and axes
dots        items with whiskers, sorted; thresholds, verdicts, and what noise alone shows
histogram   ranges with whiskers, and quantiles over them
heat        pairs of attributes
areas       the tiles of a map
lines       values over time
noise       how large an estimate noise alone makes
"""
