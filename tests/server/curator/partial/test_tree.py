"""Frequent texts from their parts: the loss for one attribute, against brute force and exact laws; what is found."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.curator.outcomes import law_of
from ldp_client.errors import InvalidSpec
from ldp_server.curator.laws import laplace_tail
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.prices import CentralPrice, DataSetBudget
from ldp_server.curator.releases.base import TooFewPeople
from ldp_server.curator.releases.partial.bits import bits_of, texts_of
from ldp_server.curator.releases.partial.strings import FrequentStrings, plain_people
from ldp_server.curator.releases.partial.tree import (
    TreeNoise,
    frequent_texts,
    needed_people,
    tree_levels,
    tree_loss,
    tree_noise,
)
from tests.server.curator.seeded import Seeded
from tests.server.curator.test_releases import Fixed

DRAWS = ExactDraws()
ONE, SHARE = Fraction(1), Fraction(1, 20)


def history_losses(noise, counts, gained):
    """The log-ratio of each history of a text: how often it passes before it fails, with `gained` people more."""
    losses, so_far = [], 0.0
    for level, count in enumerate(counts):
        tau = 10 + level * noise.step
        passes = [laplace_tail(noise.scale, 1 - max(f - tau, -noise.step)) for f in (count, count + gained)]
        losses.append(so_far + math.log((1 - passes[0]) / (1 - passes[1])))
        so_far += math.log(passes[0] / passes[1])
    return [*losses, so_far]


@pytest.mark.parametrize(("scale", "step"), [(2.0, 3), (1.2, 2), (4.0, 5), (3.0, 1)])
@pytest.mark.parametrize("levels", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_the_loss_is_the_largest_of_all_histories(scale, step, levels):
    """All counts that fall from level to level, of the text that loses one person and of the one that gains one."""
    noise = TreeNoise(scale, step)
    counts = [c for c in itertools.product(range(26), repeat=levels) if list(c) == sorted(c, reverse=True)]
    gained = max(max(history_losses(noise, one, 1)) for one in counts)
    lost = max(-min(history_losses(noise, [count - 1 for count in one], 1)) for one in counts if min(one))
    assert gained + lost == pytest.approx(tree_loss(noise, 2**levels), rel=1e-9)


class Transcript(Fixed):
    """Passes draws on, and notes which candidates of all parts were listed."""

    def __init__(self, draws):
        super().__init__(0)
        self.draws, self.listed = draws, ()

    def laplace(self, values, scale):
        found = self.draws.laplace(values, scale)
        self.listed += (tuple(value > 0 for value in found),)
        return found


def listed_law(records, bits, noise):
    """The law of all lists."""
    rows = bits_of(records, bits)

    def run(draws):
        transcript = Transcript(draws)
        frequent_texts(rows, noise, Fraction(1, 8), transcript)
        return transcript.listed

    return law_of(run, 1e-6, {noise.scale: 1})


def log_ratio(one, other):
    """The largest log-ratio of a result's probabilities: pure epsilon."""
    return max(math.log(chance / other.chances[result]) for result, chance in one.chances.items())


@pytest.mark.parametrize(("noise", "private"), [(tree_noise(ONE, SHARE, 2, calibrated=True), True), (None, False)])
def test_the_realised_loss_of_two_characters_is_at_most_epsilon(noise, private):
    """Counts on both sides of tau, one character changed; the printed noise, 3 / (2 epsilon), loses more."""
    noise, worst = noise or TreeNoise(1.5, 9), 0.0
    for first, second in itertools.product((1, noise.step + 2, noise.step + 3, noise.step + 5), repeat=2):
        rest = ["00"] * first + ["01"] * second
        laws = [listed_law([*rest, last], 2, noise) for last in ("00", "01")]
        worst = max(worst, log_ratio(*laws), log_ratio(*reversed(laws)))
    assert (worst <= 1 + 1e-9) is private
    assert worst > 0.9


def test_the_realised_loss_over_two_levels_is_at_most_epsilon():
    """Three characters: the loss is more than what one level can cost, and at most what is stated."""
    noise = TreeNoise(1.0, 2)
    laws = [listed_law(["000"] * 4 + ["100"] * 4 + [last], 3, noise) for last in ("000", "100")]
    stated = tree_loss(noise, 3)
    realised = max(log_ratio(*laws), log_ratio(*reversed(laws)))
    assert 2 < realised <= stated


def test_the_noise_is_what_is_needed_and_the_lemma_allows_less():
    for bits in (2, 64, 1000):
        for calibrated in (False, True):
            noise = tree_noise(ONE / 2, SHARE, bits, calibrated=calibrated)
            lemma = 2 / noise.scale * (1 + 1 / (1 - math.exp(-noise.step / noise.scale)))
            assert tree_loss(noise, bits) <= 0.5
            assert (lemma <= 0.5) is not calibrated
    assert tree_loss(TreeNoise(3.0, 18), 64) > 0.9  # printed for one half
    assert [tree_levels(bits) for bits in (2, 3, 4, 5, 64, 65)] == [1, 2, 2, 3, 6, 7]


@pytest.mark.parametrize(
    ("bits", "calibrated"), [(2, False), (5, True), pytest.param(40, True, marks=pytest.mark.long)]
)
def test_all_planted_texts_are_found_with_right_counts(bits, calibrated):
    draws = Seeded(1)
    made = FrequentStrings(bits, SHARE, Fraction(2), calibrated)
    rng, people, right = np.random.default_rng(bits), made.smallest, 0
    for _ in range(4):
        planted = rng.integers(0, 2, (3, bits)).astype(np.uint8)
        rows = rng.integers(0, 2, (people, bits)).astype(np.uint8)
        held = math.ceil(people * SHARE)
        for place, text in enumerate(planted):
            rows[place * held : (place + 1) * held] = text
        found = {row.item: row for row in made.run(texts_of(rows), draws).rows}
        truth = {text: int((rows == list(map(int, text))).all(1).sum()) for text in set(texts_of(planted)) | set(found)}
        right += all(text in found and found[text].low <= truth[text] <= found[text].high for text in truth)
    assert right >= 2  # of 4 with 95% or more each: fewer with a probability under 0.05%


def test_without_noise_the_list_is_the_definition():
    """A text is listed if its parts are, and its count is above tau: nothing else is added."""
    records = ["0110"] * 40 + ["1111"] * 30 + ["0000"] * 20
    noise = TreeNoise(2.0, 8)
    found = frequent_texts(bits_of(records, 4), noise, Fraction(1, 2), Fixed(0))
    assert found.texts == ["0110", "1111"]  # tau is 16 at the first level and 24 at the second
    assert [int((found.places == place).sum()) for place in (0, 1, -1)] == [40, 30, 20]


def test_needed_people_and_the_plain_histogram():
    noise = tree_noise(ONE / 2, SHARE, 64, calibrated=False)
    needed = needed_people(noise, SHARE, 64, 0.025)
    assert needed == FrequentStrings(64, SHARE, ONE).smallest
    assert plain_people(64, SHARE, ONE) < needed
    assert plain_people(1024, SHARE, ONE) > FrequentStrings(1024, SHARE, ONE).smallest
    with pytest.raises(TooFewPeople):
        FrequentStrings(64, SHARE, ONE).check(needed - 1)


def test_the_price_has_both_figures():
    price = FrequentStrings(64, SHARE, ONE).price
    assert (price.attribute, price.epsilon) == (1, Fraction(65, 2))
    assert DataSetBudget("attribute", Fraction(4)).cost(price) == (1, 0)
    assert DataSetBudget("pure", Fraction(40)).cost(price) == (Fraction(65, 2), 0)
    both = price + CentralPrice.pure(Fraction(2))
    assert (both.attribute, both.label) == (3, None)
    assert CentralPrice.from_dict(both.as_dict()) == both


@pytest.mark.parametrize("record", ["012", "01", "0100", None, 11, "0l0"])
def test_other_texts_are_refused_and_not_shown(record):
    with pytest.raises(InvalidSpec, match="row 2: not a text of 3 characters") as said:
        bits_of(["010", record], 3)
    assert "0l0" not in str(said.value)
    for wrong in ((1, SHARE), (8, ONE), (1 << 20, SHARE)):
        with pytest.raises(InvalidSpec):
            FrequentStrings(*wrong, ONE)
