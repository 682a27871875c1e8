"""The one door to OpenDP: every draw and every selection of the curator goes through its exact samplers.

The samplers work on integers with rational arithmetic and random bits of the operating system; no float decides an
outcome. Before each use the library's own privacy map is asked, and must agree with ours. Before 0.16 its noisy maximum
spent four times what it claimed under zCDP, so older versions are refused.

No other module imports opendp: a contract of import-linter holds the door.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

from ldp_client.errors import InvalidSpec
from ldp_server.curator.draws import Draws
from ldp_server.tables.extras import library

__all__ = ["ExactDraws", "library_version"]

_OLDEST = (0, 16)
_LARGEST = 1 << 62
_AGREE = 1 + 1e-9


@cache
def _opendp() -> Any:
    library("opendp", "curator", "the curator")
    import opendp.prelude as found  # noqa: PLC0415 - a missing library is reported with what installs it

    if tuple(int(part) for part in library_version().split(".")[:2]) < _OLDEST:
        raise InvalidSpec(f"opendp {library_version()} is too old for the curator: pip install 'hearsay[curator]'")
    found.enable_features("contrib")
    return found


@cache
def library_version() -> str:
    """Return the version of OpenDP that draws."""
    library("opendp", "curator", "the curator")
    return version("opendp")


def _vector(dp: Any) -> Any:
    return dp.vector_domain(dp.atom_domain(T="i64"))


def _agreed(measurement: Any, moved: float, price: float) -> Any:
    """Return a measurement whose own privacy map allows what we charge for it."""
    if not measurement.map(moved) <= price * _AGREE:
        raise InvalidSpec(f"opendp {library_version()} states a larger loss than is charged here: report this")
    return measurement


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    dp = _opendp()
    return _agreed(dp.m.make_laplace(_vector(dp), dp.l1_distance(T="i64"), scale=scale), 1, 1 / scale)


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Any:
    dp = _opendp()
    return _agreed(dp.m.make_gaussian(_vector(dp), dp.l2_distance(T="f64"), scale=sigma), 1.0, 0.5 / sigma / sigma)


@lru_cache(maxsize=64)
def _permute_and_flip(scale: float) -> Any:
    dp = _opendp()
    made = dp.m.make_noisy_max(_vector(dp), dp.linf_distance(T="i64"), dp.max_divergence(), scale=scale)
    return _agreed(made, 1, 2 / scale)


@lru_cache(maxsize=64)
def _exponential(scale: float) -> Any:
    dp = _opendp()
    made = dp.m.make_noisy_max(_vector(dp), dp.linf_distance(T="i64"), dp.zero_concentrated_divergence(), scale=scale)
    return _agreed(made, 1, 0.5 / scale / scale)


def _draw(sampler: Callable[[float], Any], values: Sequence[int], scale: float) -> Any:
    if not 0 < scale < math.inf:
        raise InvalidSpec("the noise of this release would be infinite: give a larger epsilon or rho")
    found = [int(value) for value in values]
    if not found or max(map(abs, found)) >= _LARGEST:
        raise InvalidSpec("noise is added to at least one number, and to none beyond 2^62")
    return sampler(scale)(found)


class ExactDraws(Draws):
    """The samplers of OpenDP."""

    def laplace(self, values: Sequence[int], scale: float) -> list[int]:
        return [int(value) for value in _draw(_laplace, values, scale)]

    def gaussian(self, values: Sequence[int], sigma: float) -> list[int]:
        return [int(value) for value in _draw(_gaussian, values, sigma)]

    def select(self, scores: Sequence[int], scale: float) -> int:
        return int(_draw(_permute_and_flip, scores, scale))

    def exponential(self, scores: Sequence[int], scale: float) -> int:
        return int(_draw(_exponential, scores, scale))

    def uniform(self, count: int) -> int:
        return secrets.randbelow(count)
