"""The issuer's signature: right, checked before it leaves, and only for numbers in range; and its files."""

import os
import stat

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from ldp_client.coins import draw_words
from ldp_client.errors import InvalidSpec
from ldp_client.tokens import IssuerKey
from ldp_client.tokens.blind import WORDS, Blinding, finalise, token_request
from ldp_server.issuer import signing
from ldp_server.issuer.signing import FaultySignature, KeyRing, SigningKey, make_key, make_secret, read_private
from tests.client.tokens.keys import another_issuer, rfc_issuer

NAME = bytes(range(32))


@pytest.fixture(scope="module")
def key():
    return SigningKey(rfc_issuer().private_key)


def pem(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def private(path, data):
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_it_is_the_textbook_s_signature(key):
    issuer = rfc_issuer()
    for z in (1, 2, issuer.n - 1, issuer.p, int.from_bytes(os.urandom(255), "big")):
        assert int.from_bytes(key.sign(z.to_bytes(256, "big")), "big") == issuer.sign(z)


def test_a_token_that_it_signed(key):
    blinding = Blinding.draw(NAME, key.public, draw_words(WORDS))
    request = token_request(blinding, key.public)
    assert len(finalise(blinding, key.public, key.sign(request[3:]))) == 354


@pytest.mark.parametrize("what", ["zero", "n", "n + 1", "all bits", "short", "long", "empty"])
def test_numbers_out_of_range_are_refused(key, what):
    n = key.public.n
    element = {
        "zero": bytes(256),
        "n": n.to_bytes(256, "big"),
        "n + 1": (n + 1).to_bytes(256, "big"),
        "all bits": b"\xff" * 256,
        "short": bytes(254) + b"\x05",
        "long": bytes(256) + b"\x05",
        "empty": b"",
    }[what]
    with pytest.raises(InvalidSpec, match="from 1 to n - 1"):
        key.sign(element)


@pytest.mark.parametrize("half", ["_dp", "_dq", "_inverse"])
def test_a_faulty_computation_does_not_leave(half):
    """With one wrong half, gcd(s^e - z, n) is a factor of n: the fault attack works, and so its result stays here."""
    import math

    issuer = rfc_issuer()
    faulty = SigningKey(issuer.private_key)
    setattr(faulty, half, getattr(faulty, half) ^ 4)
    z = 1234567
    with pytest.raises(FaultySignature) as refused:
        faulty.sign(z.to_bytes(256, "big"))
    assert refused.value.args == ("a signature did not verify and was not sent: look at this machine's memory",)
    if half != "_inverse":
        leaked = faulty._raise(z)
        assert math.gcd(pow(leaked, 65_537, issuer.n) - z, issuer.n) in {issuer.p, issuer.q}


def test_what_is_raised_to_a_secret_power_is_never_what_the_caller_sent(key, monkeypatch):
    """Base blinding: for one z, the numbers inside are different each time, and none is z. So are the exponents."""
    raised, exponents, n = [], [], key.public.n
    inside = key._raise
    monkeypatch.setattr(key, "_raise", lambda m: (raised.append(m), inside(m))[1], raising=True)

    def watched(base, exponent, modulus=None):
        if exponent.bit_length() > 1000:
            exponents.append(exponent)
        return pow(base, exponent, modulus)

    monkeypatch.setattr(signing, "pow", watched, raising=False)
    z = 77
    answers = {key.sign(z.to_bytes(256, "big")) for _ in range(4)}
    assert len(answers) == 1  # and the caller sees nothing of it
    assert len({*raised, z}) == 5 and all(0 < m < n for m in raised)
    assert len(set(exponents)) == len(exponents) == 8


def test_a_ring_finds_the_key_that_a_request_names(key):
    other = SigningKey(another_issuer().private_key)
    if other.public.id[-1] != key.public.id[-1]:
        ring = KeyRing([other, key])
        assert ring.public == (other.public, key.public)
        assert ring.find(key.public.id[-1]) is key and ring.find(other.public.id[-1]) is other
        free = next(i for i in range(256) if i not in {key.public.id[-1], other.public.id[-1]})
        assert ring.find(free) is None
    for wrong in ([], [key, key], [key, other, key]):
        with pytest.raises(InvalidSpec, match="keys"):
            KeyRing(wrong)


def test_key_files(tmp_path):
    public = make_key(tmp_path / "issuer")
    assert stat.S_IMODE((tmp_path / "issuer").stat().st_mode) == 0o600
    assert SigningKey.load(tmp_path / "issuer").public == public == IssuerKey.load(tmp_path / "issuer.pub")
    with pytest.raises(InvalidSpec, match="never overwritten"):
        make_key(tmp_path / "issuer")
    (tmp_path / "issuer").unlink()
    with pytest.raises(InvalidSpec, match="never overwritten"):
        make_key(tmp_path / "issuer")
    make_secret(tmp_path / "secret")
    assert len(read_private(tmp_path / "secret").strip()) >= 43
    with pytest.raises(InvalidSpec, match="never overwritten"):
        make_secret(tmp_path / "secret")
    with pytest.raises(InvalidSpec, match="cannot write"):
        make_secret(tmp_path / "none" / "secret")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o644])
def test_a_key_that_others_can_read_is_refused(tmp_path, mode):
    path = private(tmp_path / "key", pem(rfc_issuer().private_key))
    assert SigningKey.load(path)
    path.chmod(mode)
    with pytest.raises(InvalidSpec, match=f"chmod 600 {path}"):
        SigningKey.load(path)


def test_files_that_are_no_keys_are_refused(tmp_path):
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    small = pem(generate_private_key(65_537, 1024))
    cases = [b"", b"junk", pem(Ed25519PrivateKey.generate()), small]
    for data in cases:
        with pytest.raises(InvalidSpec, match="RSA"):
            SigningKey.load(private(tmp_path / "key", data))
    with pytest.raises(InvalidSpec, match="cannot read"):
        SigningKey.load(tmp_path / "none")


def test_a_key_does_not_show(key):
    issuer = rfc_issuer()
    for secret in (issuer.p, issuer.q, issuer.d):
        assert str(secret) not in repr(key) and f"{secret:x}" not in repr(key)
