"""Populations from text: the language that kinds.py describes, files, and functions of the user's own.

`read(spec, ...)` returns a `NamedPopulation`: the population and, if it has items of its own, the items of its ranks.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from types import ModuleType

import numpy as np

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.domain import Item
from simulator.population.kinds import (
    MAX_ITEMS,
    Categorical,
    Correlated,
    Drifting,
    Fixed,
    Mixture,
    Planted,
    Population,
    Singletons,
    geometric_weights,
    zipf_weights,
)

__all__ = ["NamedPopulation", "read", "read_file", "vocabulary"]

DEFAULT_ITEMS = 10_000
MAX_FILE_BYTES = 256 << 20


@dataclass(frozen=True)
class NamedPopulation:
    """A population and, if it names them, its items: users of rank r hold items[r - 1]."""

    population: Population
    items: tuple[Item, ...] | None = None


@dataclass(frozen=True)
class _Request:
    """The simulation for which a population's text is read."""

    users: int
    items: int | None
    """How many items the domain has, if it can be listed."""
    bare: int
    """How many items a population has that names no number, in a domain that cannot be listed."""
    seed: int


def read(
    spec: str, users: int, *, domain_items: int | None = None, bare_items: int | None = None, seed: int = 0
) -> NamedPopulation:
    """Read a population's text for so many users.

    `domain_items` is the number of items of a domain that can be listed. Where it is None, `bare_items` is the number
    of items of a population that names none, such as zipf:1.1.
    """
    if users < 1:
        raise InvalidSpec("a simulation needs at least one user")
    return _read(spec.strip(), _Request(users, domain_items, bare_items or DEFAULT_ITEMS, seed))


def vocabulary() -> dict[str, int]:
    """Return the words of a real text with their counts, most frequent first."""
    text = resources.files("simulator").joinpath("data/vocabulary.csv").read_text("utf-8")
    return {word: int(count) for word, count in csv.reader(text.splitlines())}


def read_file(path: Path) -> dict[Item, float]:
    """Read `item` or `item,count` lines; equal lines add up. A field with a comma is written in double quotes."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidSpec(f"{path} is larger than {MAX_FILE_BYTES >> 20} MB: count its items first (item,count)")
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InvalidSpec(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSpec(f"{path} is not text in UTF-8") from None
    found: dict[Item, float] = {}
    for number, line in enumerate(csv.reader(text.splitlines()), 1):
        if not line:
            continue
        if len(line) > 2:
            raise InvalidSpec(f"{path}, line {number}: a line is an item, or item,count (quote an item with commas)")
        found[line[0]] = found.get(line[0], 0.0) + _count(line, path, number)
    if not found:
        raise InvalidSpec(f"{path} lists no item")
    return found


def _count(line: list[str], path: Path, number: int) -> float:
    """The count of a line. An error does not quote the item."""
    if len(line) == 1:
        return 1.0
    try:
        count = float(line[1])
    except ValueError:
        count = -1.0
    if not 0 <= count < float("inf"):
        raise InvalidSpec(f"{path}, line {number}: the count after the comma is not a number from 0 on")
    return count


def _weighted(counts: Mapping[Item, float] | Mapping[str, int]) -> NamedPopulation:
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    weights = np.array([count for _, count in ordered], np.float64)
    return NamedPopulation(Categorical(weights), tuple(item for item, _ in ordered))


def _numbers(text: str, name: str, least: int, most: int) -> list[float]:
    """Read the numbers after the name."""
    parts = text.split(":") if text else []
    if not least <= len(parts) <= most:
        raise InvalidSpec(f"{name} takes {least} to {most} numbers after it, separated by colons")
    try:
        return [float(part) for part in parts]
    except ValueError:
        raise InvalidSpec(f"{name} takes numbers; write for example {_EXAMPLES[name]}") from None


def _items(request: _Request, given: float | None) -> int:
    """How many items a population with weights has."""
    if given is None:
        return request.items if request.items is not None else request.bare
    if not 1 <= given <= MAX_ITEMS or given != int(given):
        raise InvalidSpec(f"the number of items is a whole number from 1 to {MAX_ITEMS}")
    if request.items is not None and given > request.items:
        raise InvalidSpec(f"the domain has {request.items} items: fewer than the population's {int(given)}")
    return int(given)


def _uniform(text: str, request: _Request) -> NamedPopulation:
    numbers = _numbers(text, "uniform", 0, 1)
    return NamedPopulation(Categorical(np.ones(_items(request, numbers[0] if numbers else None))))


def _zipf(text: str, request: _Request) -> NamedPopulation:
    exponent, *rest = _numbers(text, "zipf", 1, 2)
    if not 0 <= exponent <= 20:
        raise InvalidSpec("zipf takes an exponent between 0 and 20, such as zipf:1.1")
    return NamedPopulation(Categorical(zipf_weights(exponent, _items(request, rest[0] if rest else None))))


def _geometric(text: str, request: _Request) -> NamedPopulation:
    p, *rest = _numbers(text, "geometric", 1, 2)
    if not 0 < p < 1:
        raise InvalidSpec("geometric takes a probability between 0 and 1, such as geometric:0.01")
    return NamedPopulation(Categorical(geometric_weights(p, _items(request, rest[0] if rest else None))))


def _none(text: str, request: _Request) -> NamedPopulation:
    del request
    _numbers(text, "none", 0, 0)
    return NamedPopulation(Fixed(np.zeros(1, np.uint32), 0))


def _singletons(text: str, request: _Request) -> NamedPopulation:
    _numbers(text, "singletons", 0, 0)
    if request.items is not None:
        raise InvalidSpec("singletons need a domain too large to list, such as --item-bytes 8")
    return NamedPopulation(Singletons())


def _correlated(text: str, request: _Request) -> NamedPopulation:
    attributes, correlation, *rest = _numbers(text, "correlated", 2, 3)
    population = Correlated(int(attributes), correlation, rest[0] if rest else 0.3)
    if request.items is not None and population.distinct > request.items:
        raise InvalidSpec(f"{int(attributes)} attributes have {population.distinct} subsets: more than the domain")
    return NamedPopulation(population)


def _vocabulary(text: str, request: _Request) -> NamedPopulation:
    del request
    _numbers(text, "vocabulary", 0, 0)
    return _weighted(vocabulary())


def _file(text: str, request: _Request) -> NamedPopulation:
    del request
    return _weighted(read_file(Path(text).expanduser()))


def _share(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidSpec(f"{what} is a number, such as 0.2") from None


def _mixture(text: str, request: _Request) -> NamedPopulation:
    parts, items = [], None
    for part in text.split("+"):
        weight, star, spec = part.partition("*")
        if not star:
            raise InvalidSpec("a mixture is written mixture:0.8*zipf:1.1+0.2*uniform")
        named = _read(spec, request)
        if named.items is not None:
            if items is not None and items != named.items:
                raise InvalidSpec("only one part of a mixture may bring items of its own")
            items = named.items
        parts.append((_share(weight, "a part's share"), named.population))
    return NamedPopulation(Mixture(parts), items)


def _planted(text: str, request: _Request) -> NamedPopulation:
    shares, plus, spec = text.partition("+")
    if not plus:
        raise InvalidSpec("planted is written planted:0.05,0.03+zipf:1.1")
    holders = [round(_share(share, "a planted share") * request.users) for share in shares.split(",")]
    room = None if request.items is None else request.items - len(holders)
    if room is not None and room < 1:
        raise InvalidSpec("the domain has no items left for a background: plant fewer")
    named = _read(spec, replace(request, items=room))
    if named.items is not None:
        names = tuple(f"planted {i + 1}" for i in range(len(holders)))
        return NamedPopulation(Planted(holders, named.population, request.users), (*names, *named.items))
    return NamedPopulation(Planted(holders, named.population, request.users))


def _drifting(text: str, request: _Request) -> NamedPopulation:
    rate, star, spec = text.partition("*")
    if not star:
        raise InvalidSpec("drifting is written drifting:0.02*zipf:1.1")
    named = _read(spec, request)
    return NamedPopulation(Drifting(_share(rate, "drifting's rate"), named.population, request.users), named.items)


_KNOWN: dict[str, Callable[[str, _Request], NamedPopulation]] = {
    "uniform": _uniform,
    "zipf": _zipf,
    "geometric": _geometric,
    "vocabulary": _vocabulary,
    "file": _file,
    "none": _none,
    "singletons": _singletons,
    "correlated": _correlated,
    "mixture": _mixture,
    "planted": _planted,
    "drifting": _drifting,
}
_EXAMPLES = {
    "uniform": "uniform:1000",
    "zipf": "zipf:1.1",
    "geometric": "geometric:0.01",
    "correlated": "correlated:8:0.3",
    "vocabulary": "vocabulary",
    "none": "none",
    "singletons": "singletons",
}


def _read(spec: str, request: _Request) -> NamedPopulation:
    name, _, rest = spec.partition(":")
    reader = _KNOWN.get(name)
    if reader is not None:
        return reader(rest, request)
    if rest.isidentifier() and name:
        return _function(name, rest, request)
    raise InvalidSpec(f"unknown population {spec!r}: write {', '.join(_KNOWN)}, or module:function")


def _module(name: str) -> ModuleType:
    """Import a module by its dotted name, from the current directory too, or by its file."""
    path = Path(name)
    if path.suffix == ".py":
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None or not path.is_file():
            raise InvalidSpec(f"cannot read {path}: no such file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _function(module: str, name: str, request: _Request) -> NamedPopulation:
    """Call the user's function once, and keep each user's item as a number."""
    try:
        function = getattr(_module(module), name)
        items: Iterable[Item] = partial(function, request.users, request.seed)()
        ranks, places = np.zeros(request.users, np.uint32), dict[Item, int]()
        count = 0
        for count, item in enumerate(items, 1):
            if count > request.users:
                break
            if item is not None and not isinstance(item, str | bytes | int):
                raise InvalidSpec(f"{module}:{name} must give str, bytes, int or None, not {type(item).__name__}")
            ranks[count - 1] = 0 if item is None else places.setdefault(item, len(places) + 1)
    except InvalidSpec:
        raise
    except Exception as error:
        raise InvalidSpec(f"population {module}:{name} does not work: {type(error).__name__}: {error}") from None
    if count != request.users:
        raise InvalidSpec(f"{module}:{name} gave {count} items, not one for each of {request.users} users")
    return NamedPopulation(Fixed(ranks, len(places)), tuple(places))
