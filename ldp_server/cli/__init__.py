"""The command line, `ldp-server`.

main         the group, exit codes, environment variables, and how errors become exit codes
connection   the options that say which server to call
servers      serve, collect, answer, upkeep, config, watch, demo; relay; web
collections  collection create | list | show | close | delete, compact
drafting     collection draft | compile
queries      estimate
questions    average, quantiles, ranges, attributes
fields       averages, map: about several fields of records at once
relations    gaps, rules, line, rules-plan, fair-map, learn, ask
over_time    periods, trend, change, compare, and the options that name periods
outputs      where an answer goes: a table, JSON, CSV, Parquet
exports      export, status
keys         key new | lock | list | retire
tokens       token create | list | revoke; key | issue-linkable; issuer, with its configuration, keys and secrets
local        doctor, backup, foreign
curator      curator create | release | ledger | show | verify
hitters      heavy-hitters, candidates
offline      offline count | decode: exported files, without a server
sharing      store create | ..., migrate, size
witness      follow the signed list of somebody's server
show         tables, JSON, progress; shapes: what the JSON of collections, tokens and checks looks like
passphrases  typed at the terminal, or read from a file; never an argument
"""

import os
import sys

from ldp_server.extra import server_extra

__all__ = ["main"]


def main() -> None:
    """Run `ldp-server`."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our own error says it in one line
    try:
        with server_extra("ldp-server"):
            from ldp_server.cli.main import run  # noqa: PLC0415 - a missing library is reported from here on

            run()
    except KeyboardInterrupt:
        sys.exit(130)
