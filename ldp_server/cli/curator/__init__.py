"""The commands of the curator: curator create | release | ledger | show | verify. They call no server.

commands   create, ledger, show, verify
releasing  release
tables     the tables that both print
"""
