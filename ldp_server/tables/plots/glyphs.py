r"""Which of the installed fonts draw a text, and what is drawn for characters that no font has.

Matplotlib's own font has no Chinese letters and few emoji. Other installed fonts are searched, those of PREFERRED
first. A character that no font has is drawn as an escape, such as \u4e2d.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

__all__ = ["drawable", "families"]

DEFAULT = "DejaVu Sans"
PREFERRED = (
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans SC",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Noto Emoji",
    "Symbola",
)
"""Fonts that are searched before the other installed ones."""
MOST_FONTS = 300
"""How many fonts are searched for a character."""
_JOINERS = {0x200D, *range(0xFE00, 0xFE10)}
"""Characters that only change how their neighbours look; they are left out where no font has them."""


@cache
def _installed() -> dict[str, str]:
    """Font families and their files, in the order in which they are searched; placeholder fonts are left out."""
    from matplotlib.font_manager import fontManager  # noqa: PLC0415 - an extra, and slow to import

    files = {font.name: font.fname for font in reversed(fontManager.ttflist) if "Last Resort" not in font.name}
    order = [name for name in (DEFAULT, *PREFERRED) if name in files]
    order += sorted(set(files) - set(order))
    return {name: files[name] for name in order[:MOST_FONTS]}


@cache
def _characters(file: str) -> frozenset[int]:
    """The characters of a font that can be drawn as outlines."""
    from matplotlib.font_manager import get_font  # noqa: PLC0415 - as above

    try:
        font = get_font(file)
        # Fonts of coloured bitmaps, as emoji fonts often are, have no outlines.
        return frozenset(font.get_charmap()) if font.scalable else frozenset()
    except (OSError, RuntimeError):
        return frozenset()


@cache
def _family(character: str) -> str | None:
    """The first family that has a character."""
    return next((name for name, file in _installed().items() if ord(character) in _characters(file)), None)


def families(texts: Iterable[str]) -> list[str]:
    """Return the font families that draw these texts, matplotlib's own first."""
    needed = {_family(character) for text in texts for character in text if character != "\n"}
    return [name for name in _installed() if name == DEFAULT or name in needed]


def drawable(text: str) -> str:
    """Return the text with an escape for each character that no installed font has; line ends stay."""
    return "".join(_drawn(text))


def _drawn(text: str) -> Iterator[str]:
    for character in text:
        if character == "\n" or _family(character) is not None:
            yield character
        elif ord(character) not in _JOINERS:
            yield character.encode("unicode_escape").decode("ascii")
