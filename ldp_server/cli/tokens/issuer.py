"""token issuer, issuer-check, issuer-config, issuer-key, issuer-secret: the issuer of unlinkable tokens."""

from __future__ import annotations

import asyncio
import logging
import sys
from dataclasses import replace
from pathlib import Path

import click

from ldp_server import __version__
from ldp_server.cli.connection import json_option
from ldp_server.cli.servers.process import print_checks, say_listening, set_up_process, started, told_to_stop
from ldp_server.cli.show import lines, print_json
from ldp_server.cli.tokens.analysts import token
from ldp_server.issuer.checks import examine_issuer
from ldp_server.issuer.server import IssuerServer
from ldp_server.issuer.settings import SAMPLE, IssuerConfig, load_settings
from ldp_server.issuer.signing import make_key, make_secret
from ldp_server.service.logs import event
from ldp_server.service.running import local_address, start_metrics, stop_when_input_ends

__all__ = ["issuer", "issuer_check", "issuer_config", "issuer_key", "issuer_secret"]

_FILE = click.Path(path_type=Path, dir_okay=False)


@token.command()
@click.option("--config", "file", type=_FILE, required=True, help="The configuration (`token issuer-config`).")
@click.option("--listen", metavar="HOST:PORT", help="Where the back end connects; port 0: any free one.")
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input is closed.")
@click.option("--json", "as_json", is_flag=True, help="Logs, and the line that says where it listens, as JSON.")
def issuer(file: Path, listen: str | None, until_stdin_closes: bool, as_json: bool) -> None:
    """Run the issuer of unlinkable tokens until it is told to stop (SIGTERM, Ctrl-C).

    It belongs behind your log-in, and not onto the machine of the collection server.
    """
    config = load_settings(file)
    if listen is not None:
        config = replace(config, listen=listen)
    set_up_process(config.watch.log_level, "json" if as_json else config.watch.log_format, config.limits.connections)
    asyncio.run(_serve(config, as_json=as_json, until_stdin_closes=until_stdin_closes))


async def _serve(config: IssuerConfig, *, as_json: bool, until_stdin_closes: bool) -> None:
    server = IssuerServer(config)
    async with started(server):
        if config.watch.metrics:
            start_metrics(config.watch.metrics, server.metrics.registry, server)
        address = local_address(config.listen, server.port)
        say_listening({"issuer": address}, f"the issuer listens on {address}", as_json=as_json)
        event(logging.INFO, "ready", version=__version__, listening=address, keys=len(config.keys))
        if until_stdin_closes:
            stop_when_input_ends(server)
        await told_to_stop(server)


@token.command("issuer-check")
@click.option("--config", "file", type=_FILE, required=True, help="The configuration (`token issuer-config`).")
@json_option
def issuer_check(file: Path, as_json: bool) -> None:
    """Check a configuration, its keys, secrets and certificates, and the counts. Nothing is changed."""
    print_checks(examine_issuer(file), lines, as_json=as_json)


@token.command("issuer-config")
def issuer_config() -> None:
    """Print a commented configuration of the issuer with every setting at its default."""
    sys.stdout.write(SAMPLE)


@token.command("issuer-key")
@click.argument("file", type=_FILE)
@json_option
def issuer_key(file: Path, as_json: bool) -> None:
    """Make the issuer's RSA key in FILE (keep it) and FILE.pub.

    FILE belongs into the issuer's keys. FILE.pub belongs into your apps, and into the collection server's
    admission.unlinkable_token_keys.
    """
    made = make_key(file)
    if as_json:
        print_json({"private": str(file), "public": f"{file}.pub", "id": made.id.hex()})
    else:
        lines(f"{file} (keep it secret), {file}.pub", f"key id {made.id.hex()}")


@token.command("issuer-secret")
@click.argument("file", type=_FILE)
@json_option
def issuer_secret(file: Path, as_json: bool) -> None:
    """Make a secret in FILE, which your back end shows to the issuer."""
    make_secret(file)
    if as_json:
        print_json({"secret": str(file)})
    else:
        lines(f"{file} (keep it secret)")
