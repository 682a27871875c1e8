"""Planning: how many users, and which epsilon? Run `python examples/planning.py`.

No server and no real user are needed. The first two tables come from formulas. The last step simulates users, to see
whether the formula was right.
"""

from __future__ import annotations

import math

import numpy as np

from ldp_client import Categories, Collection, Strings
from ldp_client.privacy.information import best_guess
from ldp_server.answers import estimates
from ldp_server.answers.choose import Alternative, choose
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters.planner import plan
from ldp_server.oracles import oracle_for
from simulator import crowd

CITIES = 500
WANTED = 0.01
USERS = (10_000, 100_000, 1_000_000)


def frequencies() -> None:
    """How exactly do we learn the share of each of 500 cities?"""
    print(f"Which of {CITIES} cities do you live in? The 95% interval of one city's share is the estimate +-:\n")
    print("  epsilon   50% guess, at most   10,000 users    100,000 users  1,000,000 users  mechanism")
    for epsilon in ("0.5", "1", "2", "4"):
        found = [choose(users, CITIES + 1, epsilon) for users in USERS]
        errors = [f"{1.96 * best.standard_error / users:15.2%}" for best, users in zip(found, USERS, strict=True)]
        guess = math.ceil(best_guess(epsilon, 0.5) * 1000) / 1000  # a limit is rounded up
        print(f"  {epsilon:>7} {guess:>19.1%} ", *errors, f" {found[-1].mechanism}")


def users_needed() -> None:
    """How many users are needed to know a share to within a percentage point?"""
    print(f"\nUsers needed so that this interval is at most +-{WANTED:.0%}:\n")
    for epsilon in ("0.5", "1", "2"):
        users = next(n for n in _steps() if 1.96 * choose(n, CITIES + 1, epsilon).standard_error / n <= WANTED)
        print(f"  epsilon {epsilon}: about {users:,}")


def _steps() -> list[int]:
    """1,000 to 100 million in steps of 5%, rounded to two digits."""
    return [int(float(f"{1000 * 1.05**step:.1e}")) for step in range(240)]


def heavy_hitters() -> None:
    """Which strings will be found, when nobody can list the possible ones?"""
    print("\nWhich page do you start from (any string of up to 32 bytes)? The planner promises:\n")
    for users in USERS:
        found = plan(users, Strings(32), "1")
        print(f"  {users:>9,} users: {found.promise}")


def check(users: int = 100_000) -> Alternative:
    """Simulate the plan for epsilon = 1 and count how often the intervals hold the truth."""
    best = choose(users, CITIES + 1, "1")
    domain = Categories(tuple(f"city {i}" for i in range(CITIES)))
    question = Collection.create(
        "Where do you live?", domain, best.mechanism, "1", parameters=best.parameters, opens=0, closes=1
    )
    coins = np.random.default_rng(1)
    homes = coins.zipf(1.5, users).clip(1, CITIES).astype(np.uint64)
    oracle = oracle_for(question)
    for reports in crowd.simulate(question.randomizer, homes, seed=1):
        oracle.accumulate(pack(reports, question.randomizer.report_bytes))
    truth = np.bincount(homes.astype(np.intp), minlength=CITIES + 1)
    rows = [row for row in estimates.every_item(question, oracle).rows if row.item is not None]
    held = [int(truth[domain.index(row.item)]) for row in rows]
    inside = sum(row.low <= users <= row.high for row, users in zip(rows, held, strict=True))
    error = np.sqrt(np.mean([(row.estimate - users) ** 2 for row, users in zip(rows, held, strict=True)]))
    print(f"\nSimulated with {users:,} users at epsilon = 1 ({best.mechanism}):\n")
    print(f"  promised error of an estimate: {best.standard_error:,.0f} users; measured: {error:,.0f} users")
    print(f"  95% intervals that hold the truth: {inside / len(rows):.1%} of {len(rows)}")
    return best


def main() -> None:
    """From a question to a plan."""
    frequencies()
    users_needed()
    heavy_hitters()
    check()


if __name__ == "__main__":
    main()
