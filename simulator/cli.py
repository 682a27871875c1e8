"""The command line `ldp-simulate`, and how errors become exit codes.

0    done
2    bad input, explained in one line; or a library that is not installed
4    a server does not answer
5    a promise was not kept (`wire`: not exactly once; `plan --verify`: the error was larger than promised)
130  interrupted
"""

from __future__ import annotations

import sys

from ldp_client.errors import LdpError, Unavailable
from ldp_server.extra import server_extra

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command; an error is one line on standard error."""
    with server_extra("ldp-simulate"):
        code = _run(arguments)
    if arguments is None:
        sys.exit(code)
    return code


def _run(arguments: list[str] | None) -> int:
    import click  # noqa: PLC0415 - an app's machine has not got it

    from simulator.commands import group  # noqa: PLC0415 - as above

    try:
        outcome = group.main(arguments, prog_name="ldp-simulate", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stdout.write(error.format_message() + "\n")
        return 0
    except click.ClickException as error:
        return _failed(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return _failed("stopped", 130)
    except LdpError as error:
        return _failed(str(error), 4 if isinstance(error, Unavailable) else 2)
    except MemoryError:
        return _failed("not enough memory: use fewer processes or a smaller domain", 2)
    return outcome if isinstance(outcome, int) else 0


def _failed(reason: str, code: int) -> int:
    sys.stderr.write(f"ldp-simulate: {reason}\n")
    return code


if __name__ == "__main__":
    main()
