"""Learning from randomized answers.

labels      rows whose features are known and whose label was randomized by a device: corrected weights for estimators
accuracy    how often a classifier is right, from randomized labels alone, with an interval
shares      shares of a table's cells among others of its cells, and differences of such shares, with intervals
rules       points, thresholds, stumps and rectangles that tell a field from others, out of a table of fields
line        linear regression out of a table
needed      how many users a rule takes
queries     statistical queries: fractions of users, from fresh users or from tables that are there
release     conjunctions and submodular functions, from statistical queries
"""
