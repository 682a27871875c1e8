"""From a goal to a file: the commented TOML of a question, and what it will tell.

The file is the readable form of a collection (ldp_client/collection_text.py) without its id, so that it can be changed
by hand: `Collection.load` reads it, and `ldp-server collection create` takes it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ldp_client.collection import Collection, Details, Schedule
from ldp_client.collection_text import toml
from ldp_client.errors import InvalidSpec
from ldp_server.heavy_hitters import planner as sketches
from ldp_server.planning.goals import Goal
from ldp_server.planning.planner import Plan, solve
from ldp_server.planning.promise import plan_in_words
from ldp_server.planning.volunteers import VolunteersOutlook, VolunteersWish, outlook_of_plan, volunteers_in_words

__all__ = ["Draft", "commented", "draft", "question_file"]

_WIDTH = 100
_COMMENTS = {
    "question": "What people are asked, in words that they see. Another wording is another question.",
    "epsilon": "The privacy of one report: smaller is more private. A string, so that it is exact.",
    "domain": "What people can hold. Whatever is outside counts as nobody's answer (`none`), and is sent all the same.",
    "mechanism": "How a device randomizes its answer. The parameters come from the planner; leave them as they are.",
    "window": "When reports are taken: from the first moment of `opens` to before the first moment of `closes`.",
    "schedule": "One report in every period, at most so many. Each costs epsilon again.",
    "relay": "Reports are sealed and pass through a relay of another operator, at least so many together.",
}


@dataclass(frozen=True)
class Draft:
    """The file of a question that is not asked yet, and what will be learned from it."""

    text: str
    """The file: TOML with comments."""
    promise: tuple[str, ...]
    """What will be learned, in sentences."""
    plan: Plan
    collection: Collection = field(metadata={"json": "never"})
    """What `Collection.load` makes of the file."""
    volunteers: tuple[VolunteersOutlook, ...] = field(default=(), metadata={"json": "unless empty"})
    """What is known with so many volunteers, if that was asked."""


def draft(
    question: str,
    goal: Goal,
    *,
    opens: int,
    closes: int,
    schedule: Schedule | None = None,
    nonce: int = 0,
    smallest_batch: int | None = None,
    volunteers: VolunteersWish | None = None,
) -> Draft:
    """Plan a question and write its file. `opens` and `closes` are seconds since 1970."""
    plan = solve(goal)
    both = () if volunteers is None else outlook_of_plan(plan, volunteers.shares, volunteers.epsilon or plan.epsilon)
    details: Details = {"opens": opens, "closes": closes, "schedule": schedule, "nonce": nonce}
    collection = _collection(question, plan, details | {"smallest_batch": smallest_batch})
    promise = plan_in_words(plan, schedule, closes - opens) + volunteers_in_words(both, shares=bool(plan.unit))
    text = question_file(collection, promise)
    return Draft(text, promise, plan, collection, both)


def _collection(question: str, plan: Plan, details: Details) -> Collection:
    parameters = plan.parameters
    if "attempt" in parameters:
        chosen = sketches.plan(plan.users, plan.goal.domain, plan.epsilon, memory=plan.goal.memory)
        chosen = replace(chosen, mechanism=plan.mechanism, parameters=dict(parameters))
        made = sketches.create(
            question,
            plan.goal.domain,
            plan.epsilon,
            chosen,
            opens=details["opens"],
            closes=details["closes"],
            nonce=details["nonce"],
        )
        parameters = dict(made.randomizer.parameters())
    details = details | {"parameters": parameters}
    return Collection.create(question, plan.goal.domain, plan.mechanism, plan.epsilon, **details)


def question_file(collection: Collection, promise: tuple[str, ...]) -> str:
    """The question's file, with the promise as a comment. Whoever reads it gets this collection."""
    text = commented(collection.to_dict(), promise)
    if Collection.from_toml(text) != collection:
        raise InvalidSpec("this question cannot be written as a file: use plain characters in its text and names")
    return text


def commented(data: Mapping[str, Any], promise: tuple[str, ...]) -> str:
    """The readable form with a comment above every key of the top and every table."""
    head = ["What will be learned, as planned:", *(f"- {sentence}" for sentence in promise)]
    parts = [_comment(line) for line in head]
    for key, value in data.items():
        if key == "id" or (key == "nonce" and not value):
            continue
        comment = _comment(_COMMENTS[key]) if key in _COMMENTS else ""
        parts.append("\n" + comment + toml({key: value}).lstrip("\n"))
    return "".join(parts)


def _comment(text: str) -> str:
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent="  " if text.startswith("- ") else "")
    return "".join(f"# {line}\n" for line in lines)
