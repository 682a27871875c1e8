"""Which mechanism for k yes/no attributes: every alternative with its error, best first.

For one attribute that half of the users hold, per user:
- composed-response: (1/l_1^2 - 1)/4 with l_1 the eigenvalue that the exact design reaches;
- sampled-attribute: k e/(e-1)^2 + (k-1)/4;
- randomized-response on all 2^k sets: (1/(p-q)^2 - 1)/4;
- each attribute at epsilon/k: ((coth(eps/2k))^2 - 1)/4. k separate questions, no mechanism of its own: a yardstick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer
from ldp_client.mechanisms.composed_response import ComposedResponse, design
from ldp_client.mechanisms.randomized_response import RandomizedResponse
from ldp_client.mechanisms.sampled_attribute import SampledAttribute
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["AttributeAlternative", "attribute_alternatives", "choose_for_attributes"]


@dataclass(frozen=True)
class AttributeAlternative:
    """One way to ask, and what to expect of it."""

    mechanism: str
    parameters: dict[str, int]
    standard_error: float
    """Of the number of users who hold one attribute, when half of them do."""
    pairs: bool
    """Whether pairs of attributes can be asked too."""
    report_bits: int
    yardstick: bool = False
    """Not a mechanism: for comparison only."""


def _of(maker: Randomizer, users: int, per_user: float, pairs: bool) -> AttributeAlternative:
    error = math.sqrt(users * per_user)
    return AttributeAlternative(maker.name, dict(maker.parameters()), error, pairs, maker.report_bits)


def attribute_alternatives(users: int, k: int, epsilon: Epsilon | str) -> list[AttributeAlternative]:
    """Return every alternative, the least error first."""
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    if users < 1:
        raise InvalidSpec("the number of users must be above 0")
    composed = ComposedResponse(budget, 1 << k, **design(budget, k))
    sampled, joint = SampledAttribute(budget, 1 << k), RandomizedResponse(budget, 1 << k)
    e = float(budget)
    kept = float(composed.eigenvalue(1))
    gap = (joint.response.truth - joint.response.lie) / (1 << joint.response.word_bits)
    split = 1 / math.tanh(e / (2 * k))
    found = [
        _of(composed, users, (1 / kept**2 - 1) / 4, k > 1 and composed.eigenvalue(2) != 0),
        _of(sampled, users, k / (4 * math.sinh(e / 2) ** 2) + (k - 1) / 4, False),
        _of(joint, users, (1 / gap**2 - 1) / 4, k > 1),
        AttributeAlternative("each at epsilon/k", {}, math.sqrt(users * (split**2 - 1) / 4), k > 1, k, yardstick=True),
    ]
    return sorted(found, key=lambda one: one.standard_error)


def choose_for_attributes(users: int, k: int, epsilon: Epsilon | str, *, pairs: bool = False) -> AttributeAlternative:
    """Return the mechanism with the least error, among those that can answer pairs if that is asked."""
    fitting = [
        one for one in attribute_alternatives(users, k, epsilon) if not one.yardstick and (one.pairs or not pairs)
    ]
    if not fitting:
        raise InvalidSpec("pairs take at least two attributes")
    return fitting[0]
