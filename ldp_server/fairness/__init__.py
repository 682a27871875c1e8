"""Whether groups are treated alike, from randomized answers.

gaps        shares of an outcome in each group, the differences between groups, and a verdict
leakage     how well one report tells two groups apart
bias        the largest gap that a map which treats similar people alike can have: an earth mover's distance
programmes  linear programmes of chances
named       losses and distances of named types
decisions   the best map that treats similar people alike, and one that treats two groups alike too
"""
