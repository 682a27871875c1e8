"""The commands of the curator: create, release, merge, strategies, synthesize, ledger, show, verify, forget.

They call no server.

commands   create, ledger, show, verify, forget
releasing  release
merging    merge
fields     the options of releases about several fields
strategies     strategies
synthesizing   synthesize
both_sources   what volunteers add to `estimate` and `average`
tables     the tables that they print
"""
