"""Plots of answers, and what all plots of the project share (extra `plots`).

canvas    colours, letters, and the way from a figure to an SVG
glyphs    which of the installed fonts draw a text
rows      a row for each item, range or attribute: estimate and interval
numbers   histograms and quantiles
shares    groups that have an outcome, and errors of rules
pairs     a map of all pairs of attributes
areas     the tiles of a map
over_time values with bands, and differences
drawing   which plot an answer gets
"""
