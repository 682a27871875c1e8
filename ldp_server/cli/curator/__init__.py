"""The commands of the curator: curator create | release | merge | ledger | show | verify | forget. They call no server.

commands   create, ledger, show, verify, forget
releasing  release
merging    merge
both_sources   what volunteers add to `estimate` and `average`
tables     the tables that they print
"""
