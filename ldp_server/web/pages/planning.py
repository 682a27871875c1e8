"""What would be learned: a plan for so many users, at this epsilon, over such answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ldp_client.errors import InvalidSpec, LdpError
from ldp_client.privacy.information import best_guess
from ldp_client.protocol.domain import Strings
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.answers.choose import Alternative, Kind, alternatives
from ldp_server.answers.words import whole
from ldp_server.heavy_hitters.planner import SketchPlan, plan
from ldp_server.oracles.base import two_sided
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.figures import NARROW, WIDE
from ldp_server.web.gate import Visit

__all__ = ["KINDS", "Foreseen", "PlanChoices", "plan_page"]

KINDS = {
    "frequencies": "How many users hold each of a list of items",
    "list": "Which texts many users hold, without a list",
    "attributes": "How many users hold each of some attributes",
    "average": "The average of a number",
    "quantiles": "Quantiles and a histogram of a number",
}
_SHARES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_MOST_USERS = 10**10


@dataclass(frozen=True)
class PlanChoices:
    """What a reader wants to plan."""

    kind: str = "frequencies"
    users: int = 100_000
    epsilon: str = "1"
    size: int = 1000
    """Items, numbers, attributes, or bytes of a text."""


@dataclass(frozen=True)
class Foreseen:
    """What a plan says."""

    sentences: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chart: DotChart | None = None


async def plan_page(visit: Visit) -> Response:
    """The planning page: a form, and what would be seen."""
    values: dict[str, Any] = {"choices": PlanChoices(), "foreseen": None, "wide": None, "narrow": None}
    try:
        choices = _read(visit)
        foreseen = await visit.site.call(_foresee, choices)
        values |= {"choices": choices, "foreseen": foreseen}
        if foreseen.chart is not None:
            values |= {"wide": dots(foreseen.chart, WIDE), "narrow": dots(foreseen.chart, NARROW)}
        return visit.page("plan", "plan", kinds=KINDS, problem="", **values)
    except LdpError as error:
        return visit.page("plan", "plan", 400, kinds=KINDS, problem=str(error), **values)


def _read(visit: Visit) -> PlanChoices:
    default, given = PlanChoices(), visit.query
    kind = given.get("kind", default.kind)
    if kind not in KINDS:
        raise InvalidSpec("choose what you want to learn")
    numbers = {}
    for name, most in (("users", _MOST_USERS), ("size", 1 << 24)):
        text = given.get(name, "").replace(",", "").strip() or str(getattr(default, name))
        if not text.isdigit() or not 1 <= int(text[:18]) <= most:
            raise InvalidSpec(f"{name} is a whole number from 1 to {most:,}")
        numbers[name] = int(text)
    epsilon = given.get("epsilon", "").strip() or default.epsilon
    Epsilon.parse(epsilon)
    most_of = {"attributes": 20, "list": 64}
    if kind in most_of and "size" not in given:
        numbers["size"] = 8
    if numbers["size"] > most_of.get(kind, 1 << 24):
        raise InvalidSpec(f"there are at most {most_of[kind]} of these here")
    return PlanChoices(kind, epsilon=epsilon, **numbers)


def _foresee(choices: PlanChoices) -> Foreseen:
    return _list(choices) if choices.kind == "list" else _numbers(choices)


def _privacy(choices: PlanChoices) -> str:
    guess = best_guess(choices.epsilon, 0.5)
    text = "Privacy: somebody who sees a report, and had two answers in mind as equally likely, guesses right with"
    return f"{text} {guess:.1%} at most."


def _list(choices: PlanChoices) -> Foreseen:
    found: SketchPlan = plan(choices.users, Strings(choices.size), choices.epsilon)
    sentences = [_privacy(choices), *found.promise.split("\n")]
    row = (found.mechanism, _parameters(found.parameters), f"{found.report_bits} bits")
    return Foreseen(tuple(sentences), ("mechanism", "parameters", "a report"), (row,))


def _numbers(choices: PlanChoices) -> Foreseen:
    kind = Kind(choices.kind)
    size = 1 << choices.size if kind is Kind.ATTRIBUTES else choices.size + 1
    found = alternatives(choices.users, size, choices.epsilon, kind)
    best = next(one for one in found if not one.yardstick)
    heads = ("mechanism", "parameters", "95% interval", "variance over the best known", "a report", "remark")
    return Foreseen(
        (_privacy(choices), *_said(choices, best)), heads, tuple(map(_row, found[:6])), _chart(choices, best)
    )


def _said(choices: PlanChoices, best: Alternative) -> list[str]:
    reach = two_sided(0.95) * best.standard_error
    share = reach / choices.users
    if choices.kind == "average":
        return [f"The average would be known to within ± {reach:,.4g}, in the worst case (95%)."]
    text = f"A share would be known to within ± {share:.2%} ({whole(reach)} of {whole(choices.users)} users, 95%)."
    more = f"Half this error takes {whole(4 * choices.users)} users, or about twice the epsilon while epsilon is small."
    if share > 0.5:
        more = "These are too few users to learn anything: ask more, or allow a larger epsilon."
    return [text, more]


def _row(one: Alternative) -> tuple[str, ...]:
    value = two_sided(0.95) * one.standard_error
    reach = f"± {whole(value)} {one.unit}" if one.unit else f"± {value:,.4g}"
    optimum = f"{one.variance_over_optimum:.3g}"
    size = "" if one.yardstick else f"{one.report_bits} bits"
    return (one.mechanism, _parameters(one.parameters), reach, optimum, size, one.remark)


def _parameters(parameters: dict[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in parameters.items())


def _chart(choices: PlanChoices, best: Alternative) -> DotChart | None:
    """Items of round shares as they would be seen: the interval around the truth."""
    if choices.kind not in {"frequencies", "attributes"}:
        return None
    reach = two_sided(0.95) * best.standard_error
    rows = []
    for share in _SHARES:
        held = share * choices.users
        low, high = max(0.0, held - reach), min(float(choices.users), held + reach)
        rows.append(Dot(f"held by {share * 100:g}%", held, low, high, "unsure" if held <= reach else ""))
    return DotChart("What would be seen", rows, noise=reach)
