"""The price of the local model: what reports give where a curator's release gives the same answer.

question        what is asked, how reports answer it, and which kinds of release do
items           listed items, groups of them, and items that nobody has listed
numbers         averages, quantiles, ranges
fields          tables of several fields, and sets of them
labels          rules that tell a label
texts           texts of 0 and 1
every_release   the question of every kind of release
measure         errors over the number of people, and how many reports a volunteer is worth
command         `ldp-simulate price`
"""
