"""serve, collect, answer, upkeep, config, watch, demo."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import StorageError
from ldp_server import __version__
from ldp_server.child import safe_command, safe_environment
from ldp_server.cli.main import cli
from ldp_server.cli.servers.pages_beside import pages_beside
from ldp_server.cli.servers.process import SWITCH_SECONDS, say_listening, set_up_process, started, told_to_stop
from ldp_server.config import SAMPLE, Config, load_config
from ldp_server.local_server import LocalServer
from ldp_server.samples import SAMPLES
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.logs import event
from ldp_server.service.metrics import watch_processes
from ldp_server.service.operators import LocalToken
from ldp_server.service.running import local_address, start_metrics, stop_when_input_ends
from ldp_server.service.sharing import ANSWER, COLLECT, SERVE, UPKEEP, Role
from ldp_server.store import DataDirectory
from ldp_server.store.engines import VARIABLE
from ldp_server.watch import ALERTS, DASHBOARD

__all__ = ["alerts", "answer", "collect", "dashboard", "demo", "print_config", "serve", "upkeep", "watch"]


_config = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration (see `ldp-server config`).",
)
_data = click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="LDP_SERVER_DATA",
    help="The data directory. [default: that of the configuration, or hearsay-data]",
)
_store = click.option(
    "--store",
    envvar=VARIABLE,
    metavar="ADDRESS",
    help="A store that several servers share, such as postgresql://hearsay@db/hearsay. [default: that of the "
    "configuration]",
)
_until = click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input is closed.")
_json = click.option("--json", "as_json", is_flag=True, help="Logs, and the line that says where it listens, as JSON.")
_listen = click.option("--listen", metavar="HOST:PORT", help="Where to listen; port 0: any free one.")


@cli.command()
@_config
@_data
@_store
@click.option("--listen", metavar="HOST:PORT", help="Where apps connect; port 0: any free one.")
@click.option("--web", metavar="HOST:PORT", help="Also serve pages for analysts there, as `ldp-server web` does.")
@_until
@_json
def serve(file: Path | None, **given: Any) -> None:
    """Run the server until it is told to stop (SIGTERM, Ctrl-C)."""
    config = _given(file, given)
    if given["web"] is not None:
        config = replace(config, web=replace(config.web, listen=given["web"]))
    _run(config, SERVE, given)


@cli.command()
@_config
@_store
@_listen
@_until
@_json
def collect(file: Path | None, **given: Any) -> None:
    """Run a collector: it takes batches for a store that several servers share, and keeps no files."""
    _run(_given(file, given), COLLECT, given)


@cli.command()
@_config
@_data
@_store
@_listen
@_until
@_json
def answer(file: Path | None, **given: Any) -> None:
    """Answer operators and analysts from a store that several servers share.

    Counts are kept in the data directory, so that they need not be made again; they may be lost.
    """
    config = _given(file, given)
    if given["listen"] is not None and config.analyst.listen:
        config = replace(config, analyst=replace(config.analyst, listen=given["listen"]))
    _run(config, ANSWER, given)


@cli.command()
@_config
@_data
@_store
@_until
@_json
def upkeep(file: Path | None, **given: Any) -> None:
    """Do what one server does for all that share a store: blocks, folding, retention.

    Several may run: one of them works, and another one goes on when it ends.
    """
    _run(_given(file, given), UPKEEP, given)


def _given(file: Path | None, given: Mapping[str, Any]) -> Config:
    """Return the configuration of the file, with what was given on the command line."""
    config = load_config(file) if file else Config()
    changes = {name: given[name] for name in ("data", "store") if given.get(name) is not None}
    config = replace(config, **changes)
    return config if given.get("listen") is None else config.with_listen(given["listen"])


def _run(config: Config, role: Role, given: Mapping[str, Any]) -> None:
    form = "json" if given["as_json"] else config.watch.log_format
    connections = config.limits.connections * (2 if config.analyst.listen else 1)
    set_up_process(config.watch.log_level, form, connections)
    sys.setswitchinterval(SWITCH_SECONDS)
    asyncio.run(_serve(config, role, as_json=given["as_json"], until_stdin_closes=given["until_stdin_closes"]))


async def _serve(config: Config, role: Role, *, as_json: bool, until_stdin_closes: bool) -> None:
    server = CollectionServer(config, role=role)
    async with started(server), _for_this_machine(config, server):
        if config.watch.metrics:
            watch_processes(server.metrics.registry, lambda: server.parts.worker.pid)
            start_metrics(config.watch.metrics, server.metrics.registry, server)
        _say_where(config, server, as_json=as_json)
        if until_stdin_closes:
            stop_when_input_ends(server)
        async with pages_beside(config, as_json=as_json):
            await told_to_stop(server)


@contextlib.asynccontextmanager
async def _for_this_machine(config: Config, server: CollectionServer) -> AsyncGenerator[None, None]:
    """Leave the address and a token for this machine's commands in the data directory, if analysts are answered."""
    access = server.parts.access
    if access is None:
        yield
        return
    directory = DataDirectory(config.data)
    token = LocalToken(directory, access)
    renewal: asyncio.Task[None] | None = None
    try:
        token.renew()
        renewal = asyncio.create_task(token.run())
        _local(config, server).write(directory)
        yield
    finally:
        directory.address.unlink(missing_ok=True)
        if renewal is not None:
            renewal.cancel()
        with contextlib.suppress(StorageError):  # they expire by themselves
            token.remove()


def _say_where(config: Config, server: CollectionServer, *, as_json: bool) -> None:
    """Say where the server listens, on standard output."""
    listening = {}
    if server.role.collects:
        listening["collector"] = local_address(config.collector.listen, server.port)
    if server.role.answers:
        listening["analyst"] = _local(config, server).address
    named = {"collector": "listening on {}", "analyst": "for operators on {}"}
    said = ", ".join(named[name].format(address) for name, address in listening.items()) or "ready"
    say_listening(listening, said, as_json=as_json)
    event(logging.INFO, "ready", version=__version__, **listening)


def _local(config: Config, server: CollectionServer) -> LocalServer:
    """Return what the commands of this machine read from the data directory."""
    certificate = config.tls.certificate
    return LocalServer(
        local_address(config.analyst.listen or config.collector.listen, server.analyst_port),
        None if certificate is None else str(certificate.resolve()),
        client_certificate=bool(config.analyst.client_ca if config.analyst.listen else config.collector.client_ca),
    )


@cli.command("config")
@click.option(
    "--role",
    type=click.Choice(list(SAMPLES)),
    help="Instead: a short sample for a server with this role. For all settings of a relay: ldp-server relay config.",
)
def print_config(role: str | None) -> None:
    """Print a commented configuration with every setting at its default."""
    sys.stdout.write(SAMPLES[role] if role else SAMPLE)


@cli.group()
def watch() -> None:
    """Print alert rules for Prometheus, or a dashboard for Grafana."""


@watch.command()
def alerts() -> None:
    """Print alert rules; Prometheus reads them from a file (`rule_files`)."""
    sys.stdout.write(ALERTS.read_text(encoding="utf-8"))


@watch.command()
def dashboard() -> None:
    """Print the dashboard as JSON; Grafana imports it from a file."""
    sys.stdout.write(DASHBOARD.read_text(encoding="utf-8"))


@cli.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def demo(options: tuple[str, ...]) -> None:
    """Run a server and simulated devices over real gRPC, and print what was learned beside the truth."""
    # The demo simulates users, and the server may not import the simulator. So the demo runs in a process of its own.
    command = safe_command("simulator.demo", *options)
    with subprocess.Popen(command, env=safe_environment()) as child:  # noqa: S603 - ours
        try:
            code = child.wait()
        except KeyboardInterrupt:
            code = child.wait()  # Ctrl-C reached the child process too; it stops its server and ends
            if code:
                raise
    sys.exit(code)
