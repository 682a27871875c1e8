"""What all plots share: colours, letters, and the way from a figure to an SVG.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart. Every series also has its own marker and
dash, so that nothing depends on colour. Letters are drawn as shapes, so that a page needs no fonts. Matplotlib comes
with the extra `plots`; without it a report has its tables and says what is missing.
"""

from __future__ import annotations

import html
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ldp_server.tables.plots.glyphs import drawable, families
from ldp_server.tables.words import printable

__all__ = ["COLOURS", "DASHES", "MARKERS", "THEORY", "Canvas", "canvas", "have_plots"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
THEORY = "#555555"
_LONGEST, _LONGEST_TITLE = 24, 80
"""Characters of a label and of a title that are drawn."""
_STYLE: Any = {
    "svg.fonttype": "path",
    "svg.hashsalt": "hearsay",
    "text.parse_math": False,  # a dollar sign in an item does not start a formula
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.constrained_layout.use": True,
}


def have_plots() -> bool:
    """Whether matplotlib is installed."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return False
    return True


@dataclass
class Canvas:
    """A figure and its axes."""

    figure: Any
    axes: list[Any]
    _true: dict[str, str] = field(default_factory=dict)
    """The true text of each part that is drawn shortened or with escapes, by the part's name in the SVG."""
    finished: str = ""
    """The SVG, once `finish` has made it."""

    def rows(self, axes: Any, labels: list[str]) -> None:
        """Label the rows of a plot, the first one on top; a label that is drawn differently keeps its text as title."""
        axes.set_yticks(range(len(labels)), [_label(label) for label in labels])
        axes.set_ylim(len(labels) - 0.4, -0.6)
        self._keep(axes.get_yticklabels(), labels)

    def columns(self, axes: Any, labels: list[str]) -> None:
        """Label the columns of a plot in the same way."""
        axes.set_xticks(range(len(labels)), [_label(label) for label in labels], rotation=30, ha="right")
        self._keep(axes.get_xticklabels(), labels)

    def names(self, axes: Any, handles: list[Any], labels: list[str]) -> None:
        """Name lines in a legend in the same way."""
        texts = axes.legend(handles, ["line"] * len(handles), loc="best", handlelength=2.8).get_texts()
        for text, label in zip(texts, labels, strict=True):
            text.set_text(_label(label))
        self._keep(texts, labels)

    def title(self, text: str, below: str) -> None:
        """Write a title, shortened where it is too long, and a smaller line below it."""
        heading = self.figure.suptitle(_label(text, _LONGEST_TITLE), x=0.01, ha="left", fontsize=11)
        self._keep([heading], [text])
        self.axes[0].set_title(below, loc="left", fontsize=8.5)

    def finish(self) -> None:
        """Make the SVG while the style of the plots holds."""
        self.finished = self.svg()

    def _keep(self, texts: Iterable[Any], labels: Iterable[str]) -> None:
        """Keep the true text of what is drawn differently."""
        for text, label in zip(texts, labels, strict=True):
            if text.get_text() != label:
                name = f"label-{len(self._true)}"
                text.set_gid(name)
                self._true[name] = label

    def svg(self) -> str:
        """Return the figure as SVG, the same text for the same figure."""
        stream = io.StringIO()
        self.figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
        text = stream.getvalue()
        for name, true in self._true.items():
            text = text.replace(f'<g id="{name}">', f'<g id="{name}"><title>{html.escape(printable(true))}</title>', 1)
        return text[text.index("<svg") :]


def _label(text: str, most: int = _LONGEST) -> str:
    """An item as it is drawn."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return drawable(printable(short))


@contextmanager
def canvas(width: float, height: float, shape: tuple[int, int] = (1, 1), texts: Iterable[str] = ()) -> Iterator[Canvas]:
    """Give a figure with a grid of axes, in fonts that have the characters of `texts`."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - as above
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    with mpl.rc_context({**_STYLE, "font.family": families(texts)}):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        yield Canvas(figure, figure.subplots(*shape, squeeze=False).ravel().tolist())
