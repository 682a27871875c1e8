"""Which of some rules tells labels best, even where a few attributes are changed, at a price for each attribute.

A rule is a line of whole numbers w_1 ... w_d, b: the label is 1 if sum w_j x_j + b > 0, x_j = 1 or -1. The rules are
given, and made without the records. How many attributes must change until the rule is wrong is dec: 0 if it is wrong
now, else the smallest number of characters whose change turns it. With a < b flips the loss of a person is

    clip(b - dec, 0, b - a):  0 if the rule stays right after b - 1 changes, b - a if a change of a or fewer turns it.

Changing one character of one person moves dec by at most 1, and so the loss. Each label is first randomized: it is told
rightly with probability e^epsilon / (e^epsilon + 1). The score uses the told label t and the other one t':

    score = - sum over the people of  P loss(t) - Q loss(t'),   P / Q about e^epsilon,  P - Q = 4096

whose expectation is 4096 times the loss with the true labels. Then the exponential mechanism with epsilon. One of
dec(t) and dec(t') is 0. So with a >= 1 one of the two losses is b - a before and after a change of one character, and
the score moves by at most P; with a = 0 by P + Q.

Price. One character: epsilon, by the exponential mechanism. The label: epsilon, by its randomization, since nothing
else reads it. So epsilon for one attribute. For a whole record (1 + d) epsilon. It is also epsilon, and what the
exponential mechanism loses if a score moves by (P + Q)(b - a), its range: the smaller one is charged. (Lemma 22 with
Lemma 21, whose identity holds for robust losses only with the score above.)

Use. The loss of the released rule is at most that of the best plus what the exponential mechanism adds,
2 P / (4096 epsilon) ln(rules / beta), plus what the randomized labels add: each person's part of a score has a range of
(P + Q)(b - a), so Hoeffding's bound gives (P + Q)(b - a) sqrt(2 n ln(4 rules / beta)) / 4096 for the two rules
compared. Rounding P and Q to whole numbers adds at most (b - a) n / 4096.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import fraction_up
from ldp_server.curator.draws import Draws, selection_scale
from ldp_server.curator.people import Record
from ldp_server.curator.prices import CentralPrice
from ldp_server.curator.releases.base import BETA, Outcome, ReleasedRow
from ldp_server.curator.releases.learning.labelled import LabelledMechanism, the_only
from ldp_server.curator.releases.partial.bits import Bits, bits_of, check_bits

__all__ = ["RobustRule", "flips_until_wrong", "read_rule"]

Whole = npt.NDArray[np.int64]
_GRAIN = 4096
_LARGEST = 1 << 40


@dataclass(frozen=True)
class RobustRule(LabelledMechanism):
    """The best of some linear rules."""

    kind: ClassVar[str] = "robust-rule"
    bits: int
    """d."""
    rules: tuple[str, ...]
    """Each one d + 1 whole numbers with commas."""
    epsilon: Fraction
    flips: tuple[int, int] = (1, 3)
    """a and b."""

    def __post_init__(self) -> None:
        check_bits(self.bits, 1)
        if not self.rules or not 0 <= self.flips[0] < self.flips[1] <= self.bits + 1:
            raise InvalidSpec("give at least one rule (--items), and numbers of flips a < b of at most the attributes")
        for rule in self.rules:
            read_rule(rule, self.bits)

    @property
    def weights(self) -> tuple[int, int]:
        """P and Q."""
        q = round(_GRAIN / math.expm1(float(self.epsilon)))
        return _GRAIN + q, q

    @property
    def moves(self) -> int:
        """By how much one character moves a score."""
        return self.weights[0] if self.flips[0] else sum(self.weights)

    @property
    def price(self) -> CentralPrice:
        range_of = Fraction(sum(self.weights) * (self.flips[1] - self.flips[0]), self.moves)
        whole = self.epsilon * min(Fraction(self.bits + 1), 1 + range_of)
        return CentralPrice(whole, Fraction(0), whole * whole / 2, attribute=self.epsilon)

    def error(self, people: int) -> float:
        """How much more loss than the best rule has, with probability 95%."""
        ratio, wide = sum(self.weights) / _GRAIN, self.flips[1] - self.flips[0]
        chosen = 2 * self.moves / _GRAIN / float(self.epsilon) * math.log(2 * len(self.rules) / BETA)
        labels = ratio * wide * math.sqrt(2 * people * math.log(4 * len(self.rules) / BETA))
        return chosen + labels + wide * people / _GRAIN

    @property
    def smallest(self) -> int:
        wide, people = self.flips[1] - self.flips[0], 1
        while self.error(people) > wide * people / 2:
            people = math.ceil(people * 1.02) + 1
        return people

    def learn(self, attributes: Sequence[Sequence[Record]], labels: Sequence[bool], draws: Draws) -> Outcome:
        rows = bits_of(the_only(self.kind, attributes), self.bits)
        noisy = draws.laplace([int(label) for label in labels], fraction_up(1 / self.epsilon))
        told = np.array(noisy) >= 1  # P(Z >= 0) = 1 / (1 + q): the randomized label of the text above
        p, q = self.weights
        scores = []
        for rule in self.rules:
            until = flips_until_wrong(rows, *read_rule(rule, self.bits), told)
            loss = [np.clip(self.flips[1] - one, 0, self.flips[1] - self.flips[0]) for one in until]
            scores.append(-int((p * loss[0] - q * loss[1]).sum()))
        index = draws.exponential(scores, selection_scale(self.epsilon, self.moves))
        note = (
            f"the rule with the smallest loss, up to {self.error(len(labels)):,.0f} in all with probability 95%; a "
            f"person's loss is 0 to {self.flips[1] - self.flips[0]}"
        )
        return Outcome((ReleasedRow(self.rules[index]),), note)


def read_rule(rule: Record, bits: int) -> tuple[Whole, int]:
    """Return the weights and the constant of a rule."""
    try:
        *found, constant = (int(part) for part in str(rule).split(","))
    except ValueError:
        raise InvalidSpec("--items: a rule is a line of whole numbers with commas") from None
    if len(found) != bits or max(map(abs, [*found, constant])) > _LARGEST:
        raise InvalidSpec(f"--items: a rule has {bits} weights and a constant, each at most 2^40")
    return np.array(found, np.int64), constant


def flips_until_wrong(rows: Bits, weights: Whole, constant: int, labels: npt.NDArray[np.bool_]) -> tuple[Whole, Whole]:
    """Return dec for these labels and for the other ones.

    The change that turns a sum fastest is that of the character with the largest part against it: a greedy choice is
    the best one, because the parts do not depend on each other.
    """
    signs = 2 * rows.astype(np.int64) - 1
    sums = signs @ weights + constant
    found = []
    for wanted in (True, False):  # how many changes until the rule says the opposite
        parts = np.sort(np.maximum(signs * weights if wanted else -signs * weights, 0), axis=1)[:, ::-1]
        left = np.column_stack([sums if wanted else -sums, (sums if wanted else -sums)[:, None] - 2 * parts.cumsum(1)])
        turned = left <= 0 if wanted else left < 0
        steps = np.where(turned.any(1), turned.argmax(1), rows.shape[1] + 1)
        found.append(steps)
    return np.where(labels, found[0], found[1]), np.where(labels, found[1], found[0])
