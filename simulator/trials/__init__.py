"""Trials of a plan: its users, or those of a sample of one's own, through real packing.

goals     the options of `ldp-simulate plan --kind`
samples   a column of a CSV file as a domain and how many hold each item
trial     the runs, and whether the plan's promise was held
"""
