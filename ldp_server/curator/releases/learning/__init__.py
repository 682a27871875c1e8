"""Releases of a rule that tells labels: learned from people with some attributes and one label, 0 or 1.

labelled     what all of them share: the columns, the label
points       one item has the label 1 (A_dist)
cuts         numbers below a threshold have the label 1: any threshold, or one of a given list
labels       the same where only the label is private
rectangles   a box has the label 1
counted      from released counts to a rule
"""
