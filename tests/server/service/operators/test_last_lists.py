"""Which list a search begins with: the last one of its periods, or of earlier ones; never more than a few megabytes."""

import pytest

from ldp_client.errors import InvalidSpec
from ldp_client.protocol.v1 import analyst_pb2 as pb
from ldp_server.answers.over_time.periods import PeriodSpan
from ldp_server.service.operators.last_lists import LastLists


def items(*names):
    return [pb.Item(text=name) for name in names]


def span(first, last=None):
    return PeriodSpan(first, first if last is None else last, 0, 1)


def names(found):
    return [item.text for item in found]


def test_without_a_schedule_there_is_one_list_and_it_is_the_newest():
    lists = LastLists()
    assert lists.recall(1, None) == ()
    lists.remember(1, None, items("tea", "mate"))
    lists.remember(1, None, items("milk"))
    assert names(lists.recall(1, None)) == ["milk"]
    assert lists.recall(2, None) == ()
    assert lists.bytes == pb.Item(text="milk").ByteSize()


def test_an_empty_list_does_not_replace_an_older_one():
    lists = LastLists()
    lists.remember(1, None, items("tea"))
    lists.remember(1, None, [])
    assert names(lists.recall(1, None)) == ["tea"]


def test_a_period_begins_with_its_own_list_or_the_latest_of_those_before():
    lists = LastLists()
    lists.remember(1, span(5), items("five"))
    lists.remember(1, span(7), items("seven"))
    lists.remember(1, span(3), items("three"))
    for asked, found in ((span(7), ["seven"]), (span(6), ["five"]), (span(9), ["seven"]), (span(2), [])):
        assert names(lists.recall(1, asked)) == found
    lists.remember(1, span(5, 7), items("both"))
    assert names(lists.recall(1, span(5, 7))) == ["both"]
    assert names(lists.recall(1, span(5))) == ["five"]
    assert names(lists.recall(1, span(4, 6))) == ["five"]


def test_all_reports_begin_with_their_own_list_or_that_of_the_latest_period():
    lists = LastLists()
    lists.remember(1, span(3), items("three"))
    lists.remember(1, span(2), items("two"))
    assert names(lists.recall(1, None)) == ["three"]
    lists.remember(1, None, items("all"))
    assert names(lists.recall(1, None)) == ["all"]
    assert lists.recall(1, span(1)) == ()  # a list of all periods is of later ones too


def test_the_oldest_lists_make_room():
    size = pb.Item(text="x" * 100).ByteSize()
    lists = LastLists(most_bytes=3 * size)
    for number in range(5):
        lists.remember(number, None, items(str(number) * 100))
    assert [bool(lists.recall(number, None)) for number in range(5)] == [False, False, True, True, True]
    assert lists.bytes == 3 * size
    lists.remember(9, None, items("y" * 1000))
    assert lists.bytes == 0
    lists.remember(9, None, (pb.Item(text="z") for _ in range(5000)))
    assert LastLists().bytes == 0


def test_a_list_is_cut_and_a_deleted_collection_has_none():
    lists = LastLists()
    lists.remember(1, None, (pb.Item(integer=str(number)) for number in range(5000)))
    assert [item.integer for item in lists.recall(1, None)] == [str(number) for number in range(2000)]
    lists.remember(2, None, items("tea"))
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
    lists.remember(1, span(3), items("three"))
    lists.remember(1, None, items("all"))
    request = pb.HeavyHittersRequest(beta=0.2, **asked)
    before = request.SerializeToString()
    found = lists.beginning(1, of, request)
    assert names(found.start) == begins
    assert found.beta == 0.2
    own = "start" not in asked and begins
    assert (found.beginning == pb.LAST) >= bool(own)
    assert request.SerializeToString() == before


def test_two_beginnings_at_once_and_unknown_ones_are_refused():
    for beginning in (pb.LAST, pb.BLANK):
        with pytest.raises(InvalidSpec, match="given items or with the last list, not with both"):
            LastLists().beginning(1, None, pb.HeavyHittersRequest(start=items("tea"), beginning=beginning))
    with pytest.raises(InvalidSpec, match="no items, with given ones or with the last list"):
        LastLists().beginning(1, None, pb.HeavyHittersRequest(beginning=7))
