"""candidates: a dictionary for heavy-hitters, from public texts."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click

from ldp_client.errors import InvalidSpec, unread
from ldp_client.protocol.domain import MAX_STRING_BYTES
from ldp_server.cli.connection import json_option
from ldp_server.cli.main import cli
from ldp_server.cli.shapes import CandidatesShape
from ldp_server.cli.show import number_of, print_json, progress_bar
from ldp_server.heavy_hitters.dictionary import MOST_ITEMS
from ldp_server.heavy_hitters.texts.characters import MOST_ORDER, ORDER
from ldp_server.heavy_hitters.texts.public_text import CountedText, PublicText, lines_of, sendable, tokens_of

__all__ = ["CandidatesOptions", "candidates"]

_MOST = 1_000_000
_PART = 1 << 24  # bytes

Progress = Callable[[str, float], None]


_EXAMPLE = """\b
Example:
  ldp-server candidates book.txt --longest 16 > words.txt
  ldp-server heavy-hitters ID --dictionary words.txt"""


@dataclass(frozen=True)
class CandidatesOptions:
    """The options of `ldp-server candidates`."""

    lines: bool
    lower: bool
    longest: int
    """Bytes."""
    most: int
    even: float
    """The part of all weight that every candidate has the same share of."""
    order: int
    words_only: bool


_OPTIONS = (
    click.option("--lines", is_flag=True, help="Each line is an item, a count behind a tab if you like."),
    click.option("--lower", is_flag=True, help="Make all letters small. Without it, they stay as they are."),
    click.option(
        "--longest",
        type=click.IntRange(1, MAX_STRING_BYTES),
        default=32,
        show_default=True,
        help="The most bytes of a candidate: those of the collection's domain.",
    ),
    click.option(
        "--most",
        type=click.IntRange(1, MOST_ITEMS),
        default=_MOST,
        show_default=True,
        help="The most candidates. There are fewer if so many cannot be sent.",
    ),
    click.option(
        "--even",
        type=click.FloatRange(0, 1),
        default=0.5,
        show_default=True,
        help="The part of the weight that all candidates share evenly. It bounds what a wrong prior costs; 0: the "
        "prior alone.",
    ),
    click.option(
        "--order",
        type=click.IntRange(1, MOST_ORDER),
        default=ORDER,
        show_default=True,
        help="How many characters the model looks back.",
    ),
    click.option("--words-only", is_flag=True, help="Only items of the texts, none that the model makes up."),
)


def _candidates_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of CandidatesOptions to a command, which gets them in its parameter `options`."""

    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        options = CandidatesOptions(**{field.name: given.pop(field.name) for field in fields(CandidatesOptions)})
        return command(options=options, **given)

    for option in reversed(_OPTIONS):
        gathering = option(gathering)
    return gathering


@cli.command(epilog=_EXAMPLE)
@click.argument("texts", nargs=-1, required=True, metavar="TEXT...")
@_candidates_options
@json_option
def candidates(texts: tuple[str, ...], options: CandidatesOptions, as_json: bool) -> None:
    """Make a dictionary for heavy-hitters from public texts.

    The candidates are the likeliest items under a prior: the items of the texts with their counts, mixed with a model
    of characters that has learnt from them, for items that the texts do not have. An item is what stands between white
    space, without punctuation and symbols around it; with --lines, a line.

    Standard output is the dictionary: one item a line, and its weight behind a tab, the likeliest first. Half of the
    weight is the prior, half is the same for all (--even). It is rounded to a power of two, and that to one digit.

    TEXT is a file of UTF-8 text; - is standard input. Take texts that are not made from the reports.
    """
    longest = options.longest
    with progress_bar("reading", quiet=as_json) as progress:
        counted = _counted(texts, lines_of if options.lines else tokens_of, options.lower)
        kept = {item: count for item, count in counted.counts.items() if len(item.encode()) <= longest}
        if not kept:
            raise InvalidSpec(f"the texts have no items of at most {longest} bytes")
        progress("learning", 0.1)
        prior = PublicText.of(kept, options.order)
        watch = _part(progress, "likeliest items", 0.3, 0.8)
        found = prior.likeliest(options.most, longest, only_seen=options.words_only, watch=watch)
        progress("what can be sent", 0.8)
        words = sendable(found, options.even)
    shape = _shape(counted, prior, words, len(found) - len(words))
    _say(shape, longest)
    if as_json:
        print_json(shape)
    else:
        _write(words)


def _shape(counted: CountedText, prior: PublicText, words: Mapping[str, float], unsent: int) -> CandidatesShape:
    return CandidatesShape(
        counted=sum(prior.counts.values()),
        different=len(prior.counts),
        discount=prior.discount,
        of_model=prior.of_model,
        too_long=len(counted.counts) - len(prior.counts),
        unwritable=counted.unwritable,
        unsent=unsent,
        items=[{"item": {"text": item}, "weight": weight} for item, weight in words.items()],
    )


def _part(progress: Progress, stage: str, first: float, last: float) -> Callable[[float], None]:
    return lambda done: progress(stage, first + (last - first) * done)


def _counted(texts: Sequence[str], count: Callable[[str], CountedText], lower: bool) -> CountedText:
    """Count the items of all texts."""
    counts: Counter[str] = Counter()
    unwritable = 0
    for source in texts:
        for text in _parts(source):
            one = count(text.lower() if lower else text)
            counts.update(one.counts)
            unwritable += one.unwritable
    return CountedText(counts, unwritable)


def _parts(source: str) -> Iterator[str]:
    """Read a text in parts of whole lines."""
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as file:
            begin = "\ufeff"  # an editor's mark
            while part := b"".join(file.readlines(_PART)):
                text = part.decode("utf-8").removeprefix(begin)
                if "\0" in text:
                    raise InvalidSpec(f"cannot read {source}: it is a binary file, not text")
                yield text
                begin = ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSpec(f"cannot read {source}: {unread(error, 'it is not UTF-8 text')}") from None


def _say(found: CandidatesShape, longest: int) -> None:
    """Say on standard error what was made and what was left out."""
    notes = [
        f"{number_of(len(found['items']), 'candidate')} from {number_of(found['counted'], 'item')}, "
        f"{found['different']:,} different ones; a new item has the probability {found['of_model']:.2g}"
    ]
    if found["too_long"]:
        notes.append(f"left out: {number_of(found['too_long'], 'different item')} of more than {longest} bytes")
    if found["unwritable"]:
        lines = number_of(found["unwritable"], "line")
        notes.append(f"left out: {lines} with a tab that has no count behind it, or with a line break inside")
    if found["unsent"]:
        notes.append(f"left out: the {found['unsent']:,} least likely candidates, because no more can be sent")
    for note in notes:
        click.echo(note, err=True)


def _write(words: Mapping[str, float]) -> None:
    out = sys.stdout.buffer
    for item, weight in words.items():
        out.write(f"{item}\t{weight:.1g}\n".encode())
    out.flush()
