"""What is proved about answers to many statistical queries, and what it takes."""

from __future__ import annotations

import math

from ldp_client.protocol.epsilon import Epsilon
from ldp_server.learning.queries import users_for_queries
from ldp_server.learning.release import proved_cut
from simulator.shapes import QueryLimits

__all__ = ["FAILURE", "query_limits", "tolerance_of"]

FAILURE = 0.05
_TOLERANCE = 0.01
_ERROR = _MISSED = 0.1


def tolerance_of(queries: int, users: int, epsilon: str) -> float:
    """Return up to what all of so many queries to fresh users are right, but for FAILURE; 1 if nothing is proved."""
    c = 1 / math.tanh(float(Epsilon(epsilon)) / 2)
    each = users // queries
    return min(1.0, c * math.sqrt(math.log(2 * queries / FAILURE) / (2 * each))) if each else 1.0


def query_limits(fields: int, sets: int, users: int, epsilon: str, levels: int) -> QueryLimits:
    """Return what holds for each method, whoever the users are."""
    cut = proved_cut(_ERROR, _MISSED)
    return {
        "tolerance": tolerance_of(sets, users, epsilon),
        "wanted_tolerance": _TOLERANCE,
        "users_for_wanted": users_for_queries(sets, _TOLERANCE, epsilon, FAILURE),
        "decomposition_error": _ERROR,
        "decomposition_missed": _MISSED,
        "decomposition_cut": cut,
        "decomposition_log10_parts": math.log10(fields) / cut,
        "threshold_step": 1 / (levels + 1),
    }
