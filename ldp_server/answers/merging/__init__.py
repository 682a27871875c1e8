"""One answer from two sources: volunteers, who gave a curator raw answers, and everybody else's randomized reports.

cohorts    shares of items and of cells of tables, weighed by their variances; whether the two sources disagree
averages   the same for the average of numbers
reweighed  volunteers who are made to be like everybody else in some fields
asked      what has to be asked of the reports so that they answer the same questions as a release
released   the rows of a release as counts with what is known of their errors
sources    what a release and an answer say, as cohorts
chances    how far a merged share may be off
signed     a curator's release as signed bytes, and the check of its signature

Nothing here has a raw answer or a key that opens one: a merge is about two published things.
"""
