"""The arithmetic of the curator's benchmark."""

import itertools

import numpy as np

from benchmarks.curator import hybrid


def test_cells_of_pairs_follow_from_parities():
    rng = np.random.default_rng(4)
    people = (rng.random((500, hybrid.ATTRIBUTES)) < 0.4).astype(np.int8)
    found = hybrid._cells(np.array([hybrid._odd(people, part).mean() for part in hybrid.PARITIES]))
    truth = [
        ((people[:, a] == x) & (people[:, b] == y)).mean()
        for a, b in itertools.combinations(range(hybrid.ATTRIBUTES), 2)
        for x in (0, 1)
        for y in (0, 1)
    ]
    assert np.allclose(found, truth)


def test_the_reports_of_a_hybrid_are_unbiased_with_the_stated_variance():
    people = np.zeros((36_000, hybrid.ATTRIBUTES), np.int8)
    z = [one.count / one.variance**0.5 for k in range(5) for one in hybrid._local(people, np.random.default_rng(k))]
    assert abs(np.mean(z)) < 0.3
    assert 0.85 < np.std(z) < 1.15
