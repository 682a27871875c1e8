"""Packing: one payload for a list of reports, read strictly, the same in both forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.errors import ServerRefused
from ldp_client.protocol.packing import MAX_PAYLOAD, check_length, pack, unpack
from ldp_server.arrays import packing as bulk

BOUNDS = st.one_of(st.integers(2, 1 << 32), st.sampled_from([2, 256, 257, 1 << 16, 1 << 24, (1 << 24) + 1, 1 << 32]))


def width_of(bound: int) -> int:
    return ((bound - 1).bit_length() + 7) // 8


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BOUNDS, st.data())
def test_round_trip_in_both_forms(bound: int, data: st.DataObject) -> None:
    reports = data.draw(st.lists(st.integers(0, bound - 1), min_size=1, max_size=40))
    width = width_of(bound)
    payload = pack(reports, width)
    assert len(payload) == width * len(reports)
    assert unpack(payload, width, bound) == reports
    assert bulk.unpack(payload, width, bound).tolist() == reports
    assert bulk.pack(np.array(reports, np.uint64), width) == payload


@pytest.mark.parametrize("width", range(1, 9))
def test_wide_reports(width: int) -> None:
    top = (1 << 8 * width) - 1
    reports = [0, 1, top, top // 3, top - 1]
    payload = pack(reports, width)
    assert unpack(payload, width, top + 1) == reports
    assert bulk.unpack(payload, width, top + 1).tolist() == reports
    assert bulk.pack(np.array(reports, np.uint64), width) == payload


def test_no_reports_make_no_bytes() -> None:
    for width in (1, 3, 4):
        assert pack([], width) == bulk.pack(np.zeros(0, np.uint64), width) == b""


@settings(max_examples=200, deadline=None, derandomize=True)
@given(BOUNDS, st.binary(max_size=64))
def test_a_payload_is_refused_or_is_the_only_one_for_its_reports(bound: int, payload: bytes) -> None:
    width = width_of(bound)
    try:
        reports = unpack(payload, width, bound)
    except ServerRefused as refused:
        expected = "EMPTY_BATCH" if not payload else "WRONG_LENGTH" if len(payload) % width else "REPORT_OUT_OF_RANGE"
        assert refused.reason == expected
        if payload:
            with pytest.raises(ServerRefused, match=expected):
                bulk.unpack(payload, width, bound)
    else:
        assert pack(reports, width) == payload
        assert bulk.unpack(payload, width, bound).tolist() == reports


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_length_is_checked_before_anything_is_read(width: int) -> None:
    most = MAX_PAYLOAD // width
    assert check_length(most * width, width) == most
    with pytest.raises(ServerRefused, match="EMPTY_BATCH"):
        check_length(0, width)
    with pytest.raises(ServerRefused, match="BATCH_TOO_LARGE"):
        check_length(MAX_PAYLOAD + 1, width)
    with pytest.raises(ServerRefused, match="BATCH_TOO_LARGE"):
        check_length(10**30, width)
    if width > 1:
        with pytest.raises(ServerRefused, match="WRONG_LENGTH"):
            check_length(width + 1, width)


def test_a_refusal_tells_no_report() -> None:
    for unpack_ in (unpack, bulk.unpack):
        with pytest.raises(ServerRefused) as refused:
            unpack_((54321).to_bytes(2, "little"), 2, 1000)
        assert "54321" not in str(refused.value)
        assert "54321" not in repr(refused.value)


def test_a_report_that_does_not_fit_is_an_error_and_never_cut() -> None:
    with pytest.raises(OverflowError):
        pack([256], 1)
