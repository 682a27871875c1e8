"""The command line: `ldp-client`."""

from ldp_client.cli.main import main

__all__ = ["main"]
