r"""A bounded number, asked for its average: rounded at random to one of a few places, answered by a window of
answers.

Items are the integers of the domain, 0 ... R by their distance from the lowest. There are m answers; a window
of w consecutive ones can stand at J + 1 = m - w + 1 places.

1. Rounding: v J / R lies between two places; one word picks the upper one with probability its fraction
   (rounded up to a whole number of words), so that the place is v J / R on average. `none` stands for the
   middle, J/2.
2. Answer: one word picks an answer, each inside the window with T words, each outside with W words, T/W <= e_low.
   With x = N / (w e_low + m - w), two forms fit: W = floor(x), T = floor(e_low W), and W = ceil(x),
   T = floor((N - (m-w) W) / w). Words left over say answer (u - used) mod m whatever the place is, so each answer has
   at least s = floor(left / m) of them; the form with the larger (T + s)/(W + s) is used, the first where they tie.

       u in [0, w T)          answer place + (u mod w)
       u in [w T, used)       j = (u - w T) mod (m - w): answer j below the window, j + w from it on
       the rest               answer (u - used) mod m

3. Presence: on average, `presence` of 256 devices answer another question instead, by binary randomized response:
   whether they have a number at all. The first word decides which devices, whatever the item is. If `presence` is 0,
   people without a number count as the middle.

m = 2, w = 1 is the one-bit mechanism; larger m and w are the piecewise mechanism on a grid, better from
epsilon about 1. `design` picks the m and w with the least worst-case variance.

Privacy. Every answer has weight T or W (plus the same leftover words) whatever the place, and rounding mixes two such
laws. So the ratio is at most (T + s)/(W + s), with s the smallest number of leftover words, and T/W <= e_low <=
e^epsilon.

Timing. As in randomized_response.py: all three answers are worked out from sums of a fixed size, one is selected.

Estimation. Moving the window by one place moves the mean answer by B = w (T - W)/N, so (Y - A)/(B J), A the
mean answer at place 0, is an unbiased estimate of v/R from one report. The oracle averages it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, Randomizer
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.shared.pair_law import Atom, PairLaw, merged, mixed, uniform
from ldp_client.protocol.domain import Domain, Integers
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["MAX_PLACES", "ROLES", "BoundedNumber", "Window", "design"]

MAX_PLACES = 256
ROLES = 256
"""Of so many devices, `presence` are asked about presence, on average."""


class Window:
    """The core: one of m answers, a window of w of them more likely."""

    __slots__ = (
        "_after_lies",
        "_after_truth",
        "_to_lie",
        "_to_spare",
        "answers",
        "lie",
        "spare",
        "truth",
        "used",
        "window",
        "word_bits",
    )

    def __init__(self, epsilon: Epsilon, answers: int, window: int, word_bits: int = WORD_BITS) -> None:
        if not 1 <= window < answers <= MAX_PLACES:
            raise InvalidSpec(f"bounded-number takes 2 to {MAX_PLACES} answers and a window of fewer")
        total, e_low = 1 << word_bits, epsilon.e_low
        self.answers, self.window, self.word_bits = answers, window, word_bits
        self.truth, self.lie = _weights(total, e_low, answers, window)
        """T: how many words say each answer inside the window; W, `lie`, each outside."""
        self.used = window * self.truth + (answers - window) * self.lie
        self.spare = total - self.used
        if not 0 < self.lie < self.truth <= e_low * self.lie:
            raise InvalidSpec(f"{word_bits} random bits are too few for {answers} answers at epsilon {epsilon}")
        self._prepare(total)

    def _prepare(self, total: int) -> None:
        """Work out the offsets of `choose`: what the law subtracts, modulo the divisor, plus a multiple beyond N."""
        lies, split = self.answers - self.window, self.window * self.truth
        self._to_lie = -split % lies - (-total // lies) * lies
        self._to_spare = -self.used % self.answers - (-total // self.answers) * self.answers
        self._after_truth = 2 * total - split
        self._after_lies = self.spare

    def choose(self, word: int, place: int) -> int:
        """Return the answer when the window stands at `place`."""
        inside = place + word % self.window
        lie = (word + self._to_lie) % (self.answers - self.window)
        spare = (word + self._to_spare) % self.answers
        chosen = (word + self._after_truth >> self.word_bits) + (word + self._after_lies >> self.word_bits)
        return (0, inside, lie + self.window * (lie >= place), spare)[chosen]

    def weight(self, place: int, answer: int) -> int:
        """How many words make a window at `place` say `answer`."""
        spread = self.spare // self.answers + (answer < self.spare % self.answers)
        return spread + (self.truth if place <= answer < place + self.window else self.lie)

    @property
    def ratio(self) -> Fraction:
        """The exact largest ratio of an answer's probabilities."""
        least = self.spare // self.answers
        return Fraction(self.truth + least, self.lie + least)

    @property
    def different(self) -> PairLaw:
        """The pair law of the first and the last place; no two windows agree less (pair_law.py).

        Answers that both windows hold are in the window at every place, so the blanket is as large as the law there.
        """
        least = self.spare // self.answers
        shared = max(0, 2 * self.window - self.answers)
        apart = self.window - shared
        each = Fraction(self.lie + least, 1 << self.word_bits)
        law = uniform(each, self.ratio, apart, self.answers - 2 * apart - shared)
        return merged((*law, Atom(each * self.ratio * shared, Fraction(1), Fraction(1))))

    @property
    def base(self) -> Fraction:
        """A: the mean answer at place 0."""
        return Fraction(sum(y * self.weight(0, y) for y in range(self.answers)), 1 << self.word_bits)

    @property
    def step(self) -> Fraction:
        """B: how far one place moves the mean answer."""
        return Fraction(self.window * (self.truth - self.lie), 1 << self.word_bits)

    @property
    def worst_variance(self) -> float:
        """The largest variance of one report's estimate of v/R, over all v."""
        places = self.answers - self.window
        scale, step, base = float(self.step * places), float(self.step), float(self.base)
        squares = [sum(y * y * self.weight(j, y) for y in range(self.answers)) for j in range(places + 1)]
        moments = [square / (1 << self.word_bits) for square in squares]
        at = [moment - (base + step * j) ** 2 for j, moment in enumerate(moments)]
        # Between two places the second moment is linear and the mean too: the variance is largest where
        # d/df [(1-f) m0 + f m1 - (base + step (j + f))^2] = 0, if that lies inside.
        for j in range(places):
            f = (moments[j + 1] - moments[j]) / (2 * step * step) - base / step - j
            if 0 < f < 1:
                at.append((1 - f) * moments[j] + f * moments[j + 1] - (base + step * (j + f)) ** 2)
        return max(at) / scale**2


def _weights(total: int, e_low: Fraction, answers: int, window: int) -> tuple[int, int]:
    """The form of (T, W) whose ratio is nearer to e_low; (0, 1) if there are too few words for either form."""
    share = total / (window * e_low + answers - window)
    down, up = int(share), math.ceil(share)
    forms = [(int(e_low * down), down), ((total - (answers - window) * up) // window, up)]

    def ratio(form: tuple[int, int]) -> Fraction:
        truth, lie = form
        spare = (total - window * truth - (answers - window) * lie) // answers
        return Fraction(truth + spare, lie + spare)

    return max((form for form in forms if 0 < form[1] < form[0]), key=ratio, default=(0, 1))


@dataclass(frozen=True)
class BoundedNumber(Randomizer):
    """Randomizes one number of a range, for averages."""

    epsilon: Epsilon
    size: int
    answers: int
    window: int
    presence: int = 0
    word_bits: int = WORD_BITS
    law: Window = field(init=False, repr=False, compare=False)
    response: Response = field(init=False, repr=False, compare=False)
    name: ClassVar[str] = "bounded-number"

    def __post_init__(self) -> None:
        if self.size < 3:
            raise InvalidSpec("bounded-number takes a domain of at least two integers")
        if not 0 <= self.presence < ROLES:
            raise InvalidSpec("bounded-number asks 0 to 255 of 256 devices about presence")
        object.__setattr__(self, "law", Window(self.epsilon, self.answers, self.window, self.word_bits))
        object.__setattr__(self, "response", Response(self.epsilon, 2, self.word_bits))

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, int]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Integers):
            raise InvalidSpec("bounded-number takes an integers domain")
        return cls(epsilon, domain.size, parameters["answers"], parameters["window"], parameters["presence"])

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("1", Integers(0, 3), {"answers": 2, "window": 1, "presence": 0}, 5),
            Example("1", Integers(0, 5), {"answers": 2, "window": 1, "presence": 64}, 5),
            Example("2", Integers(0, 5), {"answers": 3, "window": 1, "presence": 0}, 5),
            Example("2", Integers(0, 4), {"answers": 4, "window": 2, "presence": 128}, 5),
            Example("1", Integers(0, 8), {"answers": 5, "window": 2, "presence": 0}, 5),
            Example("1", Integers(0, 10), design("1", presence=32)),
            Example("3", Integers(0, 10), design("3")),
            Example("1", Integers(0, 500), design("1")),
            Example("2", Integers(0, 500), design("2", presence=64)),
        )

    @property
    def words(self) -> int:
        """One word for the role, one for the rounding, one for the answer."""
        return 3

    @property
    def bound(self) -> int:
        """The answers, and two more where presence is asked."""
        return self.answers + (2 if self.presence else 0)

    def _fraction(self, index: int) -> tuple[int, int]:
        """The place of an index as numerator and denominator: v J / R, or J/2 for none."""
        places = self.answers - self.window
        return ((places, 2), ((index - 1) * places, self.size - 2))[index > 0]

    def randomize(self, index: int, words: Sequence[int]) -> int:
        about_presence = words[0] * ROLES >> self.word_bits < self.presence
        numerator, denominator = self._fraction(index)
        place, rest = divmod(numerator, denominator)
        place += words[1] * denominator < rest << self.word_bits
        held = self.answers + self.response.choose(words[2], int(index > 0))
        return (self.law.choose(words[2], place), held)[about_presence]

    def probability(self, index: int, report: int) -> Fraction:
        total = 1 << self.word_bits
        asked = Fraction(-(-(self.presence << self.word_bits) // ROLES), total)
        if report >= self.answers:
            return asked * self.response.probability(int(index > 0), report - self.answers)
        numerator, denominator = self._fraction(index)
        place, rest = divmod(numerator, denominator)
        upper = Fraction(-(-(rest << self.word_bits) // denominator), total)
        lower_weight = self.law.weight(place, report)
        upper_weight = self.law.weight(place + 1, report) if rest else lower_weight
        return (1 - asked) * ((1 - upper) * lower_weight + upper * upper_weight) / total

    @property
    def ratio(self) -> Fraction:
        """The larger of the window's and, where presence is asked, the response's."""
        return max(self.law.ratio, self.response.ratio) if self.presence else self.law.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """An imagined pair: the places are first and last, and one of the two has no number. The role is public.

        A rounded number is a mixture of two places, and E[.]_+ is convex in both laws, so the places bound it.
        """
        asked = Fraction(-(-(self.presence << self.word_bits) // ROLES), 1 << self.word_bits)
        return (mixed(((asked, self.response.different), (1 - asked, self.law.different))),)

    def parameters(self) -> Mapping[str, int]:
        return {"answers": self.answers, "window": self.window, "presence": self.presence}


@lru_cache(maxsize=64)
def _best(text: str, most: int) -> tuple[int, int]:
    epsilon = Epsilon(text)
    options = [(answers, window) for answers in range(2, most + 1) for window in range(1, answers)]
    # A window of more than half of the answers only adds noise to what a smaller one says.
    options = [(m, w) for m, w in options if w <= (m + 1) // 2]
    return min(options, key=lambda option: (Window(epsilon, *option).worst_variance, option))


def design(epsilon: Epsilon | str, *, presence: int = 0, most: int = 24) -> dict[str, int]:
    """Return the parameters with the least worst-case variance, of at most `most` answers."""
    budget = epsilon if isinstance(epsilon, Epsilon) else Epsilon.parse(epsilon)
    answers, window = _best(budget.text, most)
    return {"answers": answers, "window": window, "presence": presence}
