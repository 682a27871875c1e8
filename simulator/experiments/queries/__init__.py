"""Statistical queries: all conjunctions or disjunctions of some width, by rounds of asking and by tables.

run        the methods, each with its error against the truth
limits     what is proved about them
plots      the errors side by side
command    `ldp-simulate queries`
"""
