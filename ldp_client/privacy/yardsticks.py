"""The smallest errors that are possible or known: what plots, planners and benchmarks are compared with.

n users, epsilon a report, |X| = `size` items, beta the probability of failing anywhere.

- `v_opt`: 4e/(e-1)^2, the best per-user variance known for estimating the count of an item that nobody holds
- `sigma_opt`: sqrt(n v_opt), its standard deviation over n users
- `d_opt`: sigma_opt sqrt(2 ln(2|X|/beta)), the error that such an oracle has on *every* item of X at once with
  probability 1 - beta. For a large X nobody can compute all these estimates. It still says which items a one-round
  protocol may be able to list, so thresholds are given as multiples of it.
- `optimal_scan_error`: the same, exactly: the (1 - beta) quantile of the largest of |X| independent normal errors
- `lower_bound_shape`: (1/eps) sqrt(n ln(|X|/beta)), the shape of the lower bound for every non-interactive protocol,
  valid for eps = O(1) only. **Its constant is unknown**: draw it as a shape with that label, never as a lower limit.
"""

from __future__ import annotations

import math

from ldp_client.errors import InvalidSpec
from ldp_client.privacy.rounding import Number, positive, probability

__all__ = ["d_opt", "lower_bound_shape", "normal_tail_quantile", "optimal_scan_error", "sigma_opt", "v_opt"]


def v_opt(epsilon: Number) -> float:
    """Return 4e/(e-1)^2 = 1/sinh(eps/2)^2."""
    return math.sinh(positive(epsilon, "epsilon") / 2) ** -2


def sigma_opt(users: float, epsilon: Number) -> float:
    """Return sqrt(n v_opt)."""
    return math.sqrt(_users(users) * v_opt(epsilon))


def d_opt(users: float, epsilon: Number, size: int, beta: float = 0.05) -> float:
    """Return sigma_opt sqrt(2 ln(2|X|/beta)); `size` may be as large as 2^4096."""
    return sigma_opt(users, epsilon) * math.sqrt(2 * _log_items(2 * size, beta))


def optimal_scan_error(users: float, epsilon: Number, size: int, beta: float = 0.05) -> float:
    """Return the error that an optimal oracle on all of X exceeds for some item with probability beta exactly.

    P[max |error| <= t] = (1 - 2Q(t/sigma))^|X| = 1 - beta, errors taken as independent normals.
    """
    items = _items(size)
    each = -math.log1p(-probability(beta, "beta"))  # 2Q is about each/|X|
    log_tail = math.log(each) - math.log(items) - math.log(2)
    if items < 1 << 30:
        log_tail = math.log(-math.expm1(-each / items) / 2)
    return sigma_opt(users, epsilon) * normal_tail_quantile(log_tail)


def lower_bound_shape(users: float, epsilon: Number, size: int, beta: float = 0.05) -> float:
    """Return (1/eps) sqrt(n ln(|X|/beta)): a shape with an unknown constant, for eps of order 1 or less."""
    return math.sqrt(_users(users) * _log_items(size, beta)) / positive(epsilon, "epsilon")


def normal_tail_quantile(log_tail: float) -> float:
    """Return t with ln P[N(0,1) > t] = log_tail <= ln(1/2), by bisection; erfc's range does not limit it."""
    low, high = 0.0, math.sqrt(-2 * log_tail) + 1.0
    while high - low > 1e-13 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _log_normal_tail(middle) > log_tail else (low, middle)
    return (low + high) / 2


def _log_normal_tail(t: float) -> float:
    if t < 20:
        return math.log(math.erfc(t / math.sqrt(2)) / 2)
    # Mills' ratio as a continued fraction: 1/(t + 1/(t + 2/(t + 3/(t + ...)))); 40 terms are exact beyond t = 20.
    fraction = t
    for term in range(40, 0, -1):
        fraction = t + term / fraction
    return -t * t / 2 - math.log(2 * math.pi) / 2 - math.log(fraction)


def _users(users: float) -> float:
    if not 0 < users < math.inf:
        raise InvalidSpec("the number of users must be above 0")
    return users


def _items(size: int) -> int:
    if size < 1:
        raise InvalidSpec("a domain has at least one item")
    return size


def _log_items(size: int, beta: float) -> float:
    return math.log(_items(size)) - math.log(probability(beta, "beta"))
