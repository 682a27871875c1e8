"""The audits of the benchmark, on every release about ranges, labels and attributes; what is printed is caught."""

import pytest

from benchmarks.curator.audits_ranges import all_audits, realised, rows
from ldp_server.curator.kinds import KINDS

AUDITS = all_audits()


@pytest.mark.parametrize("name", AUDITS)
def test_the_realised_epsilon_is_at_most_the_declared_one(name):
    """And it is above a twentieth: these data sets are hard for the mechanism."""
    found = realised(AUDITS[name]) / float(AUDITS[name].epsilon)
    assert 0.05 < found <= 1.001


@pytest.fixture(scope="module")
def audited():
    return list(rows())


@pytest.mark.long
def test_every_row_of_the_audits_keeps_its_target(audited):
    assert all(row.ok for row in audited if row.target)
    assert sum(row.name.startswith("control") for row in audited) == 2


@pytest.mark.long
def test_every_new_kind_is_audited(audited):
    """By name, or as one that is post-processing of an audited one, or a sum of such."""
    named = " ".join([*AUDITS, *(row.name for row in audited)])
    composed = {
        "interior-point": "recursive-quantile",
        "text-shares": "frequent-texts",
        "learn-text": "frequent-texts",
        "learn-text-threshold": "frequent-texts",
        "learn-counted": "learn-cut",
    }
    first = list(KINDS).index("recursive-quantile")
    for kind in list(KINDS)[first:]:
        assert composed.get(kind, kind) in named, kind
