"""What would be learned: of users, epsilon and the error, two are given, and the third is worked out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from starlette.responses import Response

from ldp_client.errors import InvalidSpec, LdpError
from ldp_client.protocol.domain import Attributes, Domain, Integers, Strings
from ldp_server.planning import Goal, Plan, QuestionKind, solve
from ldp_server.planning.promise import plan_in_words
from ldp_server.web.charts.dots import Dot, DotChart, dots
from ldp_server.web.figures import NARROW, WIDE
from ldp_server.web.gate import Visit

__all__ = ["KINDS", "Foreseen", "PlanChoices", "plan_page"]

KINDS: Mapping[str, tuple[str, str, int, int]] = {
    "frequencies": ("How many users hold each of a list of items", "Items", 1000, 1 << 24),
    "heavy-hitters": ("Which texts many users hold, without a list", "Longest text, in bytes", 8, 64),
    "average": ("The average of a number", "Largest number", 100, 1 << 40),
    "quantiles": ("Quantiles of a number", "Largest number", 1000, 1 << 24),
    "ranges": ("How many numbers lie in ranges", "Largest number", 1000, 1 << 24),
    "attributes": ("How many users hold each of some attributes", "Attributes", 8, 20),
    "pairs": ("How many users hold two attributes together", "Attributes", 8, 20),
}
"""What can be planned: in words, what its size is, the size to begin with, and the largest one."""
_SHARES = (0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
_DRAWN = {"frequencies", "attributes"}


@dataclass(frozen=True)
class PlanChoices:
    """What a reader wants to plan, as it was typed. An empty field is worked out."""

    kind: str = "frequencies"
    users: str = "100000"
    epsilon: str = "1"
    within: str = ""
    """In percent of the users; of an average, in the numbers' own unit."""
    size: str = ""
    per_day: str = ""


@dataclass(frozen=True)
class Foreseen:
    """What a plan says."""

    plan: Plan
    sentences: tuple[str, ...]
    chart: DotChart | None


async def plan_page(visit: Visit) -> Response:
    """The planning page: a form, and what would be seen."""
    choices = _read(visit.query)
    values: dict[str, Any] = {"choices": choices, "kinds": KINDS, "foreseen": None, "wide": None, "narrow": None}
    try:
        foreseen = await visit.site.call(_foresee, choices)
    except LdpError as error:
        return visit.page("plan", "plan", 400, problem=str(error), **values)
    if foreseen.chart is not None:
        values |= {"wide": dots(foreseen.chart, WIDE), "narrow": dots(foreseen.chart, NARROW)}
    return visit.page("plan", "plan", problem="", **{**values, "foreseen": foreseen})


def _read(given: Mapping[str, str]) -> PlanChoices:
    kind = given.get("kind", "frequencies")
    kind = kind if kind in KINDS else "frequencies"
    if not given:
        return PlanChoices(size=str(KINDS[kind][2]))
    texts = {name: given.get(name, "").strip()[:40] for name in ("users", "epsilon", "within", "size", "per_day")}
    if given.get("was", kind) != kind:
        texts["size"] = ""  # it was the size of another kind of question
    if "users" not in given and "epsilon" not in given:
        texts |= {"users": PlanChoices.users, "epsilon": PlanChoices.epsilon}
    return PlanChoices(kind, **{**texts, "size": texts["size"] or str(KINDS[kind][2])})


def _number(text: str, name: str, most: float) -> float | None:
    if not text:
        return None
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = float("nan")
    if not 0 < value <= most:
        raise InvalidSpec(f"{name} is a number above 0 and at most {most:,.12g}")
    return value


def _domain(kind: str, size: int) -> Domain:
    if kind == "heavy-hitters":
        return Strings(size)
    if kind in {"attributes", "pairs"}:
        return Attributes(tuple(f"attribute {i + 1}" for i in range(size)))
    return Integers(1, size) if kind == "frequencies" else Integers(0, size + 1)


@lru_cache(maxsize=64)  # a plan is the same for everybody who asks the same, and takes a fifth of a second
def _foresee(choices: PlanChoices) -> Foreseen:
    _, what, begin, most = KINDS[choices.kind]
    size = int(_number(choices.size, what.lower(), most) or begin)
    users = _number(choices.users, "users", 1e12)
    within = _number(choices.within, "the error", 1e12)
    if within is not None and choices.kind != "average":
        within /= 100
    goal = Goal(
        QuestionKind(choices.kind),
        _domain(choices.kind, size),
        None if users is None else int(users),
        choices.epsilon or None,
        within,
        per_day=_number(choices.per_day, "reports a day", 1e12),
    )
    plan = solve(goal)
    return Foreseen(plan, plan_in_words(plan), _chart(plan) if choices.kind in _DRAWN else None)


def _chart(plan: Plan) -> DotChart:
    """Items of round shares as they would be seen: what an answer prints at its expected counts."""
    rows = []
    for share in _SHARES:
        seen = solve(Goal(plan.goal.kind, plan.goal.domain, plan.users, plan.epsilon, share=share))
        low, high = (max(0.0, end * plan.users) for end in (seen.low, seen.high))
        rows.append(Dot(f"held by {share * 100:g}%", share * plan.users, low, high, "unsure" if low <= 0 else ""))
    return DotChart("What would be seen", rows)
