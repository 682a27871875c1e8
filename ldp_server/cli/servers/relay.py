"""relay serve, relay check, relay status, relay config."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import click
from prometheus_client import ProcessCollector

from ldp_server import __version__
from ldp_server.cli.main import cli
from ldp_server.cli.servers.process import (
    SWITCH_SECONDS,
    check_line,
    print_checks,
    say_listening,
    set_up_process,
    started,
    told_to_stop,
    write_line,
)
from ldp_server.cli.shapes import StandingShape
from ldp_server.relay.assemble import RelayDirectory, RelayServer
from ldp_server.relay.checks import examine_relay, look, standing_line
from ldp_server.relay.config import SAMPLE, RelayConfig, load_relay_config
from ldp_server.service.logs import event
from ldp_server.service.running import local_address, start_metrics, stop_when_input_ends

__all__ = ["check", "print_relay_config", "relay", "serve", "status"]

_config_option = click.option(
    "--config",
    "file",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The relay's configuration (see `ldp-server relay config`).",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


@cli.group()
def relay() -> None:
    """Run a relay: it holds sealed reports, shuffles them, and passes at least so many together on.

    A relay and the collection server belong to different operators. With one operator for both, nobody is anonymous.
    """


@relay.command()
@_config_option
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="The data directory.")
@click.option("--listen", metavar="HOST:PORT", help="Where apps connect; port 0: any free one.")
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input is closed.")
@click.option("--json", "as_json", is_flag=True, help="Logs, and the line that says where it listens, as JSON.")
def serve(file: Path, data: Path | None, listen: str | None, until_stdin_closes: bool, as_json: bool) -> None:
    """Run the relay until it is told to stop (SIGTERM, Ctrl-C)."""
    config = load_relay_config(file)
    if data is not None:
        config = replace(config, data=data)
    if listen is not None:
        config = config.with_listen(listen)
    set_up_process(config.watch.log_level, "json" if as_json else config.watch.log_format, config.limits.connections)
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(_serve(config, as_json=as_json, until_stdin_closes=until_stdin_closes))


async def _serve(config: RelayConfig, *, as_json: bool, until_stdin_closes: bool) -> None:
    server = RelayServer(config)
    async with started(server):
        if config.watch.metrics:
            ProcessCollector(registry=server.metrics.registry)
            start_metrics(config.watch.metrics, server.metrics.registry, server)
        address = local_address(config.relay.listen, server.port)
        text = f"the relay listens on {address}, and passes on to {config.forward.collector}"
        say_listening({"relay": address}, text, as_json=as_json)
        event(logging.INFO, "ready", version=__version__, relay=address, collections=len(server.parts.served))
        if until_stdin_closes:
            stop_when_input_ends(server)
        await told_to_stop(server)


@relay.command()
@_config_option
@click.option("--connect/--no-connect", default=True, help="Ask the collection server for its list, or do not.")
@_json_option
def check(file: Path, connect: bool, as_json: bool) -> None:
    """Check a configuration, its keys and certificates, the data directory and the way to the collection server."""
    print_checks(examine_relay(file, connect=connect), write_line, as_json=as_json)


@relay.command()
@_config_option
@_json_option
def status(file: Path, as_json: bool) -> None:
    """Say for each collection what is held, what is on its way, and how long there were too few reports."""
    config = load_relay_config(file)
    found = look(RelayDirectory(config).log)
    for one in found:
        line = standing_line(one, config)
        if as_json:
            shape: StandingShape = {
                "id": one.id.hex(),
                "held": one.held,
                "on_their_way": one.outgoing,
                "smallest_batch": one.smallest_batch,
                "short_rounds": one.short,
                "warning": line.verdict == "warning",
            }
            write_line(json.dumps(shape))
        else:
            write_line(check_line(line))
    if not found and not as_json:
        write_line("no collection is served yet")


@relay.command("config")
def print_relay_config() -> None:
    """Print a commented configuration of a relay with every setting at its default."""
    sys.stdout.write(SAMPLE)
