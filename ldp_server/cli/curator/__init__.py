"""The commands of the curator: curator create | release | ledger | show | verify | forget. They call no server.

commands   create, ledger, show, verify, forget
releasing  release
tables     the tables that both print
"""
