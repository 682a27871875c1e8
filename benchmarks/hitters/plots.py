"""The plots of docs/heavy-hitters.md: `python -m benchmarks.hitters.plots [--runs N] [alpha] [recall]`.

`alpha` runs its experiment and then draws. `recall` draws docs/plots/recall.json, which holds the counts of measured
runs: {name: {multiple: [listed, planted]}}. Needs matplotlib (the extra `plots`).
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import matplotlib as mpl

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.expander_code import ExpanderCode, ExpanderShape
from ldp_server.heavy_hitters.paper.list_code import UniqueListRecoverableCode

__all__ = ["alpha_curve", "main"]

mpl.use("Agg")
from matplotlib import pyplot as plt

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "plots"
SHAPES = [(64, 8, 12, 4, 3), (64, 8, 16, 6, 4), (64, 8, 24, 8, 5), (64, 16, 5, 4, 2)]
STYLES = ["o-", "s--", "^-.", "v:", "D-"]


def _code(bits: int, chunk: int, teams: int, y: int, degree: int) -> ExpanderCode:
    for attempt in range(1 << 13):
        try:
            return ExpanderCode(bytes(range(32)), bits, ExpanderShape(teams, chunk, y, degree, attempt))
        except InvalidSpec as error:
            if "double edge" not in str(error):
                raise
    raise InvalidSpec("no graph")


def alpha_curve(code: ExpanderCode, bad: int, runs: int, rng: random.Random) -> float:
    """Recall of items with exactly `bad` poisoned coordinates: three items at once, five junk entries a list."""
    recover = UniqueListRecoverableCode(code, 0.49)
    found = wanted = 0
    room = code.chunk_bits + code.degree * code.hash_bits
    for _ in range(runs):
        items = [rng.getrandbits(code.bits) for _ in range(3)]
        lists: list[dict[int, int]] = [{} for _ in range(code.teams)]
        for x in items:
            dead = set(rng.sample(range(code.teams), bad))
            for m, (y, z) in enumerate(recover.encode(x)):
                lists[m].setdefault(y, rng.getrandbits(room) if m in dead else z)
        for held in lists:
            for _ in range(5):
                held.setdefault(rng.randrange(1 << code.hash_bits), rng.getrandbits(room))
        out = recover.decode([list(held.items()) for held in lists])
        for x in items:
            agree = sum(held.get(y) == z for held, (y, z) in zip(lists, recover.encode(x), strict=True))
            if agree == code.teams - bad:
                wanted += 1
                found += x in out
    return found / max(1, wanted)


def _alpha(runs: int) -> None:
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for shape, style in zip(SHAPES, STYLES, strict=False):
        code = _code(*shape)
        counts = range(code.teams - code.data + 1)
        curve = [alpha_curve(code, bad, runs, random.Random(7)) for bad in counts]
        label = f"M={code.teams}, k={code.data}, d={code.degree}, y={code.hash_bits}"
        axes.plot([bad / code.teams for bad in counts], curve, style, label=label)
    axes.set(xlabel="alpha: part of the coordinates that is poisoned", ylabel="recall", ylim=(-0.03, 1.05))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(FOLDER / "alpha.png", dpi=90)


def _recall() -> None:
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for (name, points), style in zip(
        json.loads((FOLDER / "recall.json").read_text()).items(), STYLES * 2, strict=False
    ):
        x = sorted(map(float, points))
        share = [points[f"{m:g}"][0] / points[f"{m:g}"][1] for m in x]
        axes.plot(x, share, style, label=f"{name} ({points[f'{x[0]:g}'][1]} a point)")
    axes.axhline(0.95, color="grey", lw=0.8, ls=":")
    axes.set(xlabel="frequency / D_opt", ylabel="recall", ylim=(0, 1.03))
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(FOLDER / "recall.png", dpi=90)


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description="Draw the plots of docs/heavy-hitters.md.")
    parser.add_argument("names", nargs="*", default=[], choices=["alpha", "recall", []])
    parser.add_argument("--runs", type=int, default=200)
    chosen = parser.parse_args()
    names = chosen.names or ["alpha", "recall"]
    FOLDER.mkdir(parents=True, exist_ok=True)
    if "alpha" in names:
        _alpha(chosen.runs)
    if "recall" in names:
        _recall()


if __name__ == "__main__":
    main()
