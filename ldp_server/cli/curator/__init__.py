"""The commands of the curator: curator create | release | merge | ledger | show | verify | forget. They call no server.

commands   create, ledger, show, verify, forget
releasing  release
merging    merge
tables     the tables that both print
"""
