"""Watching a server: traces of calls and background work, alert rules for Prometheus, a dashboard for Grafana.

spans            traces through OpenTelemetry (the extra `otel`)
alerts.yml       alert rules; `ldp-server watch alerts` prints them
dashboard.json   the dashboard; `ldp-server watch dashboard` prints it

The metrics that rules and dashboard read are made in ldp_server/service/metrics.py.
"""

from pathlib import Path

from ldp_server.watch.spans import Span, Spans, spans_to

__all__ = ["ALERTS", "DASHBOARD", "Span", "Spans", "spans_to"]

ALERTS = Path(__file__).parent / "alerts.yml"
DASHBOARD = Path(__file__).parent / "dashboard.json"
