"""SVG elements, scales and axes.

An element takes its attributes by name; `_` stands for `-`, and `class_` for `class`. Every text and every value is
escaped. Colours are classes, so that one style sheet serves light, dark and
print; a downloaded chart has `STYLE` in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

__all__ = ["STYLE", "Scale", "compact", "cut", "element", "picture", "text_at"]

STYLE = """
svg{font:13px system-ui,sans-serif;background:#fff}
text{fill:#1d2733}.minor{fill:#566270;font-size:12px}.grid{stroke:#e3e7ec}.axis{stroke:#8a94a0}
.whisker{stroke:#2f6db5;stroke-width:2}.dot{fill:#1b5aa6}.bar{fill:#8db4de}.bar-edge{stroke:#1b5aa6}
.unsure .whisker{stroke:#8a94a0}.unsure .dot{fill:#fff;stroke:#6b7683;stroke-width:1.5}
.no .whisker{stroke:#b9833a}.no .dot{fill:#9a6213}
.reports .whisker{stroke:#566270}.reports .dot{fill:#fff;stroke:#1b5aa6;stroke-width:1.6}
.volunteers .whisker{stroke:#7a3fa0}.volunteers .dot{fill:#7a3fa0}
.noise{fill:#eceff3}.threshold{stroke:#b3261e;stroke-width:1.5;stroke-dasharray:5 4}.threshold-text{fill:#b3261e}
.truth{stroke:#0b7a3e;stroke-width:2.5}.quantile{stroke:#7a3fa0;stroke-width:1.5}.quantile-text{fill:#7a3fa0}
.quantile-reach{stroke:#7a3fa0;stroke-width:5;opacity:.35}.cell{stroke:#fff}.on-dark{fill:#fff}.line{fill:none;stroke:#1b5aa6;stroke-width:2}
.band{fill:#1b5aa6;opacity:.16}
.shade-0{fill:#eceff3}.shade-1{fill:#dbe8f6}.shade-2{fill:#c4daf0}.shade-3{fill:#a9c9e9}.shade-4{fill:#8cb5e0}
.shade-5{fill:#6fa1d6}.shade-6{fill:#3f7cc0}.shade-7{fill:#2b68ae}.shade-8{fill:#1c549a}.shade-9{fill:#113f7d}
.series-0 .series-line,.series-0 .series-alone{stroke:#1b5aa6}
.series-0 .series-band,.series-0 .series-dot{fill:#1b5aa6}
.series-1 .series-line,.series-1 .series-alone{stroke:#b3561e;stroke-dasharray:7 3}
.series-1 .series-band,.series-1 .series-dot{fill:#b3561e}
.series-2 .series-line,.series-2 .series-alone{stroke:#0b7a3e;stroke-dasharray:2 3}
.series-2 .series-band,.series-2 .series-dot{fill:#0b7a3e}
.series-3 .series-line,.series-3 .series-alone{stroke:#7a3fa0;stroke-dasharray:9 3 2 3}
.series-3 .series-band,.series-3 .series-dot{fill:#7a3fa0}
.series-4 .series-line,.series-4 .series-alone{stroke:#a3221b;stroke-dasharray:12 3}
.series-4 .series-band,.series-4 .series-dot{fill:#a3221b}
.series-5 .series-line,.series-5 .series-alone{stroke:#566270;stroke-dasharray:4 2}
.series-5 .series-band,.series-5 .series-dot{fill:#566270}
g .series-dot.part{fill:#fff;stroke:#6b7683;stroke-width:1.6}
.series-line{fill:none;stroke-width:2}.series-alone{stroke-width:2}.series-band{opacity:.15}
""".strip()
"""The light palette. static/pages.css has the same classes, also for dark screens."""


def element(name: str, *inside: str, **attributes: object) -> Markup:
    """Return an element; what goes inside is escaped unless it is markup already."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(inside)
    whole = f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"
    return Markup(whole)  # noqa: S704 - the values and the content were escaped above, the names are ours


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def text_at(x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> Markup:
    """Return a line of text."""
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=kind or None)


def picture(size: tuple[float, float], title: str, description: str, inside: Iterable[Markup], kind: str) -> Markup:
    """Return a chart. A screen reader says its title and description; the numbers are in the table below it."""
    width, height = size
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *inside,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_value(float(width))} {_value(float(height))}",
        role="img",
        aria_label=f"{title}. {description}",
        class_=f"chart {kind}",
    )


@dataclass(frozen=True)
class Scale:
    """From values to places on a line."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        part = 0.0 if span <= 0 else (min(max(value, self.low), self.high) - self.low) / span
        return self.start + part * (self.end - self.start)

    def ticks(self, about: int = 6) -> Sequence[float]:
        """Round values within the scale, about so many."""
        span = self.high - self.low
        if not (math.isfinite(span) and span > 0):
            return [self.low]
        raw = span / max(1, about)
        power = 10.0 ** math.floor(math.log10(raw))
        step = next(power * one for one in (1, 2, 2.5, 5, 10) if power * one >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [step * i for i in range(first, last + 1)]


def compact(value: float, among: Sequence[float] = ()) -> str:
    """Write a number at an axis; `among` are the numbers beside it, which share its unit."""
    size = max(abs(one) for one in (value, *among))
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if name == 'k' else unit):,.6g}{name}" if value else "0"
    return f"{value:,.6g}"


def cut(text: str, most: int) -> str:
    """Shorten a label; the whole text is in its tooltip and in the table."""
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"
