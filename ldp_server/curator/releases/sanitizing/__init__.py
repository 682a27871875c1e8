"""Releases that answer every question of a class, each up to a share of the people.

shares     how a budget is shared out over many draws
points     how many people hold an item, and how many hold one of k items
numbers    how many people have a number below a threshold, for all thresholds, without a list of cuts
"""
