import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2
from hypothesis import given
from hypothesis import strategies as st

from ldp_client.sending.retry_info import parse_retry_info


def status(nanoseconds, before=()):
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(nanoseconds)
    wish = any_pb2.Any()
    wish.Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return status_pb2.Status(code=8, message="busy", details=[*before, wish]).SerializeToString()


@given(st.integers(0, 10**15))
def test_reads_what_the_real_messages_say(nanoseconds):
    assert abs(parse_retry_info(status(nanoseconds)) - nanoseconds / 1e9) < 1e-6


def test_skips_other_details():
    other = any_pb2.Any()
    other.Pack(error_details_pb2.DebugInfo(detail="x"))
    assert parse_retry_info(status(3_000_000_000, [other])) == 3


def test_negative_delays_mean_nothing():
    assert parse_retry_info(status(-5_000_000_000)) is None


def test_an_oversized_status_means_nothing():
    other = any_pb2.Any(type_url="x", value=bytes(20_000))
    assert parse_retry_info(status(3_000_000_000, [other])) is None


@pytest.mark.parametrize(("seconds", "nanos"), [(1 << 40, 0), (-1, 0), (1, -1), (1, 10**9)])
def test_delays_out_of_range_mean_nothing(seconds, nanos):
    wish = any_pb2.Any()
    wish.Pack(error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=seconds, nanos=nanos)))
    assert parse_retry_info(status_pb2.Status(details=[wish]).SerializeToString()) is None


@given(st.binary(max_size=200))
def test_junk_means_nothing_was_asked(junk):
    found = parse_retry_info(junk)
    assert found is None or found >= 0


@given(st.integers(0, 60), st.binary(max_size=3))
def test_damaged_messages_mean_nothing_or_a_number(place, junk):
    good = status(7_000_000_000)
    found = parse_retry_info(good[:place] + junk + good[place + 1 :])
    assert found is None or found >= 0
