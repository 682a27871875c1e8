"""A rho for each attribute: what each release is charged, how prices add up, and all accountings side by side."""

import itertools
import json
from fractions import Fraction

import pytest

from benchmarks.curator.audits_shifts import NoNoise
from ldp_client.errors import BudgetExceeded, InvalidSpec
from ldp_server.curator.engine import ReleaseRequest, create_data_set, release
from ldp_server.curator.ledger import CuratorLedger
from ldp_server.curator.noise import ExactDraws
from ldp_server.curator.people import PeopleFile
from ldp_server.curator.prices import CentralPrice, DataSetBudget, price_text
from ldp_server.curator.releases.histogram import LaplaceHistogram, SinhHistogram
from ldp_server.curator.releases.partial.mwem import PairTable
from ldp_server.curator.releases.partial.projection import ProjectedConjunctions
from ldp_server.curator.releases.partial.strings import FrequentStrings
from tests.server.commands import run_here
from tests.server.helpers import NOW

ONE, HALF = Fraction(1), Fraction(1, 2)
EACH = DataSetBudget("attribute-zcdp", ONE)
PEOPLE = PeopleFile(2400, {"text": ["101101"] * 1500 + ["000111"] * 900}, b"p" * 32)


def test_what_each_release_costs_one_attribute():
    """What is stated for one attribute, or epsilon^2 / 2 of it, or the rho of a whole record: the least of them."""
    for price, cost in (
        (CentralPrice(rho=ONE, attribute_rho=Fraction(1, 4)), Fraction(1, 4)),
        (CentralPrice(rho=ONE), ONE),
        (CentralPrice(Fraction(8), rho=Fraction(32), attribute=ONE), HALF),
        (CentralPrice(Fraction(8), rho=Fraction(1, 8), attribute=ONE), Fraction(1, 8)),
        (CentralPrice.pure(Fraction(3)), Fraction(9, 2)),
        (CentralPrice.selection(ONE), Fraction(1, 8)),
        (CentralPrice(rho=ONE, omega=Fraction(3), attribute=ONE), HALF),
    ):
        assert EACH.cost(price) == (cost, 0)
    assert EACH.cost(CentralPrice.pure(ONE, Fraction(1, 10))) == (HALF, Fraction(1, 10))
    with pytest.raises(InvalidSpec, match="up to an order"):
        EACH.cost(CentralPrice(rho=ONE, omega=Fraction(3)))
    with pytest.raises(InvalidSpec, match="protects the label alone"):
        EACH.cost(CentralPrice(label=ONE))
    assert str(EACH) == "rho = 1 for each attribute"
    assert DataSetBudget.from_dict(json.loads(json.dumps(EACH.as_dict()))) == EACH
    with pytest.raises(InvalidSpec):
        DataSetBudget("attribute-zcdp", ONE, omega=Fraction(3))


def test_prices_for_an_attribute_add_up():
    stated, pure = (
        CentralPrice(rho=ONE, attribute_rho=Fraction(1, 4)),
        CentralPrice(Fraction(8), rho=Fraction(32), attribute=ONE),
    )
    whole, ends = CentralPrice.pure(ONE), CentralPrice(rho=ONE, omega=Fraction(3))
    assert (stated + pure).one_attribute == Fraction(3, 4)
    assert (stated + whole).one_attribute == Fraction(3, 4)
    assert (stated + pure + whole).attribute_rho == Fraction(5, 4)
    assert (pure + pure).one_attribute == ONE  # and not (1 + 1)^2 / 2
    assert (whole + whole).attribute_rho is None and (whole + whole).one_attribute == ONE
    assert (stated + ends).one_attribute is None
    for price in (stated, stated + pure, whole):
        assert CentralPrice.from_dict(json.loads(json.dumps(price.as_dict()))) == price
    assert price_text(stated) == "rho = 1, for each attribute rho = 0.25"


@pytest.mark.parametrize(("bits", "k"), [(4, 1), (5, 2), (6, 3)])
def test_the_price_of_projected_counts_for_one_attribute_is_that_of_their_moves(bits, k):
    made = ProjectedConjunctions(bits, k, ONE)
    noted = {}
    for text in map("".join, itertools.product("01", repeat=bits)):
        draws = NoNoise()
        made.run([text, "1" * bits], draws)
        noted[text] = draws.noted[0]
    worst = 0.0
    for one, other in itertools.combinations(noted, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            moves = [a - b for a, b in zip(noted[one].values, noted[other].values, strict=True)]
            worst = max(worst, sum(move**2 for move in moves) / (2 * noted[one].scale ** 2))
    assert worst == pytest.approx(float(made.price.attribute_rho), rel=1e-9)
    assert made.price.attribute_rho == Fraction(k, bits)


class Rounds(NoNoise):
    """Notes the selections, too."""

    def __init__(self):
        super().__init__()
        self.chosen = []

    def exponential(self, scores, scale):
        self.chosen.append((list(scores), scale))
        return 0


@pytest.mark.parametrize("pairs", [1, 2])
def test_the_price_of_a_pair_table_for_one_attribute_is_that_of_its_rounds(pairs):
    """A round: (range / scale)^2 / 8 of the choice, and the squares of the counts' moves over twice the variance."""
    made = PairTable(5, ONE, pairs, 1)
    noted = {}
    for text in map("".join, itertools.product("01", repeat=5)):
        draws = Rounds()
        made.run([text, "11111", "00000"], draws)
        noted[text] = draws
    worst = 0.0
    for one, other in itertools.combinations(noted, 2):
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
            (first, scale), (second, _) = noted[one].chosen[0], noted[other].chosen[0]
            moves = [a - b for a, b in zip(first, second, strict=True)]
            counts = zip(noted[one].noted, noted[other].noted, strict=True)
            noise = sum(
                (a - b) ** 2 / (2 * x.scale**2) for x, y in counts for a, b in zip(x.values, y.values, strict=True)
            )
            worst = max(worst, ((max(moves) - min(moves)) / scale) ** 2 / 8 + noise)
    assert worst <= float(made.price.attribute_rho) * (1 + 1e-9)
    assert worst > 0.4 * float(made.price.attribute_rho)


@pytest.fixture
def home(tmp_path):
    create_data_set(tmp_path / "home", "panel", EACH, NOW)
    return tmp_path / "home"


def make(home, mechanism, data_set="panel"):
    return release(home, ReleaseRequest(data_set, "text", mechanism), PEOPLE, ExactDraws(), NOW, "opendp")


def test_a_budget_is_charged_what_an_attribute_costs(home):
    counts = ProjectedConjunctions(6, 3, ONE)
    assert make(home, counts).content["charged"] == {"rho": "1/2", "delta": "0"}
    texts = LaplaceHistogram(("101101", "000111"), Fraction(1, 2))
    signed = make(home, texts)
    assert signed.content["charged"]["rho"] == "1/8"
    assert "for each attribute" in signed.content["statement"][-1]
    with pytest.raises(BudgetExceeded, match=r"rho = 0\.5 is needed, and 0\.375 of 1 is left"):
        make(home, counts)
    with pytest.raises(InvalidSpec, match="up to an order"):
        make(home, SinhHistogram(("101101", "000111"), Fraction(1, 10), Fraction(3)))
    with CuratorLedger(home) as ledger:
        found = ledger.data_set("panel")
    assert (found.amount, found.left, found.releases) == (Fraction(5, 8), Fraction(3, 8), 2)


@pytest.fixture
def curator(monkeypatch, capsys):
    def call(*arguments):
        return run_here(monkeypatch, capsys, "curator", *arguments)

    return call


def test_the_ledger_shows_all_accountings_side_by_side(home, curator):
    make(home, ProjectedConjunctions(6, 3, HALF))
    make(home, FrequentStrings(6, Fraction(1, 4), Fraction(1, 4), calibrated=True))
    code, out, err = curator("ledger", "panel", "--home", home)
    assert (code, err) == (0, "")
    told = {cells[1].strip(): cells[2].strip() for line in out.splitlines() if len(cells := line.split("│")) == 4}
    assert told["epsilon"] == told["epsilon for each attribute"] == "a release has no statement"
    assert told["rho"] == "0.882813"  # 1/2 and (1/4 x 7/2)^2 / 2
    assert told["rho for each attribute"] == "0.28125"
    line = json.loads(curator("ledger", "--home", home, "--json")[1].splitlines()[0])
    assert (line["accounting"], line["spent"]) == ("attribute-zcdp", 0.28125)
    assert line["together"]["attribute_rho"] == "9/32" and line["together"]["epsilon"] is None
    create_data_set(home, "empty", DataSetBudget("pure", ONE), NOW)
    assert "together" not in json.loads(curator("ledger", "empty", "--home", home, "--json")[1])


def test_creating_one(tmp_path, curator):
    home = ("--home", tmp_path / "h")
    code, out, _ = curator("create", "a", "--rho", "0.5", "--per-attribute", *home, "--json")
    assert (code, json.loads(out)["accounting"]) == (0, "attribute-zcdp")
    for wrong in (
        ("--rho", "0.5", "--labels-only"),
        ("--rho", "0.5", "--omega", "3", "--per-attribute"),
        ("--epsilon", "1", "--per-attribute", "--labels-only"),
    ):
        code, _, err = curator("create", "b", *wrong, *home)
        assert (code, err.count("\n")) == (2, 1)
        assert "--per-attribute with --epsilon or --rho" in err
