"""Releases whose price is about one attribute: texts of 0 and 1 with hundreds of characters, tables of attributes.

A change of one character of one person's text costs epsilon; a change of k of them at most k times that. Whole records
are protected less: each price has both figures.

bits            texts of 0 and 1 as arrays
tree            frequent texts, found from their parts; its noise and its loss
strings         frequent texts with their counts
shares          the distribution of texts
points          which text has the label 1
prefixes        from which text on the label is 1
projection      counts of people with k attributes, made consistent
mwem            a synthetic table from pairs of attributes
rules           which of some linear rules tells labels, also if a few attributes are changed
"""
