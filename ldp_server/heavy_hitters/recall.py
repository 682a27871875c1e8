"""The probability that the practical decoder misses an item, as a function of the item's mean score z.

z is in units of the standard error of an item that nobody holds. The values of the item's M teams are independent and
nearly normal, about z/sqrt(M), with variance tau^2. An item alone is missed only if one of these fails, and `missed`
adds up their probabilities:

- *threshold*: its estimate lies below the bar;
- *near-copies*: in the k teams that a near-copy does not share, its evidence is too weak. Its mean is sqrt(k/M) z;
- *relatives*: an element that nobody holds and that shares a part s of the cells has a score y that is normal about s x
  with variance 1 - s^2, given the item's score x. The item is missed if the sum of R = exp((y^2 - x^2)/2) over its
  relatives exceeds the limit d. That has at most the probability of the sum of E min(R/d, 1). With y0^2 = x^2 + 2 ln d
  and the normal tail Q, the expectation is Q((y0 - s x)/sqrt(1 - s^2)) + Q((x - s y0)/sqrt(1 - s^2))/(s d);
- *balance*: the teams disagree (probability `chi_tail`), and the item does not pass when its highest teams are cut. Let
  h_m be the standardised lack of team m, and cut at c = z - d tau sqrt(M). The cut item passes the balance test if the
  sum of ((h_m - d)+)^2 is at most the test's limit, because the mean of the squares is least about the mean. Its score
  is c - tau/sqrt(M) times the sum of (h_m - d)+. The two sums have exact laws, computed as M-fold convolutions on a
  grid that is rounded up. Any d gives a bound, and the least is taken;
- *search*: in a tree, an item whose values are low in a few levels running is lost to its own near-copies (dips.py).
  An expander searches from every team: in simulations of its search no item was lost that the near-copy test would have
  listed.

The law is that of the reports' noise. It leaves out what other items do: mixtures of items that share cells, and beams
that are full of near-copies of other items. tests/server/heavy_hitters/test_recall.py compares it with the decoder's
own tests, and test_all_at_once.py with lists from crowds that are full of items.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from ldp_client.mechanisms.shared.team_sketch import TeamSketch
from ldp_client.mechanisms.tree_sketch import TreeSketch
from ldp_server.arrays.team_cells import BulkCode, bulk_code
from ldp_server.heavy_hitters.dips import Dips
from ldp_server.heavy_hitters.search.acceptance import Acceptance, Noise, Settings, limits_of
from ldp_server.heavy_hitters.search.tails import log_normal_tail, log_normal_tails, normal_quantile, normal_tails

__all__ = ["MissLaw", "miss_law"]

Floats = npt.NDArray[np.float64]

_CUTS = (0.0, 0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.7, 2.2)
"""The values of d that are tried."""
_GRID = 1 << 13
_SLOPES, _NEGLIGIBLE = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0), 1e-12
_POINTS = (np.arange(240) + 0.5) / 20 - 6.0
_WEIGHTS = np.exp(-(_POINTS**2) / 2) / (20 * math.sqrt(2 * math.pi))
_KEPT = 64  # w of the classical tree, level by level
_LEVELS = 0.4  # measured: what the classical tree's search costs beside its noise
_AGAINST = 3.5  # standard errors by which the classical tree's levels may disagree


def _tail(z: float) -> float:
    """P(N(0,1) > z)."""
    return math.exp(log_normal_tail(z))


@lru_cache(maxsize=512)  # a plan of long strings asks for 440 of them again and again; each has 64 KiB
def _sum_law(count: int, lack: float, power: int) -> tuple[float, Floats]:
    """The grid's step, and P(S >= i steps) for the sum S of `count` independent ((h - lack)+)^power, h ~ N(0,1)."""
    step = (4 * count + 60 if power == 2 else 0.5 * count + 12 * math.sqrt(count)) / _GRID
    below = 1 - normal_tails(lack + (step * np.arange(_GRID)) ** (1 / power))
    one = np.diff(below, prepend=0.0)  # the mass up to each point lies at the point: rounded up
    sums = np.fft.irfft(np.fft.rfft(one, 2 * _GRID) ** count, 2 * _GRID)
    return step, np.cumsum(np.clip(sums, 0.0, None)[::-1])[::-1]


def _sum_bound(count: int, lack: float, limit: float) -> float:
    """Chernoff's bound on P(S > limit) for the sum S of `count` independent (h - lack)+.

    E exp(t (h - lack)+) = P(h <= lack) + exp(t^2/2 - t lack) P(h <= t - lack). The table of the exact law costs a
    thousand times as much, and a code of 140 levels has 1,400 of these sums, nearly all of which are far below.
    """
    return math.exp(min(0.0, *(count * log - t * limit for t, log in zip(_SLOPES, _log_moments(lack), strict=True))))


@cache
def _log_moments(lack: float) -> tuple[float, ...]:
    """The logarithm of E exp(t (h - lack)+) for each of the slopes t."""
    return tuple(math.log(1 - _tail(lack) + math.exp(t * t / 2 - t * lack) * _tail(lack - t)) for t in _SLOPES)


def _sum_exceeds(count: int, lack: float, power: int, limit: float) -> float:
    """An upper bound on P(S > limit)."""
    if limit <= 0:
        return 1.0
    if power == 1 and _sum_bound(count, lack, limit) <= _NEGLIGIBLE:
        return _NEGLIGIBLE
    step, tails = _sum_law(count, lack, power)
    return float(tails[min(int(limit / step), len(tails) - 1)])


@dataclass(frozen=True)
class MissLaw:
    """The tests that an item must pass, and the noise."""

    noise: Noise
    bar: float
    teams: int
    copies: tuple[tuple[int, float, int], ...] = ()
    """Near-copy tests: the number of teams, the evidence that they must show, and how many such tests there are."""
    balance: tuple[float, float] | None = None
    """The limit of the balance test, and the probability with which noise exceeds it; None: there is no such test."""
    relatives: tuple[tuple[float, float], ...] = ()
    """The part of the cells that relatives share, and the logarithm of how many share it."""
    doubt: float = math.inf
    """The limit d."""
    dips: Dips | None = None
    """How the search of a tree loses items."""
    beam: tuple[tuple[float, float], ...] = ()
    """For each level of a classical tree: the mean score of the item's prefix over z, and the score that it needs."""
    levels_agree: bool = False
    """Whether an item is left out whose earlier levels contradict its last one: the classical tree."""

    def missed(self, z: float) -> float:
        """Return an upper bound on the probability that an item with mean score z is not listed."""
        spread, tau = math.sqrt(float(self.noise.spread(z))), math.sqrt(float(self.noise.team_spread(z)))
        lost = _tail((z - self.bar) / (tau if self.levels_agree else spread))  # one level's holders are random too
        lost += sum(n * _tail((math.sqrt(k / self.teams) * z - need) / tau) for k, need, n in self.copies)
        lost += sum(_tail((part * z - need) / tau) for part, need in self.beam)
        lost += self.dips.lost(z / math.sqrt(self.teams), tau) if self.dips else 0.0
        if self.levels_agree:  # ldp_server/heavy_hitters/decode.py allows a tenth of the score beside the noise
            lost += _tail(_AGAINST * math.sqrt(1 + (0.1 * z / tau) ** 2 * (1 - 1 / self.teams)))
        lost += self._doubted(z, spread)
        return min(1.0, lost + (self._unbalanced(z, tau) if self.balance else 0.0))

    def _doubted(self, z: float, spread: float) -> float:
        """The probability that an item reaches the bar and that its relatives' likelihoods exceed the limit."""
        if math.isinf(self.doubt) or not self.relatives:
            return 0.0
        points = z + spread * _POINTS
        x = points[points >= max(self.bar, math.sqrt(max(0.0, -2 * math.log(self.doubt))))]
        weights = _WEIGHTS[len(points) - len(x) :]
        part, log_count = (np.array(column)[:, None] for column in zip(*self.relatives, strict=True))
        rest, y = np.sqrt(1 - part**2), np.sqrt(x**2 + 2 * math.log(self.doubt))
        near = np.exp(log_count + log_normal_tails((y - part * x) / rest))
        far = np.exp(log_count + log_normal_tails((x - part * y) / rest)) / (part * self.doubt)
        return float(np.minimum(1.0, (near + far).sum(axis=0)) @ weights)

    def _unbalanced(self, z: float, tau: float) -> float:
        """The probability that the balance test refuses an item, and that it does not pass when cut."""
        limit, refused = self.balance or (math.inf, 0.0)
        limit *= float(self.noise.team_spread(self.bar)) / tau**2  # the cut item is tested by its own, smaller spread
        least = refused
        for d in _CUTS:
            cut = z - d * tau * math.sqrt(self.teams)
            if cut <= self.bar:
                break
            failed = _sum_exceeds(self.teams, d, 2, limit)
            failed += _sum_exceeds(self.teams, d, 1, (cut - self.bar) / tau * math.sqrt(self.teams))
            for k, need, n in self.copies:
                if failed >= least:
                    break
                failed += n * _sum_exceeds(k, d, 1, (math.sqrt(k / self.teams) * cut - need) / tau * math.sqrt(k))
            least = min(least, failed)
        return least


def miss_law(sketch: TeamSketch, decoder: str, bar: float, noise: Noise) -> MissLaw:
    """Return the law of a decoder whose least listed score is `bar`; `noise` is that of the users who estimate."""
    if decoder == "levels":
        return MissLaw(noise, bar + _LEVELS, sketch.teams, beam=_level_beam(sketch), levels_agree=True)
    code = bulk_code(sketch)
    settings = Settings(bar, **limits_of(code))
    tests = Acceptance(code, np.full(code.teams, 1 / math.sqrt(code.teams)), noise, settings)
    copies = Counter((len(teams), float(need)) for teams, need in tests.rivals)
    users, (_, s) = noise.reports / code.teams, (float(x) for x in sketch.inner.support)
    dips = Dips(sketch.code.widths, users, s) if isinstance(sketch, TreeSketch) else None
    sizes = tuple((k, need, n) for (k, need), n in copies.items())
    balance = (tests.limit, settings.chi_tail)
    return MissLaw(noise, bar, code.teams, sizes, balance, _relatives(code), settings.doubt, dips)


def _relatives(code: BulkCode) -> tuple[tuple[float, float], ...]:
    """The logarithm of how many elements share each part of the cells."""
    counts: dict[float, float] = {}
    for teams, log_count in code.near_copies():
        part = 1 - len(teams) / code.teams
        counts[part] = float(np.logaddexp(counts.get(part, -math.inf), log_count))
    return tuple(counts.items())


def _level_beam(sketch: TeamSketch) -> tuple[tuple[float, float], ...]:
    """The beam of the decoder "levels": every level alone, against the extensions of the prefixes that are kept."""
    widths = sketch.code.widths if isinstance(sketch, TreeSketch) else ()
    rivals = [(_KEPT if level else 1) << width for level, width in enumerate(widths[:-1])]
    return tuple((1.0, normal_quantile(math.log(_KEPT / count))) for count in rivals if count > _KEPT)
