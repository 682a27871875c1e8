"""The audits by shifts: every release keeps its price, what is printed does not, and every kind has a row."""

import itertools
from fractions import Fraction

import pytest

from benchmarks.curator import audits, audits_ranges, audits_shifts, workloads, wrong
from benchmarks.curator.audits_shifts import LABELLED, NoNoise, mwem_loss, selection_loss, shift_loss, text_loss
from benchmarks.curator.queries import audits as queries_audits
from benchmarks.curator.queries import sets
from ldp_server.curator.kinds import KINDS
from ldp_server.curator.releases.base import CentralMechanism
from ldp_server.curator.releases.histogram import GaussianHistogram, LaplaceHistogram
from ldp_server.curator.releases.learning.counted import CountedCutLearner
from ldp_server.curator.releases.partial.strings import FrequentStrings
from ldp_server.curator.workloads.kinds import WORKLOAD_KINDS
from ldp_server.curator.workloads.mwem import MwemTables

ONE, TWO = Fraction(1), Fraction(2)
CITIES = [("rome",), ("oslo",), (None,)]


@pytest.fixture(scope="module")
def found():
    return list(audits_shifts.rows())


def test_every_row_keeps_its_target(found):
    assert [row.name for row in found if not row.ok] == []
    assert sum(row.name.startswith("control") for row in found) == 2
    assert sum(row.name.startswith("audit") for row in found) >= 11


def test_an_audit_by_shifts_knows_the_loss_of_a_histogram():
    """Two of three counts move by one: two over the scale, and two squares over twice the variance."""
    assert shift_loss(LaplaceHistogram(("rome", "oslo"), ONE), CITIES, 2) == pytest.approx(1)
    assert shift_loss(wrong.AddRemoveHistogram(("rome", "oslo"), ONE), CITIES, 2) == pytest.approx(2)
    assert shift_loss(GaussianHistogram(("rome", "oslo"), ONE), CITIES, 2) == pytest.approx(1)


class Half(CountedCutLearner):
    """Noise of half the scale."""

    @property
    def scale(self):
        return super().scale / 2


def test_too_little_noise_is_caught():
    assert shift_loss(CountedCutLearner((1, 2), ONE), LABELLED, 2) <= 1.000001
    assert shift_loss(Half((1, 2), ONE), LABELLED, 2) == pytest.approx(2)
    texts = FrequentStrings(64, Fraction(1, 20), ONE, calibrated=True)
    assert 0.99 < text_loss(texts) <= 1.001


def test_printed_weights_of_mwem_cost_up_to_twice():
    right, printed = (kind(audits_shifts.SINGLES, TWO) for kind in (MwemTables, wrong.PrintedMwem))
    assert 0.3 < selection_loss(right, TWO) <= 1.001
    assert 1.2 < selection_loss(printed, TWO) <= 2 * selection_loss(right, TWO) + 1e-9
    assert 0.3 < mwem_loss(MwemTables(audits_shifts.SINGLES, Fraction(8), rounds=1, steps=1)) / 8 <= 1.001


def test_draws_that_depend_on_the_records_do_not_fit_this_audit():
    class Sees(LaplaceHistogram):
        def run(self, records, draws):
            draws.laplace([0] * (1 + records.count("rome")), 1.0)
            return super().run(records, draws)

    with pytest.raises(AssertionError, match="does not fit"):
        shift_loss(Sees(("rome",), ONE), CITIES, 2)
    for asked in (NoNoise().select, NoNoise().exponential):
        with pytest.raises(AssertionError):
            asked([1, 2], 1.0)


def classes(of=CentralMechanism):
    """All central mechanisms of the project."""
    for one in of.__subclasses__():
        yield one
        yield from classes(one)


@pytest.mark.long
def test_every_kind_of_release_has_an_audit_row(found):
    """A row names the kind, or the class that makes it. Whoever adds a kind adds a row."""
    every = [*found, *audits.rows(), *audits_ranges.rows(), *workloads._audits(), *queries_audits.rows()]
    every += itertools.islice(sets.rows(), 2)  # the others are accuracies
    names = [row.name.removeprefix("audit, ") for row in every if row.name.startswith("audit, ")]
    missing = []
    for kind in (*KINDS, *WORKLOAD_KINDS):
        made_by = {one.__name__ for one in classes() if getattr(one, "kind", None) == kind}
        if not any(name.split(":")[0].split(",")[0].split(" (")[0] in {kind, *made_by} for name in names):
            missing.append(kind)
    assert missing == []
    assert all(row.ok for row in every if row.target)
