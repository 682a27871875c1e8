"""Sets of items, simulated: the items' estimates beside the truth, and what the cut of large sets did.

run       the experiment
plots     the items' truth and intervals
command   `ldp-simulate sets`
"""
