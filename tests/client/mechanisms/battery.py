"""What every randomizer must pass, and every broken copy of one must fail. Everything is counted, nothing is sampled.

A randomizer made with a small `word_bits` runs the same code on words so few that all of them can be tried. So its law
is known exactly, and is compared with the law it states; the law it states at 64 bits is then checked in fractions.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from ldp_client.mechanisms.base import Randomizer
from ldp_client.protocol.epsilon import floor_exp

__all__ = ["check_declared", "check_fields", "check_law", "check_marginals", "enumerate_law"]


def enumerate_law(randomizer: Randomizer, index: int) -> dict[int, Fraction]:
    """Run the randomizer on every line of words."""
    words = range(1 << randomizer.word_bits)
    counts = Counter(randomizer.randomize(index, line) for line in itertools.product(words, repeat=randomizer.words))
    total = (1 << randomizer.word_bits) ** randomizer.words
    return {report: Fraction(count, total) for report, count in counts.items()}


def _e_low(randomizer: Randomizer) -> Fraction:
    """A lower bound of e^epsilon, worked out here with more digits than the product uses."""
    bits = 200
    return Fraction(floor_exp(randomizer.epsilon.value, bits), 1 << bits)


def check_law(randomizer: Randomizer) -> None:
    """The enumerated law is the stated one, is within bounds, and keeps epsilon for every pair of items."""
    laws = [enumerate_law(randomizer, index) for index in range(randomizer.size)]
    for index, law in enumerate(laws):
        assert all(0 <= report < randomizer.bound for report in law), "a report is out of range"
        for report in range(randomizer.bound):
            assert law.get(report, 0) == randomizer.probability(index, report), "the stated law is not the real one"
    worst = Fraction(1)
    for report in range(randomizer.bound):
        values = [law.get(report, Fraction(0)) for law in laws]
        assert min(values) > 0 or max(values) == 0, "a report tells some items apart for certain"
        if max(values):
            worst = max(worst, max(values) / min(values))
    assert worst <= _e_low(randomizer), "epsilon is exceeded"
    assert worst <= randomizer.ratio, "the stated ratio is exceeded"


def check_fields(randomizer: Randomizer, sizes: Sequence[int]) -> None:
    """Records that differ in some fields alone keep the product of what is stated of these, for all sets of fields.

    `sizes` are those of the fields. An answer to the other fields is as likely for both records.
    """
    losses, places = randomizer.field_losses, range(len(sizes))
    assert len(losses) == len(sizes)
    assert sum(one.epsilon.value for one in losses) == randomizer.epsilon.value, "the person is charged another sum"
    lows = [Fraction(floor_exp(one.epsilon.value, 200), 1 << 200) for one in losses]
    assert all(one.ratio <= low for one, low in zip(losses, lows, strict=True)), "a field exceeds its epsilon"
    laws = [enumerate_law(randomizer, index) for index in range(randomizer.size)]
    held = [[index // math.prod(sizes[:i]) % sizes[i] for i in places] for index in range(randomizer.size)]
    for one, other in itertools.permutations(range(randomizer.size), 2):
        differ = [i for i in places if held[one][i] != held[other][i]]
        most = math.prod(losses[i].ratio for i in differ)
        assert all(laws[one][y] <= most * laws[other][y] for y in range(randomizer.bound)), "a field tells too much"
        for i in set(places) - set(differ):
            said = [_about(laws[item], sizes, i) for item in (one, other)]
            assert said[0] == said[1], "the answer to a field depends on another field"


def _about(law: Mapping[int, Fraction], sizes: Sequence[int], place: int) -> list[Fraction]:
    """The law of the answer to one field."""
    found = [Fraction(0)] * sizes[place]
    for report, chance in law.items():
        found[report // math.prod(sizes[:place]) % sizes[place]] += chance
    return found


def check_declared(randomizer: Randomizer, waste: float = 1e-9) -> None:
    """At 64 bits: the ratio is proved to be at most e^epsilon, and no more than a share `waste` of it is given away."""
    assert randomizer.word_bits == 64
    assert randomizer.ratio <= _e_low(randomizer), "epsilon is exceeded"
    declared = randomizer.epsilon.value
    least = Fraction(floor_exp(declared, 200) + 1, 1 << 200) * (1 - Fraction(waste))
    assert randomizer.ratio >= least, "more noise than epsilon asks for"


def check_marginals(randomizer: Randomizer) -> None:
    """At 64 bits, for every item: the law adds up to 1, and every bit of the packed report is randomized.

    A bit may be constant where all reports share it. Otherwise both its values have a positive probability under every
    item, within e^epsilon of each other item's: no bit is a plain copy, as when a random mask is one bit too short.
    """
    e_low, bits = _e_low(randomizer), 8 * randomizer.report_bytes
    marginals = []
    for index in range(randomizer.size):
        law = [randomizer.probability(index, report) for report in range(randomizer.bound)]
        assert sum(law) == 1, "the stated law does not add up"
        marginals.append([sum(p for report, p in enumerate(law) if report >> bit & 1) for bit in range(bits)])
    for bit, values in enumerate(zip(*marginals, strict=True)):
        for value in (values, [1 - p for p in values]):
            assert min(value) > 0 or max(value) == 0, f"bit {bit} tells some items apart for certain"
            assert max(value) <= e_low * min(value), f"bit {bit} exceeds epsilon"
