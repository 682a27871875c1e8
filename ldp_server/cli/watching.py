"""watch: the files for Prometheus and Grafana that belong to this version."""

from __future__ import annotations

import sys

from ldp_server.cli.main import cli
from ldp_server.watch import ALERTS, DASHBOARD

__all__ = ["alerts", "dashboard", "watch"]


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
