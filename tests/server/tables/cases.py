"""Answers about every kind of domain, with items that files and spreadsheets find hard."""

from dataclasses import fields
from functools import cache

import numpy as np

from ldp_client.collection import Collection
from ldp_client.privacy.statement import privacy_statement
from ldp_client.protocol.domain import Attributes, Categories, Field, Integers, Record, Strings
from ldp_server import heavy_hitters
from ldp_server.analyst import (
    CollectionAreas,
    CollectionAttributes,
    CollectionAverage,
    CollectionAverages,
    CollectionChange,
    CollectionComparison,
    CollectionEstimates,
    CollectionHeavyHitters,
    CollectionInfo,
    CollectionQuantiles,
    CollectionRanges,
    CollectionTrend,
)
from ldp_server.answers import estimates, numbers
from ldp_server.answers.attributes import attributes_answer
from ldp_server.answers.choose import Kind, choose
from ldp_server.answers.fields.areas import areas_answer
from ldp_server.answers.fields.averages import averages_answer
from ldp_server.answers.over_time.change import change
from ldp_server.answers.over_time.compare import compare
from ldp_server.answers.over_time.trend import TrendQuestion, trend
from ldp_server.arrays.items import index_items
from ldp_server.arrays.packing import pack
from ldp_server.heavy_hitters import planner
from ldp_server.oracles import oracle_for
from simulator.crowd import simulate

__all__ = ["DOMAINS", "HOSTILE", "about", "answer", "counted", "estimated", "of_every_kind", "over_time"]

HOSTILE = (
    "=1+1",
    "+49",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "'quoted",
    "＝1",
    "<script>alert(1)</script>",
    "user\u202egpj.exe",
    'a "quote", a comma; a semicolon',
    "two\nlines",
    "two\r\nlines\r",
    "tab\there",
    "none",
    "everything else",
    "中文 🦊",
    "$x_1^2$",
    " spaces ",
    "a\x00b",
)
LARGE = (1 << 63) - 3

DOMAINS = {
    "categories": (Categories(HOSTILE), [None, *HOSTILE]),
    "strings": (Strings(40), [None, "", "tea", b"\xff\xfe=1", "=1+1", "00ff", b"\x00\xff", *HOSTILE[:8]]),
    "integers": (Integers(-3, 9), [None, -3, 0, 5]),
    "integers without a sign": (Integers(LARGE, 8), [None, LARGE, LARGE + 7]),
    "integers beyond 64 bits": (Integers(LARGE, (1 << 64) - 1), [None, LARGE, LARGE + (1 << 64) - 2]),
    "attributes": (
        Attributes(("=smoke", "drive", "drive + vote", 'say "x", y')),
        [None, frozenset({"=smoke"}), frozenset({"drive", "drive + vote"}), frozenset({'say "x", y', "drive"})],
    ),
}


def about(collection):
    """What a server says of a collection."""
    statement = privacy_statement(collection).lines
    return CollectionInfo(
        collection.id, collection.spec_bytes, "running", "open", 1, False, 0, None, None, statement=statement
    )


def answer(kind, collection, made, **more):
    """An answer that was computed here, as an analyst gets it."""
    found = {field.name: getattr(made, field.name) for field in fields(made)}
    return kind(**found, info=about(collection), **more)


def counted(domain, mechanism, indexes, epsilon="2", parameters=None, question="Which?"):
    """A collection and the oracle that counted the reports of users with these indexes."""
    collection = Collection.create(question, domain, mechanism, epsilon, opens=0, closes=1 << 33, parameters=parameters)
    oracle, width = oracle_for(collection), collection.randomizer.report_bytes
    for reports in simulate(collection.randomizer, np.asarray(indexes, np.uint64), seed=8):
        oracle.accumulate(pack(reports, width))
    return collection, oracle


def of_every_kind(question="Which?"):
    """An answer of every kind, from simulated users."""
    users = np.random.default_rng(6)
    names = Categories(HOSTILE)
    choice, oracle = counted(
        names, "linear-hash", users.geometric(0.3, 4000).clip(0, 12), "2", {"q": 3, "t": 3}, question
    )
    yield "top", answer(CollectionEstimates, choice, estimates.top(choice, oracle, 10, threshold=300), threshold=300)
    yield "every item", answer(CollectionEstimates, choice, estimates.every_item(choice, oracle))
    tree, oracle = counted(
        Integers(-20, 60), "hierarchy", users.binomial(60, 0.4, 4000), "3", {"branching": 4, "q": 53}, question
    )
    yield "quantiles", answer(CollectionQuantiles, tree, numbers.quantiles_answer(tree, oracle, (0.25, 0.5, 0.9)))
    yield "histogram", answer(CollectionRanges, tree, numbers.bins_answer(tree, oracle, 12))
    yield "ranges", answer(CollectionRanges, tree, numbers.ranges_answer(tree, oracle, [(0, 9), (-20, 39), (30, 30)]))
    chosen = choose(4000, 102, "2", Kind.AVERAGE).parameters
    number, oracle = counted(Integers(0, 101), "bounded-number", users.binomial(100, 0.4, 4000), "2", chosen, question)
    yield "average", answer(CollectionAverage, number, numbers.average_answer(number, oracle))
    yield from of_fields(question)
    habits = Attributes(("<b>smoke</b>", "drive", "vote \u202eetov", "drive + vote", "=read"))
    chosen = choose(4000, habits.size, "3", Kind.ATTRIBUTES, pairs=True)
    sets, oracle = counted(habits, chosen.mechanism, users.integers(0, 8, 4000), "3", chosen.parameters, question)
    yield "attributes", answer(CollectionAttributes, sets, attributes_answer(sets, oracle))
    yield "pairs", answer(CollectionAttributes, sets, attributes_answer(sets, oracle, pairs=True))
    yield "largest pairs", answer(CollectionAttributes, sets, attributes_answer(sets, oracle, pairs=True, top=3))
    yield "table", answer(CollectionEstimates, sets, estimates.every_item(sets, oracle))
    domain = Strings(4)
    plan = planner.plan(30_000, domain, "4")
    words = planner.create(question, domain, "4", plan, opens=0, closes=1 << 33)
    oracle = oracle_for(words)
    items = [b"=1+1"] * 12_000 + [b"<i>"] * 9_000 + [b"\xff\xfe"] * 6_000 + [users.bytes(4) for _ in range(3000)]
    for reports in simulate(words.randomizer, index_items(domain, items), seed=8):
        oracle.accumulate(pack(reports, words.randomizer.report_bytes))
    yield "heavy hitters", answer(CollectionHeavyHitters, words, heavy_hitters.decode(words, oracle))


def of_fields(question):
    """Answers about several fields of records."""
    users = np.random.default_rng(7)
    hostile = Record((Field("x", Integers(-5, 16)), Field("y", Integers(3, 8))))
    sides = {"columns": 8, "rows": 4, "across": 4, "down": 2, "lines": 1, "tiles": 2, "lines_q": 0, "tiles_q": 3}
    held = users.integers(0, 17 * 9, 4000)
    tiles, drawn = counted(hostile, "sampled-grid", held, "3", sides, question)
    yield "map", answer(CollectionAreas, tiles, areas_answer(tiles, drawn))
    some = [((-5, 0), (3, 5)), ((1, 2), (4, 9))]
    yield "areas", answer(CollectionAreas, tiles, areas_answer(tiles, drawn, some))
    hostile = Record((Field("y", Integers(-5, 11)), Field("g", Categories(("=1+1", "<i>")))))
    cells, oracle = counted(
        hostile, "averaged-table", users.integers(13, 30, 4000), "2", {"number": 0, "q": 0}, question
    )
    yield "averages", answer(CollectionAverages, cells, averages_answer(cells, oracle))


def over_time(question="Which?"):
    """A trend, a change and a comparison of hostile items, from simulated users of four weeks: =1+1 rises."""
    names, users = Categories(HOSTILE), np.random.default_rng(9)
    collections, weeks = [], []
    for week in range(4):
        held = np.where(users.random(1500) < (0.1 if week < 3 else 0.4), 1, users.integers(5, 9, 1500))
        collection, oracle = counted(names, "linear-hash", held, "4", {"q": 3, "t": 3}, question)
        collections.append(collection)
        weeks.append(((week, week * 604_800, (week + 1) * 604_800), oracle))
    asked = TrendQuestion(items=("=1+1", "<script>alert(1)</script>", "user\u202egpj.exe", "two\nlines"))
    choice = collections[0]
    yield "trend", answer(CollectionTrend, choice, trend(choice, weeks, asked, count=4))
    yield "change", answer(CollectionChange, choice, change(choice, weeks, asked))
    sides = [(choice, weeks[place][1]) for place in (0, 3)]
    shown = {"first": about(choice), "second": about(choice)}
    yield "comparison", answer(CollectionComparison, choice, compare(*sides, asked), **shown)
    tree, oracle = counted(
        Integers(-20, 60), "hierarchy", users.binomial(60, 0.4, 4000), "3", {"branching": 4, "q": 53}, question
    )
    weeks = [((week, week * 604_800, (week + 1) * 604_800), oracle) for week in range(2)]
    found = trend(tree, weeks, TrendQuestion(quantiles=(0.5,)), count=2)
    yield "trend of quantiles", answer(CollectionTrend, tree, found)


@cache
def estimated(name, threshold=None):
    """Estimates of the items of a domain, from random reports."""
    domain, items = DOMAINS[name]
    large = domain.size > 1000
    mechanism, parameters = ("hashtogram", {"rows": 2, "q": 2, "t": 4}) if large else ("randomized-response", None)
    collection = Collection.create("Which?", domain, mechanism, "2", opens=0, closes=1 << 33, parameters=parameters)
    oracle, randomizer = oracle_for(collection), collection.randomizer
    values = np.random.default_rng(4).integers(0, randomizer.bound, 400)
    oracle.accumulate(b"".join(int(value).to_bytes(randomizer.report_bytes, "little") for value in values))
    made = estimates.given_items(collection, oracle, items, threshold=threshold)
    return answer(CollectionEstimates, collection, made, threshold=threshold)
