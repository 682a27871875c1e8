"""Sealed reports: which keys are taken, what a sealed report is bound to, and that its length says nothing."""

from __future__ import annotations

import hashlib

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ldp_client.protocol import sealing
from ldp_client.protocol.sealing import (
    CollectorKey,
    is_usable,
    key_id,
    key_id_of,
    seal,
    seal_info,
    seal_reports,
    seal_suite,
    sealed_bytes,
    split_units,
    unit_digest,
)

PRIVATE = X25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = PRIVATE.public_key().public_bytes_raw()
ID, OTHER = b"c" * 32, b"d" * 32
P = 2**255 - 19
OF_ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)


def unseal(sealed, collection=ID):
    found = seal_suite().decrypt(sealed[9:], PRIVATE, info=seal_info(collection, key_id(PUBLIC)))
    return bytes(found)


# -- keys


@pytest.mark.parametrize("point", [0, 1, *OF_ORDER_8, P - 1, P, P + 1])
def test_a_point_of_low_order_is_no_key(point):
    """Whatever the device's own key is, the secret that both compute would be 0: everybody could open the report."""
    assert not is_usable(point.to_bytes(32, "little"))


@pytest.mark.parametrize("length", [0, 1, 31, 33, 64])
def test_a_key_has_32_bytes(length):
    assert not is_usable(bytes(range(1, length + 1)))


def test_a_key_that_somebody_made_is_usable():
    assert is_usable(PUBLIC)
    assert is_usable(X25519PrivateKey.generate().public_key().public_bytes_raw())
    assert is_usable((9).to_bytes(32, "little"))


def test_a_key_is_named_by_the_beginning_of_its_hash():
    name = hashlib.sha256(PUBLIC).digest()[:8]
    assert key_id(PUBLIC) == CollectorKey(PUBLIC, 5).id == name
    assert CollectorKey(PUBLIC, 5) == CollectorKey(PUBLIC, 5) != CollectorKey(PUBLIC, 6)


# -- one report


@pytest.mark.parametrize(("report", "token"), [(b"\7", b""), (b"\0\0\0", b""), (b"\xff" * 8, b"t" * 48)])
def test_what_is_sealed_is_opened_with_the_private_key(report, token):
    sealed = seal(report, ID, PUBLIC, token)
    assert sealed[:1] == b"\x01"
    assert key_id_of(sealed) == key_id(PUBLIC)
    assert len(sealed) == len(report) + len(token) + 57 == sealed_bytes(len(report), len(token))
    assert unseal(sealed) == report + token


def test_the_length_follows_from_the_collection_alone():
    assert len({len(seal(bytes([report]), ID, PUBLIC)) for report in range(0, 256, 15)}) == 1
    assert (sealed_bytes(1), sealed_bytes(4), sealed_bytes(4, 48), sealing.SEALED_EXTRA) == (58, 61, 109, 57)


def test_the_same_report_gives_other_bytes_each_time():
    assert len({seal(b"\1", ID, PUBLIC)[9:41] for _ in range(20)}) == 20


def test_a_sealed_report_belongs_to_its_collection_and_key():
    sealed = seal(b"\1", ID, PUBLIC)
    assert seal_info(ID, b"k" * 8) == b"hearsay/sealed/v1" + ID + b"k" * 8
    with pytest.raises(InvalidTag):
        unseal(sealed, OTHER)
    with pytest.raises(InvalidTag):
        seal_suite().decrypt(sealed[9:], PRIVATE, info=seal_info(ID, b"k" * 8))


def test_a_bit_that_flips_is_noticed_wherever_it_is():
    sealed = seal(b"\1\2", ID, PUBLIC)
    for place in range(9, len(sealed)):
        changed = sealed[:place] + bytes([sealed[place] ^ 1]) + sealed[place + 1 :]
        with pytest.raises(InvalidTag):
            unseal(changed)


# -- several


@pytest.mark.parametrize("width", [1, 2, 5])
def test_each_report_of_a_payload_is_sealed_by_itself(width):
    reports = [bytes([number]) * width for number in range(4)]
    payload = seal_reports(b"".join(reports), width, ID, PUBLIC)
    units = list(split_units(payload, sealed_bytes(width)))
    assert [unseal(unit) for unit in units] == reports
    assert {key_id_of(unit) for unit in units} == {key_id(PUBLIC)}
    assert len({unit_digest(unit) for unit in units}) == 4


def test_each_report_has_a_token_of_its_own():
    tokens = [bytes([number]) * 48 for number in range(3)]
    payload = seal_reports(b"abc", 1, ID, PUBLIC, tokens)
    assert [unseal(unit) for unit in split_units(payload, sealed_bytes(1, 48))] == [
        b"a" + tokens[0], b"b" + tokens[1], b"c" + tokens[2],
    ]  # fmt: skip
    for wrong in (tokens[:2], [*tokens, tokens[0]]):
        with pytest.raises(ValueError, match="zip"):
            seal_reports(b"abc", 1, ID, PUBLIC, wrong)


def test_units_are_cut_one_after_the_other():
    assert list(split_units(b"aabbcc", 2)) == [b"aa", b"bb", b"cc"]
    assert list(split_units(b"", 2)) == []
    assert list(split_units(b"aab", 2)) == [b"aa", b"b"]


def test_a_unit_is_known_again_by_its_bytes():
    sealed = seal(b"\1", ID, PUBLIC)
    assert unit_digest(sealed) == hashlib.sha256(sealed).digest()[:16]
    assert unit_digest(sealed) != unit_digest(sealed[:-1] + bytes([sealed[-1] ^ 1]))


@pytest.mark.parametrize("first", [b"\x00", b"\x02", b"\xff", b""])
def test_bytes_of_another_form_name_no_key(first):
    assert key_id_of(first + key_id(PUBLIC) * bool(first) + bytes(50)) is None or not first
    assert key_id_of(first) is None
