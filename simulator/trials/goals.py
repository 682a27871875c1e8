"""The options of `ldp-simulate plan --kind`, as a goal, and its line of JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Attributes, Domain, Integers
from ldp_server.planning import Goal, Plan, QuestionKind
from ldp_server.planning.promise import plan_in_words
from ldp_server.planning.volunteers import VolunteersWish, outlook_of_plan, volunteers_in_words
from simulator.population.naming import parse_domain
from simulator.shapes import GoalRow
from simulator.trials.samples import read_sample
from simulator.trials.trial import PlanTrial

__all__ = ["GoalOptions", "goal_options", "row", "verify"]

_NUMBERS = (QuestionKind.AVERAGE, QuestionKind.QUANTILES, QuestionKind.RANGES)
_SETS = (QuestionKind.ATTRIBUTES, QuestionKind.PAIRS)
_RANGE = re.compile(r"(-?[0-9]{1,18}):(-?[0-9]{1,18})")


@dataclass(frozen=True)
class GoalOptions:
    """What is wanted, as given on the command line."""

    kind: QuestionKind
    within: float | None
    share: float | None
    change: bool
    missing: bool
    per_day: float | None
    integers: str | None
    data: Path | None
    column: str | None
    volunteers: str | None
    volunteer_epsilon: str | None
    said: frozenset[str]
    """Which of "users" and "epsilon" were given."""

    @property
    def wish(self) -> VolunteersWish | None:
        """Which shares of volunteers the promise is to speak of."""
        return VolunteersWish.of_options(self.volunteers, self.volunteer_epsilon)

    def goal(self, options: Any) -> Goal:
        """Return the goal: with --within, what was not given of users and epsilon is left open."""
        users: int | None = options.users
        epsilon: str | None = options.epsilon
        if self.within is not None and self.said != {"users", "epsilon"}:
            if "users" in self.said:
                epsilon = None
            else:
                users = None
        domain, sample = self._asked(options.domain)
        more = {} if options.memory is None else {"memory": options.memory}
        return Goal(
            self.kind,
            domain,
            users,
            epsilon,
            self.within,
            share=self.share,
            change=self.change,
            missing=self.missing,
            per_day=self.per_day,
            sample=sample,
            **more,
        )

    def _asked(self, domain: str | None) -> tuple[Domain, tuple[float, ...] | None]:
        between = None if self.integers is None else _between(self.integers)
        if (self.data is None) != (self.column is None):
            raise InvalidSpec("--data goes with --column: the name of the column to plan for")
        if self.data is not None and self.column is not None:
            found = read_sample(self.data, self.column, self.kind, between)
            return found.domain, found.counts
        if between is not None:
            return Integers(between[0], between[1] - between[0] + 1), None
        asked = parse_domain(domain or "1024")
        if self.kind in _SETS:
            k = asked.size.bit_length() - 1
            if asked.size != 1 << k:
                raise InvalidSpec("k attributes have a domain of 2^k sets: give --domain 8 for three")
            return Attributes(tuple(f"attribute {i + 1}" for i in range(k))), None
        if self.kind in _NUMBERS and isinstance(asked, Integers):
            return Integers(0, asked.count), None
        return asked, None


def _between(text: str) -> tuple[int, int]:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) >= int(found[2]):
        raise InvalidSpec("a range of numbers is written FIRST:LAST, such as 0:1440")
    return int(found[1]), int(found[2])


_OPTIONS = (
    click.option("--kind", type=click.Choice([kind.value for kind in QuestionKind]), help="Plan one question."),
    click.option("--within", type=float, help="With --kind: the error wanted (docs/planning.md says of what)."),
    click.option("--share", type=float, help="With --kind: plan for an item or attribute of this share."),
    click.option("--change", is_flag=True, help="With --kind: plan for the change between two periods."),
    click.option("--missing", is_flag=True, help="With --kind average: some users have no number."),
    click.option("--per-day", type=float, metavar="N", help="With --kind: reports a day, for days."),
    click.option("--integers", metavar="FIRST:LAST", help="With --kind: the domain of numbers."),
    click.option("--data", type=click.Path(path_type=Path, dir_okay=False), help="With --kind: your own CSV file."),
    click.option("--column", metavar="NAME", help="The column of --data with what people hold."),
    click.option(
        "--volunteers",
        metavar="SHARES",
        help="With --kind frequencies, average: also with so many volunteers to a curator (0.01,0.05).",
    ),
    click.option(
        "--volunteer-epsilon", metavar="EPSILON", help="The price of the curator's release. [default: as of a report]"
    ),
)


def goal_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a goal, in its parameter `goal`: None without --kind."""

    @wraps(command)
    def gathering(**given: Any) -> Any:
        taken = {one.name: given.pop(one.name) for one in fields(GoalOptions) if one.name != "said"}
        context = click.get_current_context()
        said = {name for name in ("users", "epsilon") if _was_said(context, name)}
        if taken["kind"] is None:
            if any(value not in (None, False) for value in taken.values()):
                raise InvalidSpec("--within, --share, --change, --data, --volunteers and the like go with --kind")
            return command(goal=None, **given)
        taken["kind"] = QuestionKind(taken["kind"])
        return command(goal=GoalOptions(**taken, said=frozenset(said)), **given)

    for option in reversed(_OPTIONS):
        gathering = option(gathering)
    return gathering


def _was_said(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not ParameterSource.DEFAULT


def row(plan: Plan, wish: VolunteersWish | None = None) -> GoalRow:
    """Return a plan as its line, with what volunteers would be worth if that was asked."""
    found = _plain(plan)
    if wish is not None:
        both = outlook_of_plan(plan, wish.shares, wish.epsilon or plan.epsilon)
        found["promise"] += volunteers_in_words(both, shares=bool(plan.unit))
        found["volunteers"] = [asdict(one) for one in both]
    return found


def _plain(plan: Plan) -> GoalRow:
    return {
        "kind": plan.goal.kind.value,
        "solved": plan.solved,
        "mechanism": plan.mechanism,
        "parameters": plan.parameters,
        "users": plan.users,
        "epsilon": plan.epsilon,
        "within": plan.within,
        "standard_error": plan.standard_error,
        "smallest_share": plan.smallest_share,
        "report_bytes": plan.report_bytes,
        "memory_bytes": plan.memory_bytes,
        "seconds": plan.seconds,
        "users_for_half": plan.users_for_half,
        "days": plan.days,
        "promise": list(plan_in_words(plan)),
    }


def verify(line: GoalRow, trial: PlanTrial) -> bool:
    """Add to a line what came out, and return whether the promise was held."""
    line["runs"] = trial.runs
    line["printed_error"] = trial.printed_error
    line["measured_error"] = trial.measured_error
    line["coverage"] = trial.coverage
    line["error_held"] = trial.error_held
    line["intervals_held"] = trial.intervals_held
    return trial.held
