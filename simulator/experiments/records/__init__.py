"""Tables of records, simulated: which tables are drawn, and how near the estimates are to the truth.

run       the experiment
plots     error by table, and which fields go together
command   `ldp-simulate records`
"""
