"""A server with questions, and a curator's releases about some of their users: what merging tests ask."""

import json
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from ldp_client.collection import Collection
from ldp_client.mechanisms import hierarchy
from ldp_client.mechanisms.bounded_number import design
from ldp_client.mechanisms.records.sampled_table import parameters_of
from ldp_client.protocol.domain import Categories, Field, Integers, Record, YesNo
from ldp_server.curator.engine import KEY_FILE, ReleaseRequest, create_data_set, release
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import DataSetBudget
from ldp_server.curator.workloads.asking.sets import AnyOfSets
from ldp_server.curator.workloads.average import LaplaceAverage
from ldp_server.curator.workloads.matrix.answers import LinearAnswers
from ldp_server.curator.workloads.matrix.plans import Price
from ldp_server.curator.workloads.matrix.queries import LinearQueries, condition, ranges_of, table_queries
from ldp_server.curator.workloads.online import OnlineTables
from ldp_server.curator.workloads.tables import LaplaceTables
from ldp_server.curator.workloads.universe import Workload
from tests.server.analyst.conftest import deliver
from tests.server.commands import run_here
from tests.server.helpers import NOW, ServerProcess

PLAN = ("free", "paid")
RECORD = Record((Field("plan", Categories(PLAN)), Field("dark", YesNo(none_is_no=True))))
FLAGS = Record((Field("paid", YesNo(none_is_no=True)), Field("dark", YesNo(none_is_no=True))))
CUPS = Record((Field("cups", Integers(0, 10)),))
ONE = Fraction(1)
PEOPLE = 2000


def mechanisms():
    """Each release by its name, with its columns."""
    texts = ("plan: paid; dark: yes", "plan: none, free")
    queries = [condition(RECORD, text) for text in texts] + table_queries(RECORD, [("plan", "dark")])
    linear = LinearAnswers(LinearQueries(RECORD, tuple(queries)), Price(epsilon=ONE))
    ranges = LinearAnswers(LinearQueries(CUPS, tuple(ranges_of(CUPS, "cups")[:25])), Price(epsilon=ONE))
    both = Workload(RECORD, (("plan", "dark"),))
    return {
        "tables": (LaplaceTables(both, ONE), ("plan", "dark")),
        "average": (LaplaceAverage(0, 10, ONE), ("cups",)),
        "linear": (linear, ("plan", "dark")),
        "ranges": (ranges, ("cups",)),
        "any-of": (AnyOfSets(FLAGS, ONE, 2), ("paid", "dark")),
        "learned": (AnyOfSets(FLAGS, ONE, 2, "thresholds", 2), ("paid", "dark")),
        "online": (OnlineTables(both, ONE, 2), ("plan", "dark")),
    }


@pytest.fixture(scope="package")
def world(tmp_path_factory):
    """A server with questions about records, flags and numbers; a curator's releases about 2,000 more of the users."""
    folder = tmp_path_factory.mktemp("merged")
    rng = np.random.default_rng(13)
    plan, dark = rng.choice([0, 1, 2], 20_000, p=[0.1, 0.5, 0.4]), rng.random(20_000) < 0.3
    cups = (plan + 3 * dark) % 11
    window = {"opens": 0, "closes": 1 << 33}
    tables = parameters_of([(0b01, 1, 0, 0), (0b10, 1, 0, 0), (0b11, 1, 0, 0)])
    made = {
        "records": Collection.create("Which plan?", RECORD, "sampled-table", "1", parameters=tables, **window),
        "flags": Collection.create("Which of both?", FLAGS, "randomized-response", "1", **window),
        "numbers": Collection.create(
            "How many?", Integers(0, 10), "bounded-number", "1", parameters=design("1"), **window
        ),
        "cups": Collection.create(
            "How many cups?", Integers(0, 10), "hierarchy", "1", parameters=hierarchy.design("1", 10), **window
        ),
    }
    held = {"records": plan + 3 * dark, "flags": (plan == 2) + 2 * dark, "numbers": cups + 1, "cups": cups + 1}
    columns = {
        "plan": [None if one == 0 else PLAN[one - 1] for one in plan[:PEOPLE].tolist()],
        "paid": ["yes" if one == 2 else None for one in plan[:PEOPLE].tolist()],
        "dark": ["yes" if one else None for one in dark[:PEOPLE].tolist()],
        "cups": [str(one) for one in cups[:PEOPLE].tolist()],
    }
    create_data_set(folder / "home", "panel", DataSetBudget("pure", Fraction(100)), NOW)
    people = PeopleFile(PEOPLE, columns, b"p" * 32)
    for name, (mechanism, (first, *more)) in mechanisms().items():
        request = ReleaseRequest("panel", first, mechanism, more=tuple(more))
        signed = release(folder / "home", request, people, ExactDraws(), NOW, "opendp")
        (folder / f"{name}.json").write_text(json.dumps(signed.as_dict()))
    with ServerProcess(folder / "d") as server:
        for name, collection in made.items():
            server.create(collection)
            deliver(server, collection, held[name][PEOPLE:])
        truth = {"paid": plan == 2, "dark": dark, "cups": cups}
        key = folder / "home" / f"{KEY_FILE}.pub"
        yield SimpleNamespace(folder=folder, server=server, key=key, truth=truth, **made)


@pytest.fixture
def shell(monkeypatch, capsys, world):
    """Run a command about the server."""

    def command(*arguments, data=True):
        about = ("--data", world.server.data) if data else ()
        return run_here(monkeypatch, capsys, *arguments, *about)

    return command
