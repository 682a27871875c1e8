"""curator strategies: which strategy answers some queries with the smallest error. No record is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import click
import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import FieldItems
from ldp_server.answers.to_json import item_json
from ldp_server.cli.connection import json_option
from ldp_server.cli.curator.commands import curator
from ldp_server.cli.curator.fields import query_options, wish_of
from ldp_server.cli.show import busy, item_text, lines, print_json, table, whole
from ldp_server.curator.prices import decimal
from ldp_server.curator.releases.base import BETA
from ldp_server.curator.workloads.matrix.plans import StrategyPlan, gaussian_bound, plans
from ldp_server.curator.workloads.matrix.queries import LinearQueries

__all__ = ["StrategiesShape", "strategies"]

_SHOWN = 60


class StrategyShape(TypedDict):
    """One strategy of `StrategiesShape`."""

    strategy: str
    rows: int
    error: float
    """The root of the mean squared error of all queries, in people."""
    largest_error: float


class StrategiesShape(TypedDict):
    """`ldp-server curator strategies --json`."""

    queries: list[dict[str, Any]]
    """Each query with the standard error and half the interval that the best strategy gives."""
    strategies: list[StrategyShape]
    bound: float | None
    """No strategy with Gaussian noise has a smaller error; None with Laplace noise, or where it is not known."""


@curator.command()
@query_options
@click.option(
    "--collection", type=click.Path(path_type=Path, dir_okay=False), help="Take the fields of this collection."
)
@click.option("--epsilon", help="The price of the release, as a pure epsilon.")
@click.option("--rho", help="The price of the release as a rho: Gaussian noise.")
@json_option
def strategies(as_json: bool, **given: Any) -> None:
    """Compare the strategies for a release of the kind linear: the error of each query, before any record is read.

    It costs nothing. The release takes the first strategy of the list, or that of its --strategy.
    """
    prices = {name: None if given[name] is None else decimal(given[name], f"--{name}") for name in ("epsilon", "rho")}
    if (prices["epsilon"] is None) == (prices["rho"] is None):
        raise InvalidSpec("give the price of the release: --epsilon, or --rho for Gaussian noise")
    wish = wish_of("linear", "laplace" if prices["rho"] is None else "gaussian", given, prices)
    with busy("reading the queries", quiet=as_json) as say:
        asked = wish.asked
        found = plans(asked, wish.paid, say)
        say("intervals")
        widths = found[0].widths(BETA)
        bound = None if prices["rho"] is None else gaussian_bound(asked, prices["rho"])
    if as_json:
        print_json(dict(_shape(asked, found, widths, bound)))
    else:
        _show(asked, found, widths, bound)


def _shape(
    asked: LinearQueries, found: list[StrategyPlan], widths: list[float], bound: float | None
) -> StrategiesShape:
    errors = np.sqrt(found[0].variances).tolist()
    return {
        "queries": [
            {"item": item_json(query.item), "standard_error": error, "half_width": width}
            for query, error, width in zip(asked.queries, errors, widths, strict=True)
        ],
        "strategies": [
            {"strategy": plan.name, "rows": len(plan.rows), "error": plan.error, "largest_error": _largest(plan)}
            for plan in found
        ],
        "bound": bound,
    }


def _largest(plan: StrategyPlan) -> float:
    return float(np.sqrt(plan.variances.max()))


def _show(asked: LinearQueries, found: list[StrategyPlan], widths: list[float], bound: float | None) -> None:
    title = f"Strategies for {whole(len(asked.queries))} queries"
    columns = [("strategy", ""), ("rows", "right"), ("error of a query", "right"), ("largest", "right")]
    cells = [(plan.name, whole(len(plan.rows)), f"{plan.error:.4g}", f"{_largest(plan):.4g}") for plan in found]
    table(title, columns, cells)
    if bound is not None:
        lines(f"no strategy with Gaussian noise has a smaller error than {bound:.4g}")
    errors = np.sqrt(found[0].variances).tolist()
    heads = [("query", ""), ("standard error", "right"), ("95% interval", "right")]
    named = [item_text(one.item) if isinstance(one.item, FieldItems) else str(one.item) for one in asked.queries]
    rows = list(zip(named, errors, widths, strict=True))[:_SHOWN]
    table(f"Queries, with {found[0].name}", heads, [(name, f"{e:.4g}", f"+- {w:.4g}") for name, e, w in rows])
    if len(asked.queries) > _SHOWN:
        lines(f"{whole(len(asked.queries) - _SHOWN)} more queries: --json has all of them")
    lines("Errors are numbers of people, by the noise alone.")
