r"""How many users a rule takes: before anything is asked, from the number of rules and the mechanism's law.

The error of a rule h is the share of users in a set of cells (rules.py). One report adds a value to its estimate, whose
mean is the error: by randomized response or subset selection, values and probabilities are those of a row with so many
cells (oracles/records/sources.py). Over users who are drawn independently, let V be the largest variance that a value
can have, whoever the users are, and R the distance of the largest from the least value. By Bernstein's inequality, for
m rules at once and a failure probability beta,

    n >= (2 V/t^2 + 2 R/(3 t)) ln(2 m/beta)

makes every estimated error right up to t. With t = within/2, the rule with the least estimated error is then at most
`within` worse than the best rule of its kind (Beimel, Nissim and Stemmer, Lemma 5.3, with the estimate for a
sanitizer). This is proved. `expected` takes the normal law for the same errors: n = V (z/t)^2 with the quantile z of
beta/(2 m). Neither allows for users who have no label, or lack a feature: divide by the share of those who have all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.subset_selection import design
from ldp_client.protocol.domain import Field, Integers, Record
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.learning.rules import RuleKind, known_values, rule_count
from ldp_server.oracles import frequency_oracle
from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.support import normal_quantile
from ldp_server.oracles.records.sources import Source

__all__ = ["RuleNeed", "users_for_rules"]


@dataclass(frozen=True)
class RuleNeed:
    """How many users the rules of a kind take, with the mechanism that takes the fewest."""

    kind: RuleKind
    rules: int
    mechanism: str
    parameters: dict[str, int]
    proved: int
    """So many are enough, with the stated probability, whoever the users are."""
    expected: int
    """So many are enough if errors are normal."""


def users_for_rules(
    fields: Sequence[Field], label: Field, epsilon: Epsilon, within: float, failure: float = 0.05
) -> tuple[RuleNeed, ...]:
    """Return the users that each kind of rule takes, so that it is at most `within` worse than the best of its kind."""
    if not 0 < within < 1 or not 0 < failure < 1:
        raise InvalidSpec("within and failure are shares between 0 and 1, such as 0.05")
    record = Record((*fields, label))
    if not 1 <= len(fields) <= 2 or (len(fields) == 2 and not all(isinstance(one.domain, Integers) for one in fields)):
        raise InvalidSpec("a rule is about one field, or about two fields of integers")
    found = []
    for kind in _kinds(fields):
        count = rule_count(kind, fields)
        options = [_need(record, epsilon, name, count, within / 2, failure) for name in _mechanisms(record)]
        proved, expected, mechanism, parameters = min(options, key=lambda one: one[:2])
        found.append(RuleNeed(kind, count, mechanism, parameters, proved, expected))
    return tuple(found)


def _kinds(fields: Sequence[Field]) -> list[RuleKind]:
    if len(fields) == 2:
        return [RuleKind.RECTANGLE]
    ordered = isinstance(fields[0].domain, Integers)
    return [RuleKind.POINT, *([RuleKind.THRESHOLD] if ordered else []), RuleKind.STUMP]


def _mechanisms(record: Record) -> list[str]:
    return ["randomized-response", *(["subset-selection"] if 3 <= record.size <= 64 else [])]


def _need(
    record: Record, epsilon: Epsilon, mechanism: str, rules: int, tolerance: float, failure: float
) -> tuple[int, int, str, dict[str, int]]:
    parameters = design(epsilon, record.size) if mechanism == "subset-selection" else {}
    made = Collection.create("?", record, mechanism, epsilon, opens=0, closes=1, parameters=parameters)
    source = Source(frequency_oracle(made), np.zeros(record.size, np.intp), 1)
    each = [_worst(source.law(wrong)) for wrong in range(1, _largest_set(record) + 1)]
    spread, reach = (max(values) for values in zip(*each, strict=True))
    log = math.log(2 * rules / failure)
    proved = (2 * spread / tolerance**2 + 2 * reach / (3 * tolerance)) * log
    expected = spread * (normal_quantile(failure / (2 * rules)) / tolerance) ** 2
    return math.ceil(proved), math.ceil(expected), mechanism, parameters


def _largest_set(record: Record) -> int:
    """The most cells about which a rule can be wrong: one side of the label at each value of the features."""
    labels = len(known_values(record.fields[-1].domain))  # at least one of them is positive
    return math.prod(len(known_values(field.domain)) for field in record.fields[:-1]) * max(1, labels - 1)


def _worst(law: tuple[Floats, Floats, Floats]) -> tuple[float, float]:
    """The largest variance of a value over all shares of users in the set, and the distance of its extremes.

    With a share f inside, the variance is f a + (1 - f) b - f^2, for the mean squares a and b of both laws.
    """
    values, inside, outside = law
    a, b = float(inside @ values**2), float(outside @ values**2)
    share = min(1.0, max(0.0, (a - b) / 2))
    return share * a + (1 - share) * b - share**2, float(np.ptp(values[(inside > 0) | (outside > 0)]))
