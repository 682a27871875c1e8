"""Commands that write a question's file. They call no server.

drafts      collection draft: from a wish to a file
averages, protected, sets    its kinds that have options of their own
compiling   collection compile: the best table of probabilities for a loss and a metric
"""
