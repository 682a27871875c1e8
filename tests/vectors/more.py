"""Golden vectors of attributes and numbers, tests/vectors/v1/numbers.json: `python -m tests.vectors.more`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Set
from typing import Any

from ldp_client.collection import Collection
from ldp_client.mechanisms import bounded_number, composed_response, hierarchy
from ldp_client.protocol.domain import Attributes, Categories, Domain, Integers, Item
from simulator.reproductions import genprot
from tests.vectors.generate import FOLDER, NOVEMBER, VERSION, N, number, numbers, spread

LINES = 12


def collections() -> dict[str, Collection]:
    """Every mechanism of the file with small, usual and extreme parameters."""
    make = Collection.create
    habits = Attributes(("smokes", "drives", "votes", "läuft", "🦔"))
    many = Attributes(tuple(f"a{i}" for i in range(20)))
    hours, signed, wide = Integers(0, 24), Integers(-500, 1001), Integers(-(1 << 63), N - 1)
    plain = {
        "habits": (habits, "composed-response", "2", composed_response.design("2", 5)),
        "habits-shell": (habits, "composed-response", "6", {"low": 0, "high": 5, "flip": 1 << 46}),
        "one-habit": (Attributes(("x",)), "composed-response", "0.1", composed_response.design("0.1", 1)),
        "many": (many, "composed-response", "4", composed_response.design("4", 20, shell=(4, 9))),
        "sampled": (habits, "sampled-attribute", "1", {}),
        "sampled-many": (many, "sampled-attribute", "0.01", {}),
        "hours": (hours, "bounded-number", "1", bounded_number.design("1", presence=32)),
        "hours-wide": (hours, "bounded-number", "20", {"answers": 256, "window": 10, "presence": 255}),
        "signed": (signed, "bounded-number", "3", bounded_number.design("3")),
        "any-number": (wide, "bounded-number", "0.01", {"answers": 5, "window": 2, "presence": 0}),
        "tree": (signed, "hierarchy", "1", hierarchy.design("1", 1001)),
        "tree-two": (Integers(7, 2), "hierarchy", "5", {"branching": 1024, "q": 2}),
        "tree-deep": (Integers(-8, 100_000), "hierarchy", "2", {"branching": 2, "q": 11}),
        "pure-number": (hours, "genprot", "1", genprot.design("1")),
        "pure-choice": (Categories(("a", "b", "c")), "genprot", "0.5", genprot.design("0.5")),
    }
    return {
        name: make(f"{name}?", domain, mechanism, epsilon, **NOVEMBER, parameters=parameters)
        for name, (domain, mechanism, epsilon, parameters) in plain.items()
    }


def tagged(item: Item) -> dict[str, Any] | None:
    """An item as JSON, with its type."""
    if item is None:
        return None
    if isinstance(item, Set):
        return {"attributes": sorted(item)}
    return {"text": item} if isinstance(item, str) else {"integer": number(item)}


def items_of(domain: Domain) -> list[Item]:
    """Items at every edge, some in the middle, and some that are outside."""
    if isinstance(domain, Attributes):
        names = domain.names
        return [None, frozenset(), frozenset(names), frozenset(names[:1]), frozenset(names[::2]), frozenset({"?"})]
    if isinstance(domain, Integers):
        inside = [domain.lowest, domain.highest, domain.lowest + spread("number", 64) % domain.count]
        return [None, *inside, domain.lowest - 1, domain.highest + 1]
    return [None, domain.item(1), domain.item(domain.size - 1), "elsewhere"]


def edges(collection: Collection) -> list[int]:
    """Words on both sides of every boundary of the mechanism's law."""
    maker = collection.randomizer
    found = {0, N - 1, N // 2, N // 3}
    if isinstance(maker, composed_response.ComposedResponse):
        steps = [*maker._starts, *(start + weight for start, weight in zip(maker._starts, maker.weights, strict=False))]
        found |= {word for step in steps for word in (step - 1, step)}
    elif isinstance(maker, bounded_number.BoundedNumber):
        law = maker.law
        steps = [law.window * law.truth, law.used, law.truth, maker.response.truth]
        found |= {word for step in steps for word in (step - 1, step, step + 1)}
    elif isinstance(maker, hierarchy.Hierarchy):
        found |= {-(-level * N // len(maker.levels)) for level in range(len(maker.levels))}
        found |= {level.response.truth for level in maker.levels}
    return sorted(word for word in found if 0 <= word < N)


def vectors() -> Iterator[dict[str, Any]]:
    """A collection, then its reports."""
    for name, collection in collections().items():
        maker, items, marks = collection.randomizer, items_of(collection.domain), edges(collection)
        yield {
            "name": name,
            "domain": {key: number(v) if isinstance(v, int) else v for key, v in collection.domain.describe().items()},
            "epsilon": collection.epsilon.text,
            "mechanism": maker.name,
            "parameters": {key: number(value) for key, value in maker.parameters().items()},
            "spec": collection.spec_bytes.hex(),
            "id": collection.id.hex(),
            "seed": collection.seed.hex(),
            "bound": number(maker.bound),
            "words": maker.words,
        }
        for line in range(max(LINES, len(marks)) if maker.words < 4 else 5):
            words = [spread(f"{name} {line} {i}", 64) for i in range(maker.words)]
            if line < len(marks):
                words[(line + maker.words - 1) % maker.words] = marks[line]
            item = items[line % len(items)]
            yield {
                "collection": name,
                "item": tagged(item),
                "index": number(collection.domain.index(item)),
                "words": numbers(words),
                "payload": collection.randomize(item, words).hex(),
            }


def render() -> str:
    """Return the text of the file: one vector a line."""
    lines = [json.dumps(vector, ensure_ascii=True) for vector in vectors()]
    return f'{{"version": {VERSION}, "vectors": [\n' + ",\n".join(lines) + "\n]}\n"


if __name__ == "__main__":
    (FOLDER / "numbers.json").write_text(render(), "ascii", newline="\n")
