"""The tables of docs/privacy.md, docs/numbers.md and docs/audit.md, computed anew."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from benchmarks.anonymity import blanket as relay_rows
from benchmarks.audit.broken import BROKEN
from ldp_client.mechanisms import bounded_number, composed_response
from ldp_client.mechanisms.bounded_number import Window
from ldp_client.mechanisms.composed_response import ComposedResponse
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.privacy import compose, every_rule
from ldp_client.privacy.information import best_guess, mutual_information, odds_factor
from ldp_client.privacy.shuffle import batches, grouped, shuffled
from ldp_client.protocol.epsilon import Epsilon
from simulator.reproductions.genprot import GenProt, design, price, total_variation
from simulator.reproductions.subsampling import hidden_epsilon

DOCS = Path(__file__).parents[3] / "docs"


def rows(page, heading):
    """The rows of the table whose first line holds this text."""
    lines = (DOCS / page).read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|") and heading in line)
    found = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return found
        found.append([cell.strip().strip("*") for cell in line.strip("|").split("|")])
    return found


def number(text):
    return float(re.search(r"[0-9][0-9.,]*", text)[0].replace(",", "").rstrip("."))


def up(value, digits):
    """Rounded up at this many digits after the point, forgiving float dust."""
    return math.ceil(value * 10**digits - 1e-6) / 10**digits


def test_the_promise():
    table = rows("privacy.md", "odds between two answers")
    assert len(table) == 4
    for epsilon, odds, guess, bits in table:
        assert number(odds) == up(odds_factor(epsilon), 1 if float(epsilon) > 2 else 2)
        assert number(guess) == up(100 * best_guess(epsilon, 0.5), 1)
        assert number(bits) == up(mutual_information(epsilon) / math.log(2), 2)


def test_many_reports():
    table = rows("privacy.md", "concentrated | Renyi")
    assert len(table) == 5
    for reports, *values in table:
        count, epsilon = re.fullmatch(r"([0-9,]+) at ([0-9.]+)", reports).groups()
        totals = {t.rule: t.epsilon for t in every_rule({Fraction(epsilon): int(count.replace(",", ""))}, 1e-6)}
        for text, rule in zip(values, ("basic", "advanced", "zcdp", "renyi", "optimal"), strict=True):
            shown = number(text)
            assert shown == up(totals[rule], 1 if shown > 50 else 2), (reports, rule)


def test_the_numbers_in_the_text():
    text = (DOCS / "privacy.md").read_text("utf-8")
    for users, shown in ((10**4, "0.0531"), (10**5, "0.0153"), (10**6, "0.00434")):
        assert shown in text
        assert up(shuffled(1, users, 1e-6).epsilon, len(shown) - 2) == float(shown)
    assert up(hidden_epsilon(1, 0.1), 2) == 0.16
    assert up(mutual_information(1), 4) == 0.1234


def test_what_a_relay_is_worth(request):
    """The column of 100,000; --slow: all of them, and the largest local epsilon that the page speaks of."""
    table = rows("anonymity.md", "mechanism | local | 10,000")
    assert len(table) == 6
    for mechanism, local, *values in table:
        asked = relay_rows._hash(local) if mechanism.startswith("linear-hash") else local
        for users, shown in zip((10**4, 10**5, 10**6), values, strict=True):
            if users == 10**5 or request.config.getoption("--slow"):
                assert up(shuffled(asked, users, 1e-6).epsilon, len(shown) - 2) == float(shown)
    assert "a local epsilon of 9 would be worth about 0.4" in " ".join((DOCS / "anonymity.md").read_text().split())
    assert 0.35 < shuffled(LinearHash(Epsilon("9"), 4093, 4093, 2), 10**6, 1e-6).epsilon < 0.45


def test_what_a_relay_is_worth_to_each_mechanism(request):
    table = rows("anonymity.md", "mechanism | 1 | 2 | 4")
    for column, text in enumerate(("1", "2", "4"), start=1):
        if text != "2" and not request.config.getoption("--slow"):
            continue
        found = {label: shuffled(mechanism, 10**5, 1e-6).epsilon for label, mechanism in relay_rows._others(text)}
        named = {name.strip(): line[column] for line in table for name in line[0].split(";")}
        assert named.keys() == found.keys()
        for label, shown in named.items():
            assert up(found[label], len(shown) - 2) == float(shown), label


@pytest.mark.long
def test_what_a_relay_is_worth_over_a_schedule(request):
    """The first and the last line; --slow: all of them."""
    table = rows("anonymity.md", "reports of a device | local")
    assert len(table) > 2
    for count, local, apart, together in table if request.config.getoption("--slow") else (table[0], table[-1]):
        assert up(compose({Fraction(1): int(count)}, 1e-6).epsilon, 1) == number(local)
        for shown, found in ((apart, batches), (together, grouped)):
            assert up(found(relay_rows._hash("1"), 10**5, int(count), 1e-6).epsilon, len(shown) - 2) == number(shown)


def test_three_ways_to_ask_for_attributes():
    """By the formulas, to the two digits of the page."""
    for epsilon, composed, split, outside in rows("numbers.md", "composed response | each attribute"):
        maker = ComposedResponse(Epsilon(epsilon), 1 << 10, **composed_response.design(epsilon, 10))
        far = [report for report in range(1 << 10) if not maker.low <= report.bit_count() <= maker.high]
        rest = float(sum(maker.probability(0, report) for report in far))
        assert number(outside) == up(100 * rest, 1)
        assert rest == pytest.approx(float(maker.beta), rel=1e-9)
        assert 0.18 < rest < 0.49  # as the docstring of composed_response says
        e, kept = float(epsilon), float(maker.eigenvalue(1))
        # The page's users hold the attributes with shares from 0.05 to 0.95, so f (1 - f) is 0.17 on average.
        sampled = 10 / (4 * math.sinh(e / 2) ** 2) + 9 * 0.168
        assert number(composed) == pytest.approx((1 / kept**2 - 1) / 4 / sampled, rel=0.02)
        apart = 1 / math.tanh(e / 20)
        assert number(split) == pytest.approx((apart**2 - 1) / 4 / sampled, rel=0.02)


def test_splitting_epsilon_against_the_other_two():
    """Never better than composed response; better than sampling at a large epsilon for few attributes."""
    text = " ".join((DOCS / "numbers.md").read_text("utf-8").split())
    for k in (2, 3, 10):
        for epsilon in ("0.25", "1", "2", "4", "8"):
            maker = ComposedResponse(Epsilon(epsilon), 1 << k, **composed_response.design(epsilon, k))
            apart = 1 / math.tanh(float(epsilon) / 2 / k)
            assert 1 / float(maker.eigenvalue(1)) <= apart * (1 + 1e-9)
    split = (1 / math.tanh(1) ** 2 - 1) / 4
    sampled = 2 / (4 * math.sinh(2) ** 2) + 1 / 4
    assert f"with two attributes at eps = 4 it has {split / sampled:.2f} times its variance" in text


def test_a_delta_is_no_bound_on_the_loss():
    """365 reports at eps 1: the loss exceeds the total at delta = 1e-6 with a larger probability than delta."""
    (total,) = [t.epsilon for t in every_rule({Fraction(1): 365}, 1e-6) if t.rule == "optimal"]
    truths = stats.binom(365, math.e / (1 + math.e))
    assert truths.sf(math.floor((365 + total) / 2)) > 1.5e-6


def test_averages_against_the_hybrid_mechanism():
    text = (DOCS / "numbers.md").read_text("utf-8")
    assert "1.00 at eps = 0.5, 1.09 at 1, 0.96 at 2, 0.73 at 4" in " ".join(text.split())
    for epsilon, shown in (("0.5", 1.00), ("1", 1.09), ("2", 0.96), ("4", 0.73)):
        e, plan = float(epsilon), bounded_number.design(epsilon)
        z, bit = math.exp(e / 2), ((math.exp(e) + 1) / (math.exp(e) - 1)) ** 2
        hybrid = bit if e <= 0.61 else (z + 3) / (3 * z * (z - 1)) + bit / z
        mine = 4 * Window(Epsilon(epsilon), plan["answers"], plan["window"]).worst_variance
        assert mine / hybrid == pytest.approx(shown, abs=0.006)


def test_the_price_of_purity():
    maker = GenProt(Epsilon("1"), 102, bytes(range(32)), **design("1"))
    assert maker.realised_epsilon * 1e9 / maker.base == pytest.approx(8.0, abs=0.05)
    assert price(maker) == pytest.approx(1500, rel=0.05)
    distance, bound = total_variation(maker, 101)
    assert (distance, bound) == (pytest.approx(4.6e-6, rel=0.02), pytest.approx(5.7e-3, rel=0.02))


def test_every_leak_has_its_line():
    table = rows("audit.md", "lower bound from outside")
    assert len(table) == len(BROKEN)
    for line, leaky in zip(table, BROKEN, strict=True):
        assert number(line[1]) == float(leaky.epsilon)
        exact = leaky.law().pure
        assert ("no epsilon" in line[2]) == math.isinf(exact)
        if math.isfinite(exact):
            assert number(line[2]) == pytest.approx(exact, abs=0.01)
