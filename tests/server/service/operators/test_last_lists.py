"""Which list a search begins with, and which one is its dictionary; never more than a few megabytes of lists."""

import zlib

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.service.operators.last_lists import LastLists


def items(*names):
    return [pb.Item(text=name) for name in names]


def keep(lists, number, of, found, newest=None):
    lists.remember(number, of, found, newest)


def span(first, last=None):
    return PeriodSpan(first, first if last is None else last, 0, 1)


def names(found):
    return [item.text for item in found]


def test_without_a_schedule_there_is_one_list_and_it_is_the_newest():
    lists = LastLists()
    assert lists.recall(1, None) == ()
    keep(lists, 1, None, items("tea", "mate"))
    keep(lists, 1, None, items("milk"))
    assert names(lists.recall(1, None)) == ["milk"]
    assert lists.recall(2, None) == ()
    assert lists.bytes == pb.Item(text="milk").ByteSize()


def test_an_empty_list_does_not_replace_an_older_one():
    lists = LastLists()
    keep(lists, 1, None, items("tea"))
    keep(lists, 1, None, [])
    assert names(lists.recall(1, None)) == ["tea"]


def test_a_period_begins_with_its_own_list_or_the_latest_of_those_before():
    lists = LastLists()
    keep(lists, 1, span(5), items("five"))
    keep(lists, 1, span(7), items("seven"))
    keep(lists, 1, span(3), items("three"))
    for asked, found in ((span(7), ["seven"]), (span(6), ["five"]), (span(9), ["seven"]), (span(2), [])):
        assert names(lists.recall(1, asked)) == found
    keep(lists, 1, span(5, 7), items("both"))
    assert names(lists.recall(1, span(5, 7))) == ["both"]
    assert names(lists.recall(1, span(5))) == ["five"]
    assert names(lists.recall(1, span(4, 6))) == ["five"]


def test_all_reports_begin_with_their_own_list_or_that_of_the_latest_period():
    lists = LastLists()
    keep(lists, 1, span(3), items("three"))
    keep(lists, 1, span(2), items("two"))
    assert names(lists.recall(1, None)) == ["three"]
    keep(lists, 1, None, items("all"))
    assert names(lists.recall(1, None)) == ["all"]
    assert lists.recall(1, span(1)) == ()  # a list of all periods is of later ones too


def test_the_oldest_lists_make_room():
    size = pb.Item(text="x" * 100).ByteSize()
    lists = LastLists(most_bytes=3 * size)
    for number in range(5):
        keep(lists, number, None, items(str(number) * 100))
    assert [bool(lists.recall(number, None)) for number in range(5)] == [False, False, True, True, True]
    assert lists.bytes == 3 * size
    keep(lists, 9, None, items("y" * 1000))
    assert lists.bytes == 0
    keep(lists, 9, None, (pb.Item(text="z") for _ in range(5000)))
    assert LastLists().bytes == 0


def test_a_list_is_cut_and_a_deleted_collection_has_none():
    lists = LastLists()
    keep(lists, 1, None, (pb.Item(integer=str(number)) for number in range(5000)))
    assert [item.integer for item in lists.recall(1, None)] == [str(number) for number in range(2000)]
    keep(lists, 2, None, items("tea"))
    lists.forget(1)
    assert lists.recall(1, None) == ()
    assert names(lists.recall(2, None)) == ["tea"]


@pytest.mark.parametrize(
    ("asked", "of", "begins"),
    [
        ({}, None, []),
        ({}, span(4), ["three"]),
        ({"beginning": pb.LAST}, None, ["all"]),
        ({"beginning": pb.LAST}, span(1), []),
        ({"beginning": pb.BLANK}, span(4), []),
        ({"start": items("given")}, span(4), ["given"]),
    ],
)
def test_what_a_request_begins_with(asked, of, begins):
    lists = LastLists()
    keep(lists, 1, span(3), items("three"))
    keep(lists, 1, None, items("all"))
    request = pb.HeavyHittersRequest(beta=0.2, **asked)
    before = request.SerializeToString()
    found = lists.prepared(1, of, request).request
    assert names(found.start) == begins
    assert found.beta == 0.2
    own = "start" not in asked and begins
    assert (found.beginning == pb.LAST) >= bool(own)
    assert request.SerializeToString() == before


def test_two_beginnings_at_once_and_unknown_ones_are_refused():
    for beginning in (pb.LAST, pb.BLANK):
        with pytest.raises(InvalidSpec, match="given items or with the last list, not with both"):
            LastLists().prepared(1, None, pb.HeavyHittersRequest(start=items("tea"), beginning=beginning))
    with pytest.raises(InvalidSpec, match="no items, with given ones or with the last list"):
        LastLists().prepared(1, None, pb.HeavyHittersRequest(beginning=7))


def words(request):
    """The items of a request's dictionary."""
    return zlib.decompress(request.dictionary).decode().split("\n") if request.dictionary else []


@pytest.mark.parametrize(
    ("asked", "of", "named"),
    [
        ({}, span(4), ["three"]),
        ({}, span(3), ["two"]),
        ({}, span(2), []),
        ({}, span(3, 5), ["two"]),
        ({}, None, []),
        ({"dictionary_source": pb.EARLIER_LIST}, span(9), ["three"]),
        ({"dictionary_source": pb.NO_DICTIONARY}, span(4), []),
        ({"dictionary": zlib.compress(b"mine")}, span(4), ["mine"]),
        ({"beginning": pb.BLANK}, span(4), ["three"]),
    ],
)
def test_the_dictionary_is_the_list_of_the_latest_periods_before(asked, of, named):
    lists = LastLists()
    for number, name in ((3, "three"), (2, "two")):
        keep(lists, 1, span(number), items(name), newest=number)
    keep(lists, 1, None, items("all"))
    keep(lists, 1, span(1, 9), items("long"), newest=9)
    keep(lists, 2, span(1), items("other"), newest=1)
    found = lists.prepared(1, of, pb.HeavyHittersRequest(**asked))
    assert words(found.request) == named
    assert (found.earlier is not None) == (bool(named) and named != ["mine"])
    assert (found.request.dictionary_source == pb.EARLIER_LIST) >= (found.earlier is not None)
    if found.earlier is not None:
        assert found.earlier.last < of.first


def test_a_list_in_which_later_periods_had_a_part_is_no_dictionary():
    """Nor one that was found with what an analyst gave: nobody knows where that comes from."""
    lists = LastLists()
    keep(lists, 1, span(5), items("five"), newest=5)
    given = ({"start": items("x")}, {"dictionary": zlib.compress(b"x")})
    for asked in ({"beginning": pb.LAST}, *given):
        found = lists.prepared(1, span(3), pb.HeavyHittersRequest(**asked))
        assert found.newest == (None if asked in given else 3)
    keep(lists, 1, span(3), items("three"))
    keep(lists, 1, span(4), items("four"), newest=None)
    assert lists.prepared(1, span(5), pb.HeavyHittersRequest()).earlier is None
    assert lists.prepared(1, span(6), pb.HeavyHittersRequest()).earlier == span(5)
    # The search of period 4 begins with a list of which nobody knows what had a part in it.
    assert lists.prepared(1, span(4), pb.HeavyHittersRequest()).newest is None
    assert lists.prepared(1, span(4), pb.HeavyHittersRequest(beginning=pb.BLANK)).newest == 4
    assert lists.prepared(1, None, pb.HeavyHittersRequest()).newest is None


def test_what_began_with_a_later_list_knows_it():
    """A list of periods 2 to 8 begins the search of the same periods; as its dictionary it would know period 8."""
    lists = LastLists()
    keep(lists, 1, span(2, 8), items("long"), newest=8)
    assert lists.prepared(1, span(2, 8), pb.HeavyHittersRequest()).newest == 8
    assert lists.prepared(1, span(5), pb.HeavyHittersRequest()).earlier is None
    keep(lists, 1, span(4), items("four"), newest=7)
    assert lists.prepared(1, span(6), pb.HeavyHittersRequest()).newest == 7
    assert lists.prepared(1, span(6), pb.HeavyHittersRequest()).earlier is None


def test_items_that_cannot_stand_in_a_dictionary_are_left_out_of_it():
    lists = LastLists()
    named = [pb.Item(text="a\tb"), pb.Item(text="a\nb"), pb.Item(raw=b"\xff"), pb.Item(integer="-7")]
    keep(lists, 1, span(1), [pb.Item(none=True), pb.Item(text="a\tb")], newest=1)
    assert lists.prepared(1, span(2), pb.HeavyHittersRequest()).earlier is None
    keep(lists, 1, span(1), named, newest=1)
    found = lists.prepared(1, span(2), pb.HeavyHittersRequest())
    assert zlib.decompress(found.request.dictionary) == b"\xff\n-7"


@pytest.mark.parametrize(
    ("asked", "of", "said"),
    [
        ({"dictionary_source": pb.EARLIER_LIST}, None, "name the periods"),
        ({"dictionary_source": pb.EARLIER_LIST, "dictionary": b"x"}, span(2), "not both"),
        ({"dictionary_source": pb.NO_DICTIONARY, "dictionary": b"x"}, span(2), "not both"),
        ({"dictionary_source": 9}, span(2), "no dictionary, a given one or the list of earlier periods"),
    ],
)
def test_dictionaries_that_contradict_themselves_are_refused(asked, of, said):
    with pytest.raises(InvalidSpec, match=said):
        LastLists().prepared(1, of, pb.HeavyHittersRequest(**asked))
