"""Compiled channels: the time of the linear programme and of the device's proof, how near tables are to the optimum.

Times are also given as multiples of randomized response's own construction for as many answers, in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from benchmarks.row import Options, Row, row
from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.protocol.epsilon import Epsilon
from ldp_server.planning.channels import ChannelGoal, compile_channel, line_distances, named_loss

__all__ = ["run"]

ELEMENTS = 30
EPSILON = Epsilon("4")


def _seconds(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return median(found)


def run(options: Options) -> Iterator[Row]:
    """Measure them; `--full` takes ten times the repetitions."""
    times = 50 if options.full else 5
    stick = ("randomized response of 30 answers, ms", 1e3 * _seconds(lambda: Response(EPSILON, ELEMENTS), 200 * times))
    for loss in ("truth", "absolute", "squared"):
        for metric, distances in (("equal", ()), ("line", line_distances(ELEMENTS))):
            goal = ChannelGoal(EPSILON, named_loss(loss, ELEMENTS), distances)
            found = compile_channel(goal)  # imports the solver
            seconds = _seconds(lambda goal=goal: compile_channel(goal), times)  # type: ignore[misc]
            yield row(f"{loss}, {metric}: compile {ELEMENTS} x {ELEMENTS}, processor", seconds, "s", "<= 2")
            off = found.expected_loss / found.least_loss
            yield row(f"{loss}, {metric}: expected loss over the programme's optimum", off, "ratio", "<= 1.01")
            made = found.randomizer
            proof = _seconds(
                lambda made=made: CompiledChannel(made.epsilon, made.size, made.weights, made.distances),  # type: ignore[misc]
                20 * times,
            )
            yield row(f"{loss}, {metric}: the device's proof, processor", 1e3 * proof, "ms", "<= 10", stick)
    yield from _known()


def _known() -> Iterator[Row]:
    k = ELEMENTS
    response = Response(EPSILON, k)
    known = np.array([[response.weight(x, y) / 2**64 for y in range(k)] for x in range(k)])
    found = compile_channel(ChannelGoal(EPSILON, named_loss("truth", k)))
    table = np.array([[weight / 2**64 for weight in line] for line in found.randomizer.lines])
    yield row("truth, equal: largest difference from randomized response", np.abs(table - known).max(), "", "<= 1e-12")
    points = np.arange(k)
    distances = tuple(z - x for x in range(k) for z in range(x + 1, k))
    alpha = np.exp(-float(EPSILON) / (k - 1))
    known = (1 - alpha) / (1 + alpha) * alpha ** np.abs(points[:, None] - points)
    known[:, [0, -1]] /= 1 - alpha
    found = compile_channel(ChannelGoal(EPSILON, named_loss("truth", k), distances))
    table = np.array([[weight / 2**64 for weight in line] for line in found.randomizer.lines])
    yield row("truth, line: largest difference from the truncated geometric law", np.abs(table - known).max(), "")
