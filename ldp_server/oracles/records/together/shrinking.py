r"""Tables whose effects are moved towards simpler ones, as far as noise alone explains the difference.

Let e_S be the pooled estimate of the effect of the fields S (pooled.py), v_S the variance of each of its d_S free
numbers, and t_S the effect of S if its fields were independent: the product of the effects of the single fields, over
n^(|S|-1). Singles are known from all tables that have them, so t_S has little noise. The rest r_S = e_S - t_S is noise
and what goes together. Of pairs of fields it may follow from a few common causes (causes.py): then it is moved towards
what they explain, else towards 0. Below, r_S is what is then left.

**The prior.** Over the sets of equally many fields, the numbers of r_S are taken to be normal with mean 0 and variance
tau^2 + v_S, tau^2 being one of a few values, each for an unknown part of the sets. These parts are those that make the
estimates most likely (EM; Stephens 2017 has the idea for single numbers). Given them, tau^2 has the probabilities q_k
for the set S, by |r_S|^2, and the mean of the true rest is w_S r_S with

    w_S = sum of q_k tau_k^2/(tau_k^2 + v_S).

So if all fields are independent, all weights are near 0; a set that clearly goes together keeps its weight near 1,
whatever the others do. With D numbers in all, 1 - w_S is multiplied by (D - 2)/D: the prior is made from the same
numbers (James and Stein 1961).

The error to be expected is, for weights that are taken as given (Stein 1981),

    sum of d_S v_S (2 w_S - 1) + (1 - w_S)^2 |r_S|^2,

and sum of d_S v_S without moving. Where less of it is gained than a twentieth, or than 1/sqrt(D), and where D is less
than 50, nothing is moved: the error of D numbers varies by sqrt(2/D) of its mean, and where nearly everything is clear,
being wrong about a few of them costs more than there is to gain.

What comes out is not unbiased. It is used for consistent values alone. Intervals, standard errors and estimates stay
those of the unbiased tables.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from ldp_server.oracles.base import Floats
from ldp_server.oracles.laws.projection import norm_sub
from ldp_server.oracles.records.parts import Places
from ldp_server.oracles.records.together.causes import LEAST_NUMBERS, least_gain, moved_towards_causes

__all__ = ["Effect", "shrunk", "weights_of"]

_STEPS = 2.0 ** np.arange(-2, 13)
"""tau^2 over the middle of the v_S, beside 0."""
_ROUNDS = 200
_STILL = 1e-6


@dataclass(frozen=True)
class Effect:
    """The estimated effect of some fields."""

    values: Floats
    variance: float
    """v_S, for the users as they are estimated to lie."""

    @property
    def free(self) -> int:
        """d_S."""
        return math.prod(size - 1 for size in self.values.shape)


def shrunk(users: int, effects: Mapping[Places, Effect]) -> dict[Places, Floats]:
    """Return the effects, moved towards simpler ones; those of single fields stay as they are."""
    singles = {places[0]: _possible(users, one.values) for places, one in effects.items() if len(places) == 1}
    found = {places: one.values for places, one in effects.items()}
    for number in sorted({len(places) for places in effects} - {1}):
        mine = {places: one for places, one in effects.items() if len(places) == number and one.free}
        targets = {places: _independent(users, [singles[place] for place in places]) for places in mine}
        rests = {places: one.values - targets[places] for places, one in mine.items()}
        moving = partial(_towards, mine)
        if number == 2:
            moved = moved_towards_causes(rests, {places: one.variance for places, one in mine.items()}, moving)
        else:
            moved = moving(rests, {places: np.zeros_like(one) for places, one in rests.items()})
        found |= {places: targets[places] + one for places, one in moved.items()}
    return found


def _towards(
    effects: Mapping[Places, Effect], rests: Mapping[Places, Floats], targets: Mapping[Places, Floats]
) -> dict[Places, Floats]:
    """Return the rests, moved towards targets by w_S."""
    apart = {places: rest - targets[places] for places, rest in rests.items()}
    squares = np.array([float(np.square(one).sum()) for one in apart.values()])
    free, variances = (np.array([getattr(effects[one], name) for one in apart], float) for name in ("free", "variance"))
    kept = weights_of(squares, free, variances).tolist()
    return {places: targets[places] + weight * one for (places, one), weight in zip(apart.items(), kept, strict=True)}


def _possible(users: int, effect: Floats) -> Floats:
    """The effect of a single field whose table is made possible."""
    even = users / len(effect)
    return norm_sub(effect + even, float(users)) - even


def _independent(users: int, singles: list[Floats]) -> Floats:
    found = singles[0]
    for one in singles[1:]:
        found = np.multiply.outer(found, one) / users
    return found


def weights_of(squares: Floats, free: Floats, variances: Floats) -> Floats:
    """Return w_S from the sum of squares of each rest, how many free numbers it has, and their variance."""
    if not len(squares) or free.sum() < LEAST_NUMBERS or not np.isfinite(variances).all():
        return np.ones(len(squares))
    taus = np.append(0.0, _STEPS * float(np.median(variances)))
    spread = taus[None, :] + variances[:, None]
    likely = -free[:, None] / 2 * np.log(spread) - squares[:, None] / (2 * spread)
    likely = np.exp(likely - likely.max(axis=1, keepdims=True))
    parts = np.full(len(taus), 1 / len(taus))
    for _ in range(_ROUNDS):
        chances = likely * parts
        chances /= chances.sum(axis=1, keepdims=True)
        new = chances.mean(axis=0)
        moved, parts = float(np.abs(new - parts).max()), new
        if moved < _STILL:
            break
    chances = likely * parts
    chances /= chances.sum(axis=1, keepdims=True)
    weights = (chances * taus / spread).sum(axis=1)
    total = float(free.sum())
    weights = 1 - (1 - weights) * (total - 2) / total
    raw = float(free @ variances)
    moved = float((free * variances) @ (2 * weights - 1) + np.square(1 - weights) @ squares)
    return np.asarray(weights if moved <= (1 - least_gain(total)) * raw else np.ones(len(squares)))
