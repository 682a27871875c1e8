"""The command line, `ldp-server`.

main         the group, exit codes, environment variables, and how errors become exit codes
connection   the options that say which server to call
serving      serve, config, demo
collections  collection create | list | show | close | delete, compact
queries      estimate, heavy-hitters
exports      export, status
tokens       token create | list | revoke | key | issue
local        doctor, backup
show         tables, JSON, progress
"""

import os
import sys

from ldp_server.extra import server_extra

__all__ = ["main"]


def main() -> None:
    """Run `ldp-server`."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what gRPC would write is said in one line of our own
    try:
        with server_extra("ldp-server"):
            from ldp_server.cli.main import load, run  # noqa: PLC0415 - only now is it known whether they can be

            load()
        run()
    except KeyboardInterrupt:
        sys.exit(130)
