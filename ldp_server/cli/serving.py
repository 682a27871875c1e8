"""serve, config, watch, demo."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
from prometheus_client import disable_created_metrics

from ldp_client.errors import StorageError
from ldp_server import __version__
from ldp_server.child import safe_command, safe_environment
from ldp_server.cli.main import cli
from ldp_server.cli.pages_beside import pages_beside
from ldp_server.config import SAMPLE, Config, load_config
from ldp_server.local_server import LocalServer
from ldp_server.service.assemble import CollectionServer
from ldp_server.service.logs import event, set_up_logs
from ldp_server.service.metrics import watch_processes
from ldp_server.service.operators import LocalToken
from ldp_server.service.running import allow_files, local_address, start_metrics, stop_when_input_ends
from ldp_server.store import DataDirectory
from ldp_server.watch import ALERTS, DASHBOARD

__all__ = ["alerts", "dashboard", "demo", "print_config", "serve", "watch"]

_SWITCH_SECONDS = 0.0005
"""After how many seconds a thread must give up the interpreter: short, because the writer thread waits while the event
loop runs."""


@cli.command()
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration (see `ldp-server config`).",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="LDP_SERVER_DATA",
    help="The data directory. [default: that of the configuration, or hearsay-data]",
)
@click.option("--listen", metavar="HOST:PORT", help="Where apps connect; port 0: any free one.")
@click.option("--web", metavar="HOST:PORT", help="Also serve pages for analysts there, as `ldp-server web` does.")
@click.option("--until-stdin-closes", is_flag=True, help="Also stop when standard input is closed.")
@click.option("--json", "as_json", is_flag=True, help="Logs, and the line that says where it listens, as JSON.")
def serve(
    file: Path | None,
    data: Path | None,
    listen: str | None,
    web: str | None,
    until_stdin_closes: bool,
    as_json: bool,
) -> None:
    """Run the server until it is told to stop (SIGTERM, Ctrl-C)."""
    config = load_config(file) if file else Config()
    if data is not None:
        config = replace(config, data=data)
    if listen is not None:
        config = config.with_listen(listen)
    if web is not None:
        config = replace(config, web=replace(config.web, listen=web))
    form = "json" if as_json else config.watch.log_format
    set_up_logs(config.watch.log_level, form)
    sys.setswitchinterval(_SWITCH_SECONDS)
    # Otherwise each counter has a second series, the time at which it was made.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    os.umask(0o077)  # files are readable by their owner only, whatever the directory's mode is
    allow_files(config.limits.connections * (2 if config.analyst.listen else 1))
    asyncio.run(_serve(config, as_json=as_json, until_stdin_closes=until_stdin_closes))


async def _serve(config: Config, *, as_json: bool, until_stdin_closes: bool) -> None:
    server = CollectionServer(config)
    server.stop_on_signals()
    await server.start()
    directory = DataDirectory(config.data)
    token = LocalToken(directory, server.parts.access)
    renewal: asyncio.Task[None] | None = None
    try:
        token.renew()
        renewal = asyncio.create_task(token.run())
        local = _local(config, server)
        local.write(directory)
        if config.watch.metrics:
            watch_processes(server.metrics.registry, lambda: server.parts.worker.pid)
            start_metrics(config.watch.metrics, server.metrics.registry, server)
        listening = {"collector": local_address(config.collector.listen, server.port), "analyst": local.address}
        if as_json:
            sys.stdout.write(json.dumps({"listening": listening, "version": __version__, "pid": os.getpid()}) + "\n")
        else:
            sys.stdout.write(f"listening on {listening['collector']}, for operators on {local.address}\n")
        sys.stdout.flush()
        event(logging.INFO, "ready", version=__version__, **listening)
        if until_stdin_closes:
            stop_when_input_ends(server)
        async with pages_beside(config, as_json=as_json):
            await server.wait()
            event(logging.INFO, "draining")
    finally:
        directory.address.unlink(missing_ok=True)
        if renewal is not None:
            renewal.cancel()
        with contextlib.suppress(StorageError):  # they expire by themselves
            token.remove()
        await server.stop()
        event(logging.INFO, "stopped")
    if server.failure is not None:
        raise server.failure


def _local(config: Config, server: CollectionServer) -> LocalServer:
    """Return what the commands of this machine read from the data directory."""
    certificate = config.tls.certificate
    return LocalServer(
        local_address(config.analyst.listen or config.collector.listen, server.analyst_port),
        None if certificate is None else str(certificate.resolve()),
        client_certificate=bool(config.analyst.client_ca if config.analyst.listen else config.collector.client_ca),
    )


@cli.command("config")
def print_config() -> None:
    """Print a commented configuration with every setting at its default."""
    sys.stdout.write(SAMPLE)


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
