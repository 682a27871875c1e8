"""Every method of the analyst's client, against a real server in a process of its own."""

import io
import threading

import pytest

from ldp_client.collection import Collection
from ldp_client.errors import InvalidSpec, ServerRefused
from ldp_client.protocol.domain import Categories, Strings
from ldp_server import __version__
from ldp_server.analyst import Analyst, Timeouts
from ldp_server.answers.estimates import Coverage, Verdict, every_item, given_items, top
from ldp_server.oracles import oracle_for, restore
from tests.server.analyst.conftest import HITTERS_USERS, deliver
from tests.server.helpers import make_collection


def values(rows, name="estimate"):
    return pytest.approx([getattr(row, name) for row in rows])


@pytest.mark.long
def test_a_collection_s_life(server, analyst):
    collection = make_collection("A life?")
    created = analyst.create(collection, reports_per_token=7, unlisted=True)
    assert created.id == collection.id
    assert created.collection == collection
    assert (created.state, created.admission, created.reports_per_token, created.unlisted) == (
        "running", "open", 7, True,
    )  # fmt: skip
    assert created.created > 1_700_000_000
    assert created.closed is created.deleted is None
    assert [info.id for info in analyst.collections()][-1] == collection.id
    closed = analyst.close_collection(collection.id)
    assert closed.state == "closed"
    assert closed.closed >= closed.created
    assert analyst.compact_collection(collection).state == "compacted"
    deleted = analyst.delete_collection(collection.id.hex())
    assert deleted.state == "deleted"
    assert deleted.deleted
    summary = analyst.show(collection)
    assert summary.info == deleted
    assert (summary.reports, summary.lists_domain) == (0, False)
    with pytest.raises(ServerRefused) as again:
        analyst.create(collection)
    assert again.value.reason in {"ALREADY_EXISTS", "FAILED_PRECONDITION"}


def test_a_summary(analyst, counted):
    collection, _ = counted
    summary = analyst.show(collection)
    assert (summary.reports, summary.batches) == (4000, 1)
    assert summary.stored_bytes == 4000 * collection.randomizer.report_bytes
    assert summary.lists_domain
    assert not summary.decodes_heavy_hitters
    assert summary.standard_error > 0
    assert any("eps = 2" in line for line in summary.statement)


def test_estimates_are_the_oracle_s(analyst, counted):
    collection, oracle = counted
    found = analyst.estimate(collection, every_item=True, threshold=200)
    expected = every_item(collection, oracle, threshold=200)
    assert found.reports == 4000
    assert len(found.rows) == 41
    assert [row.item for row in found.rows] == [None, *range(1, 41)]
    assert [row.estimate for row in found.rows] == values(expected.rows)
    assert [row.consistent for row in found.rows] == values(expected.rows, "consistent")
    assert [row.verdict for row in found.rows] == [row.verdict for row in expected.rows]
    assert {row.verdict for row in found.rows} >= {Verdict.YES, Verdict.NO}
    assert found.everything_else is None
    assert found.question == "How many cups of tea?"
    assert found.info.collection == collection

    found = analyst.estimate(collection, top=5, confidence=0.9)
    expected = top(collection, oracle, 5, confidence=0.9)
    assert [row.item for row in found.rows] == [row.item for row in expected.rows]
    assert [row.low for row in found.rows] == values(expected.rows, "low")
    assert (found.confidence, found.coverage) == (0.9, Coverage.SELECTED)
    assert found.everything_else.estimate == pytest.approx(expected.everything_else.estimate)

    for together, coverage in ((False, Coverage.EACH), (True, Coverage.TOGETHER)):
        found = analyst.estimate(collection, items=[3, None, 7], together=together)
        expected = given_items(collection, oracle, [3, None, 7], coverage=coverage)
        assert found.coverage is coverage
        assert [row.item for row in found.rows] == [3, None, 7]
        assert [row.high for row in found.rows] == values(expected.rows, "high")
        assert {row.verdict for row in found.rows} == {None}


def test_ten_most_frequent_items_without_a_choice(analyst, counted):
    assert len(analyst.estimate(counted[0]).rows) == 10


def test_a_collection_is_named_by_itself_its_id_or_the_beginning_of_it(analyst, counted):
    collection, _ = counted
    for which in (collection, collection.id, collection.id.hex(), collection.id.hex()[:8]):
        assert analyst.estimate(which, top=1).reports == 4000
        assert analyst.show(which).info.id == collection.id


@pytest.mark.parametrize("which", ["", "abc", "tea.ldp", "XYZ0", "f" * 65, 7, None])
def test_what_names_no_collection_is_an_error_before_any_call(which):
    with Analyst("127.0.0.1:1") as nobody, pytest.raises(InvalidSpec, match="name a collection"):
        nobody.show(which)


def test_unknown_collections(analyst):
    for which in (bytes(32), "00" * 32, "0000"):
        for method in (analyst.show, analyst.estimate, analyst.close_collection, analyst.heavy_hitters):
            with pytest.raises(ServerRefused) as refused:
                method(which)
            assert refused.value.reason == "NOT_FOUND"


@pytest.mark.parametrize(
    "wanted",
    [
        {"items": [1], "top": 3},
        {"items": [1], "every_item": True},
        {"top": 3, "every_item": True},
    ],
)
def test_one_choice_of_items(analyst, counted, wanted):
    with pytest.raises(InvalidSpec, match="choose one"):
        analyst.estimate(counted[0], **wanted)


@pytest.mark.parametrize(
    "wanted", [{"items": []}, {"items": ["x"]}, {"items": [4000]}, {"top": 0}, {"confidence": 1.5}]
)
def test_questions_that_make_no_sense_are_refused(analyst, counted, wanted):
    with pytest.raises(ServerRefused) as refused:
        analyst.estimate(counted[0], **wanted)
    assert refused.value.reason == "INVALID_ARGUMENT"
    assert refused.value.detail


def test_names_of_categories(server, analyst):
    collection = Collection.create(
        "Farbe?", Categories(("rot", "grün", "blau")), "randomized-response", "3", opens=0, closes=1 << 33
    )
    analyst.create(collection)
    deliver(server, collection, [1] * 500 + [2] * 300)
    assert [row.item for row in analyst.estimate(collection, top=2).rows] == ["rot", "grün"]
    assert [row.item for row in analyst.estimate(collection, every_item=True).rows] == [None, "rot", "grün", "blau"]
    assert analyst.estimate(collection, items=["grün"]).rows[0].high > 250


def test_a_domain_that_cannot_be_listed_says_so(analyst):
    collection = Collection.create(
        "Which?", Strings(8), "hashtogram", "1", opens=0, closes=1 << 33, parameters={"rows": 2, "q": 2, "t": 4}
    )
    analyst.create(collection)
    with pytest.raises(ServerRefused, match="list"):
        analyst.estimate(collection, every_item=True)
    assert len(analyst.estimate(collection, items=["abc", b"\xff\xfe"]).rows) == 2


@pytest.mark.long
def test_heavy_hitters_with_progress(analyst, hitters):
    told = []
    found = analyst.heavy_hitters(hitters, progress=lambda stage, share: told.append((stage, share)))
    assert {hitter.item for hitter in found.items} == {"tea", "mate"}
    assert found.items[0].low <= HITTERS_USERS / 3 <= found.items[0].high
    assert found.reports == HITTERS_USERS
    assert (found.question, found.too_few_reports) == ("Which word?", False)
    assert found.guarantee
    assert len(told) > 2
    assert all(stage and 0 <= share <= 1 for stage, share in told)
    for _ in range(5):  # one search after the other, without a pause: the place of the last one is free
        assert len(analyst.heavy_hitters(hitters, limit=1).items) == 1


def test_a_smaller_beta_promises_less_and_believes_less(analyst, hitters):
    """The count from which all items are listed grows, and the answer says which probability it is about."""
    usual, careful = (_soon(lambda beta=beta: analyst.heavy_hitters(hitters, beta=beta)) for beta in (0.2, 0.001))
    assert (usual.beta, careful.beta) == (0.2, 0.001)
    assert careful.threshold_all > 1.05 * usual.threshold_all > 0
    for beta in (0.0, 1.0, float("nan")):
        with pytest.raises(InvalidSpec, match="beta"):
            analyst.heavy_hitters(hitters, beta=beta)


def test_a_dictionary_lowers_the_bars_of_its_items(analyst, hitters):
    """Every listed item says which bar it passed (test_every_door.py has the doors)."""
    words = {"tea": 2.0, "milk": 1.0, "maté": 1.0, "much too long": 1.0}
    found = _soon(lambda: analyst.heavy_hitters(hitters, dictionary=words))
    assert (found.dictionary.candidates, found.dictionary.outside) == (2, 2)
    assert 0 < found.dictionary.each < found.threshold
    assert {(hitter.item, hitter.candidate) for hitter in found.items} == {("tea", True), ("mate", False)}
    bars = {hitter.item: hitter.bar for hitter in found.items}
    assert 1 < bars["tea"] < bars["mate"]


def test_a_dictionary_that_cannot_be_read_is_refused(analyst, hitters):
    for words, part in ((["much too long"], "no item"), ({"tea": -1.0}, "weight"), ("tea", "list of items")):
        with pytest.raises((InvalidSpec, ServerRefused), match=part):
            _soon(lambda words=words: analyst.heavy_hitters(hitters, dictionary=words))


def test_leaving_a_search_early_ends_it_at_the_server(analyst, hitters):
    class EnoughError(Exception):
        pass

    def stop(stage, share):
        raise EnoughError

    for _ in range(2):  # the server allows one search at a time: the second finds the place free again
        with pytest.raises(EnoughError):
            _soon(lambda: analyst.heavy_hitters(hitters, progress=stop))
    assert _soon(lambda: analyst.heavy_hitters(hitters, limit=1)).items


def _soon(ask):
    """Ask until the server has ended the search before; it needs a moment to notice that nobody waits for it."""
    import time

    from ldp_client.errors import Unavailable

    until = time.monotonic() + 20
    while True:
        try:
            return ask()
        except Unavailable as error:
            assert "another" in str(error)
            assert error.retry_after > 0
            assert time.monotonic() < until
            time.sleep(0.1)


def test_heavy_hitters_of_a_mechanism_without_a_decoder(analyst, counted):
    with pytest.raises(ServerRefused, match="linear-hash") as refused:
        _soon(lambda: analyst.heavy_hitters(counted[0]))
    assert refused.value.reason == "FAILED_PRECONDITION"


def test_exports(analyst, counted):
    collection, oracle = counted
    file, told = io.BytesIO(), []
    done = analyst.export(collection, file, progress=told.append)
    assert (restore(collection, file.getvalue()).counts.values == oracle.counts.values).all()
    assert (done.reports, done.bytes) == (4000, len(file.getvalue()))
    assert done.info.collection == collection
    assert told[-1] == done
    file = io.BytesIO()
    done = analyst.export(collection.id.hex()[:6], file, kind="reports")
    again = oracle_for(collection)
    again.accumulate(file.getvalue())
    assert (again.counts.values == oracle.counts.values).all()
    with pytest.raises(InvalidSpec, match="counts or reports"):
        analyst.export(collection, file, kind="everything")


def test_an_empty_collection_s_exports(analyst):
    collection = make_collection("Nothing yet?")
    analyst.create(collection)
    file = io.BytesIO()
    assert analyst.export(collection, file, kind="reports").reports == 0
    assert file.getvalue() == b""
    assert restore(collection, _counts(analyst, collection)).reports == 0


def _counts(analyst, collection):
    file = io.BytesIO()
    analyst.export(collection, file)
    return file.getvalue()


def test_status(analyst, counted):
    status = analyst.status()
    assert status.version == __version__
    assert status.collections >= 1
    assert status.started > 1_700_000_000
    assert status.log_bytes > 0
    assert not status.draining


def test_an_admission_that_the_server_is_not_ready_for(analyst):
    for admission in ("linkable-token", "unlinkable-token", "certificate"):
        with pytest.raises(ServerRefused) as refused:
            analyst.create(make_collection("Never"), admission=admission)
        assert refused.value.reason == "FAILED_PRECONDITION"


def test_a_wrong_admission(analyst):
    with pytest.raises(InvalidSpec, match="admission"):
        analyst.create(make_collection("Never"), admission="everybody")


def test_it_goes_on_after_a_close_and_after_a_restart(server, counted):
    with server.analyst() as analyst:
        assert analyst.show(counted[0]).reports == 4000
        analyst.close()
        assert analyst.show(counted[0]).reports == 4000
        server.restart()
        assert analyst.show(counted[0]).reports == 4000


def test_threads_share_it(analyst, counted):
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(analyst.estimate(counted[0], top=1).reports)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4000] * 8


def test_its_repr_and_errors_hold_no_token(server):
    secret = (server.data / "local.token").read_text().strip()
    with Analyst(server.target, token=secret[:-4] + "AAAA", timeouts=Timeouts(call=5)) as analyst:
        assert secret[:20] not in repr(analyst) + repr(analyst._connection) + str(vars(analyst))
        with pytest.raises(ServerRefused) as refused:
            analyst.status()
        assert secret[:20] not in repr(refused.value)
