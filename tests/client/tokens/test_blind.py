"""Blind signatures: published vectors, an independent check of the result, and what the issuer can see."""

import hashlib
import math
from collections import Counter

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from ldp_client.coins import draw_words
from ldp_client.errors import InvalidSpec, Unavailable, WrongType
from ldp_client.protocol import tags
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.blind import WORDS, Blinding, blind, encode, finalise, token_request, unblind
from ldp_client.tokens.token import TOKEN_BYTES, challenge, challenge_digest, token_id
from tests.client.tokens.keys import E, another_issuer, rfc_issuer, vectors

NAME = bytes(range(32))


def pss_verify(n, message, signature, salt_bytes):
    """RSASSA-PSS-VERIFY of RFC 8017, section 8.1.2, step by step and for its own sake."""
    size = (n.bit_length() + 7) // 8
    s = int.from_bytes(signature, "big")
    if len(signature) != size or s >= n:
        return False
    em = pow(s, E, n).to_bytes(-(-(n.bit_length() - 1) // 8), "big")
    if em[-1:] != b"\xbc":
        return False
    masked, h = em[: -48 - 1], em[-48 - 1 : -1]
    stream = b"".join(hashlib.sha384(h + i.to_bytes(4, "big")).digest() for i in range(len(masked) // 48 + 1))
    db = bytearray(a ^ b for a, b in zip(masked, stream, strict=False))
    free = 8 * len(em) - (n.bit_length() - 1)
    if masked[0] >> (8 - free):
        return False
    db[0] &= 0xFF >> free
    zeros = len(db) - salt_bytes - 1
    if any(db[:zeros]) or db[zeros] != 1:
        return False
    salt = bytes(db[zeros + 1 :])
    return hashlib.sha384(bytes(8) + hashlib.sha384(message).digest() + salt).digest() == h


# Published vectors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(3), ids=lambda i: vectors("rfc9474")["vectors"][i]["name"])
def test_rfc_9474(number):
    found = vectors("rfc9474")
    p, q, vector = int(found["p"], 16), int(found["q"], 16), found["vectors"][number]
    n = p * q
    message = bytes.fromhex(vector["msg_prefix"] + vector["msg"])
    salt, r = bytes.fromhex(vector["salt"]), pow(int(vector["inv"], 16), -1, n)
    m = encode(message, salt, n.bit_length() - 1)
    z = blind(m, r, n)
    assert z == int(vector["blinded_msg"], 16)
    signed = pow(z, pow(E, -1, (p - 1) * (q - 1)), n)
    assert signed == int(vector["blind_sig"], 16)
    s = unblind(signed, r, n)
    assert s == int(vector["sig"], 16)
    assert pss_verify(n, message, s.to_bytes(512, "big"), len(salt))
    assert not pss_verify(n, message + b"x", s.to_bytes(512, "big"), len(salt))


@pytest.mark.parametrize("number", range(2))
def test_rfc_9578(number, monkeypatch):
    """The whole exchange of type 2, with the vector's challenge in the place of a collection's."""
    found = vectors("rfc9578")
    vector = {name: bytes.fromhex(text) for name, text in found["vectors"][number].items()}
    issuer = rfc_issuer()
    assert issuer.key.spki.hex() == found["public_key"]
    digest = hashlib.sha256(vector["token_challenge"]).digest()
    monkeypatch.setattr("ldp_client.tokens.blind.challenge_digest", lambda _: digest)
    blinding = Blinding(NAME, issuer.key.id, vector["nonce"], vector["salt"], vector["blind"])
    assert token_request(blinding, issuer.key) == vector["token_request"]
    assert issuer.answer([vector["token_request"]]) == [vector["token_response"]]
    assert finalise(blinding, issuer.key, vector["token_response"]) == vector["token"]


def test_the_published_form_of_a_key_is_one_that_others_read():
    issuer = rfc_issuer()
    read = load_der_public_key(issuer.key.spki)
    assert read.public_numbers().n == issuer.n
    pem = read.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert IssuerKey.of(pem) == IssuerKey.of(pem.decode()) == issuer.key


# Tokens -------------------------------------------------------------------------------------------------------------


def test_the_challenge_is_the_one_of_the_manual():
    made = challenge(NAME)
    assert made == (
        b"\x00\x02" + b"\x00\x16issuer.hearsay.invalid" + b"\x20" + NAME + b"\x00\x19collector.hearsay.invalid"
    )
    assert challenge_digest(NAME) == hashlib.sha256(made).digest()
    assert tags.TOKEN_ISSUER in made and tags.TOKEN_ORIGIN in made


def test_a_token_is_an_ordinary_signature():
    issuer = rfc_issuer()
    token = issuer.token(NAME)
    signed, signature = token[:98], token[98:]
    assert len(token) == TOKEN_BYTES == 354
    assert signed == b"\x00\x02" + signed[2:34] + challenge_digest(NAME) + issuer.key.id
    assert pss_verify(issuer.n, signed, signature, 48)
    issuer.key.public_key().verify(signature, signed, PSS(MGF1(SHA384()), 48), SHA384())


def test_an_answer_that_is_no_signature_by_this_key_is_no_token():
    issuer, other = rfc_issuer(), another_issuer()
    blinding = Blinding.draw(NAME, issuer.key, draw_words(WORDS))
    request = token_request(blinding, issuer.key)
    (right,) = issuer.answer([request])
    flipped = bytes([right[0]]) + bytes([right[1] ^ 1]) + right[2:]
    wrong = [b"", right[:-1], right + b"\0", b"\0" + right, flipped, bytes(256), b"\xff" * 256]
    wrong += [*other.answer([request]), issuer.n.to_bytes(256, "big"), request[3:]]
    for answer in wrong:
        with pytest.raises(Unavailable, match="not a signature by the key"):
            finalise(blinding, issuer.key, answer)
    with pytest.raises(Unavailable):
        finalise(blinding._replace(key_id=other.key.id), issuer.key, right)
    assert len(finalise(blinding, issuer.key, right)) == TOKEN_BYTES


def test_the_id_of_a_token_follows_what_is_signed_alone():
    token = rfc_issuer().token(NAME)
    assert token_id(token) == token_id(token[:98] + bytes(256))
    assert {token_id(token[:i] + bytes([token[i] ^ 1]) + token[i + 1 :]) for i in range(98)} | {token_id(token)}
    assert len({token_id(token[:i] + bytes([token[i] ^ 1]) + token[i + 1 :]) for i in range(98)}) == 98


# What the issuer sees -----------------------------------------------------------------------------------------------


def test_every_request_fits_every_token_equally_well():
    """For each pair of a request that the issuer saw and a token that it sees later, exactly one factor joins them.

    The factor is the quotient of blind signature and signature. As factors are drawn uniformly and thrown away, the
    issuer's view says nothing about which request became which token: this is the whole proof, done with numbers.
    """
    issuer = rfc_issuer()
    tokens = [issuer.token(NAME) for _ in range(3)]
    requests = [int.from_bytes(one[3:], "big") for seen in issuer.seen for one in seen]
    for z in requests:
        for token in tokens:
            s = int.from_bytes(token[98:], "big")
            m = pow(s, E, issuer.n)
            factor = issuer.sign(z) * pow(s, -1, issuer.n) % issuer.n
            assert blind(m, factor, issuer.n) == z
    assert not any(token[i : i + 8] in b"".join(issuer.seen[0]) for token in tokens for i in range(0, 347, 8))


@pytest.mark.parametrize(("p", "q", "e"), [(11, 23, 3), (7, 13, 5)])
def test_blinding_is_uniform_by_enumeration(p, q, e):
    """Every factor of a small key: each message gives each invertible number equally often."""
    n = p * q
    invertible = [r for r in range(1, n) if math.gcd(r, n) == 1]
    expected = Counter(invertible)
    for m in invertible:
        assert Counter(blind(m, r, n, e) for r in invertible) == expected


def test_the_enumeration_would_notice_a_bad_exponent():
    n = 7 * 11
    invertible = [r for r in range(1, n) if math.gcd(r, n) == 1]
    laws = {tuple(sorted(Counter(blind(m, r, n, 3) for r in invertible).items())) for m in invertible}
    assert len(laws) == 3  # 3 divides 7 - 1: a request tells which third of the messages it hides


def test_the_factor_is_in_range_and_its_law_is_as_stated():
    key = rfc_issuer().key
    none, all_bits = [0] * WORDS, [2**64 - 1] * WORDS
    assert int.from_bytes(Blinding.draw(NAME, key, none).factor, "big") == 1
    for words in (all_bits, draw_words(WORDS)):
        assert 1 <= int.from_bytes(Blinding.draw(NAME, key, words).factor, "big") < key.n
    # 2^2176 numbers fall on n - 1 places: no place gets more than one more than another.
    assert (2**2176 // (key.n - 1)).bit_length() > 127
    drawn = Blinding.draw(NAME, key, list(range(WORDS)))
    assert (len(drawn.nonce), len(drawn.salt), len(drawn.factor)) == (32, 48, 256)
    used = drawn.nonce + drawn.salt
    assert used == b"".join(i.to_bytes(8, "little") for i in range(10))  # no word is used twice


def test_numbers_that_share_a_divisor_with_the_key_are_refused():
    issuer = rfc_issuer()
    for m, r in ((issuer.p, 3), (3, issuer.q), (0, 3)):
        with pytest.raises(InvalidSpec, match="not a sound key"):
            blind(m, r, issuer.n)


# Keys ---------------------------------------------------------------------------------------------------------------


def test_keys_that_are_none_are_refused(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    def pem(key):
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    n = rfc_issuer().n
    odd = [pem(RSAPublicNumbers(3, n).public_key()), pem(RSAPublicNumbers(E, n >> 512 | 1).public_key())]
    odd += [pem(Ed25519PrivateKey.generate().public_key()), b"", b"-----BEGIN PUBLIC KEY-----\nAAAA\n"]
    for data in odd:
        with pytest.raises(InvalidSpec):
            IssuerKey.of(data)
        (tmp_path / "key").write_bytes(data)
        with pytest.raises(InvalidSpec, match=str(tmp_path / "key")):
            IssuerKey.of(tmp_path / "key")
    with pytest.raises(InvalidSpec, match="cannot read"):
        IssuerKey.of(str(tmp_path / "none"))
    with pytest.raises(WrongType):
        IssuerKey.of(7)
    for number in (n + 1, n >> 1 | 1, 0):
        with pytest.raises(InvalidSpec):
            IssuerKey(number)


def test_secrets_do_not_show():
    issuer = rfc_issuer()
    blinding = Blinding.draw(NAME, issuer.key, draw_words(WORDS))
    for secret in (blinding.nonce, blinding.salt, blinding.factor):
        assert secret.hex() not in repr(blinding) and repr(secret) not in repr(blinding)
    assert str(issuer.n) not in repr(issuer.key)
