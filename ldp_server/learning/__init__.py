"""Learning from randomized answers.

labels      rows whose features are known and whose label was randomized by a device: corrected weights for estimators
accuracy    how often a classifier is right, from randomized labels alone, with an interval
rows        rows of known features out of CSV and Parquet, and their reports
trained     a model of such rows, with its accuracy on rows that it has not seen
tabled      a model of a live collection's table
saved       a fitted model as a file that is read without the library that fitted it
shares      shares of a table's cells among others of its cells, and differences of such shares, with intervals
rules       points, thresholds, stumps and rectangles that tell a field from others, out of a table of fields
line        linear regression out of tables of two fields
needed      how many users a rule takes
queries     statistical queries: fractions of users, from fresh users or from tables that are there
asked       the answers to queries about a live collection, as shares with intervals
release     conjunctions and submodular functions, from statistical queries
"""
