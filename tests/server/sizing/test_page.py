"""docs/sizing.md: its tables are what the program works out today."""

from __future__ import annotations

import json
from itertools import pairwise

from ldp_server.sizing.deployment import Load, sized
from ldp_server.sizing.figures import MEASURED, read_figures
from tests.server.helpers import ROOT

PAGE = ROOT / "docs" / "sizing.md"


def unit_costs() -> list[str]:
    """The rows of the table of unit costs."""
    found = []
    for line in MEASURED.read_text("utf-8").splitlines():
        row = json.loads(line)
        found.append(f"| {row['name']} | {row['value']:,.4g} {row['unit']} |" if row["value"] < 1e6 else
                     f"| {row['name']} | {row['value'] / 1e6:,.3g} million {row['unit']} |")  # fmt: skip
    return found


def deployments() -> list[str]:
    """The rows of the table of deployments: phones behind a proxy, phones alone, gateways."""
    found, figures = [], read_figures(MEASURED)
    for users in (1e6, 1e7, 1e8, 1e9):
        for who, load in (
            ("phones, a proxy ends TLS", Load(users)),
            ("phones, collectors end TLS", Load(users, own_connections=True)),
            ("gateways, 1,000 in a batch", Load(users, reports_of_a_batch=1000)),
        ):
            one = sized(load, figures)
            found.append(
                f"| {users:,.0f} | {who} | {one.collectors} | {one.database_cores:,.1f} "
                f"| {one.database_memory_gb:,.0f} GB | {one.database_disk_gb:,.0f} GB "
                f"| {one.log_gb_a_day:,.1f} GB | {one.log_mb_a_second:,.1f} MB/s | {one.cores} |"
            )
    return found


def in_order(rows: list[str]) -> bool:
    lines = PAGE.read_text("utf-8").splitlines()
    places = [lines.index(row) for row in rows if row in lines]
    return len(places) == len(rows) and all(b == a + 1 for a, b in pairwise(places))


def test_the_table_of_unit_costs_is_that_of_the_shipped_figures():
    assert in_order(unit_costs()), "\n".join(unit_costs())


def test_the_table_of_deployments_is_what_the_command_works_out():
    assert in_order(deployments()), "\n".join(deployments())
