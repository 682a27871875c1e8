"""The command line, `ldp-server`.

main         the group, exit codes, and how errors become them
connection   reaching a server: address, TLS, token
serving      serve, config, demo
collections  collection create | list | show | close | delete, compact
queries      estimate, heavy-hitters, export
tokens       token create | list | revoke | key | issue
local        doctor, backup
show         tables and JSON
"""

from ldp_server.cli.main import main

__all__ = ["main"]
