"""The protocol a second time, written from docs/protocol.md and proto/ldp/v1/spec.proto and from nothing else.

It imports nothing of the project and no protobuf library, and of the library cryptography only X25519 and AES-GCM.
It is naive on purpose: one obvious sentence of code for every sentence of the page, no speed, no cleverness,
exact integers and fractions throughout. Where it and the project agree, two readings of the page agree.

Messages are dictionaries with the field names of the schema. A field that is not in the dictionary has its default
value; a message field that is in it is present, even if it is empty.
"""

from __future__ import annotations

import decimal
import hashlib
import hmac
import itertools
import math
import re
from fractions import Fraction

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

N = 2**64

# --- Encoding -----------------------------------------------------------------------------------------------------

SCHEMA = {
    "Collection": {1: ("question", "bytes"), 2: ("window", "Window"), 3: ("relay", "RelayTerms")},
    "RelayTerms": {1: ("smallest_batch", "uint32")},
    "Window": {1: ("opens", "uint64"), 2: ("closes", "uint64")},
    "Question": {
        1: ("version", "uint32"),
        2: ("text", "string"),
        3: ("domain", "Domain"),
        4: ("epsilon", "string"),
        5: ("mechanism", "Mechanism"),
        6: ("schedule", "Schedule"),
        7: ("nonce", "uint32"),
    },
    "Domain": {1: ("categories", "Categories"), 2: ("strings", "Strings"), 3: ("integers", "Integers")},
    "Categories": {1: ("names", "repeated string")},
    "Strings": {1: ("max_bytes", "uint32")},
    "Integers": {1: ("lowest", "sint64"), 2: ("count", "uint64")},
    "Schedule": {1: ("period_seconds", "uint64"), 2: ("reports", "uint32")},
    "Mechanism": {
        1: ("randomized_response", "RandomizedResponse"),
        2: ("linear_hash", "LinearHash"),
        3: ("hashtogram", "Hashtogram"),
        15: ("subset_selection", "SubsetSelection"),
    },
    "RandomizedResponse": {},
    "LinearHash": {1: ("q", "uint32"), 2: ("t", "uint32")},
    "Hashtogram": {1: ("rows", "uint32"), 2: ("q", "uint32"), 3: ("t", "uint32")},
    "SubsetSelection": {1: ("d", "uint32")},
    "SignedListBody": {1: ("serial", "uint64"), 2: ("head", "bytes"), 3: ("next_key", "bytes"), 5: ("root", "bytes")},
}
NUMBERS = {"uint32": 2**32, "uint64": 2**64, "sint64": 2**64}
VARINT, LENGTH_DELIMITED = 0, 2


class Refused(Exception):
    """A spec or a payload that a reader must not accept."""


def varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; every byte but the last has its top bit set."""
    out = []
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes([*out, number])


def zigzag(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


def unzigzag(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number // 2) - 1


def encode(message: str, fields: dict) -> bytes:
    """The one accepted encoding of a message."""
    out = b""
    for number, (name, kind) in sorted(SCHEMA[message].items()):
        if name not in fields:
            continue
        value = fields[name]
        if kind in NUMBERS:
            value = zigzag(value) if kind == "sint64" else value
            if value != 0:
                out += varint(number * 8 + VARINT) + varint(value)
            continue
        if kind == "repeated string":
            chunks = [name.encode() for name in value]
        elif kind in ("string", "bytes"):
            chunk = value.encode() if kind == "string" else value
            chunks = [chunk] if chunk else []
        else:
            chunks = [encode(kind, value)]
        for chunk in chunks:
            out += varint(number * 8 + LENGTH_DELIMITED) + varint(len(chunk)) + chunk
    return out


def read_varint(data: bytes) -> tuple[int, bytes]:
    number = 0
    for place in range(10):
        if place >= len(data):
            raise Refused("truncated varint")
        number += (data[place] % 128) * 128**place
        if data[place] < 128:
            if number >= 2**64 or (place > 0 and data[place] == 0):
                raise Refused("varint too large, or not in its shortest form")
            return number, data[place + 1 :]
    raise Refused("varint too long")


def decode(message: str, data: bytes) -> dict:
    """The fields of a message in its one accepted encoding; anything else is refused."""
    fields: dict = {}
    last = 0
    while data:
        tag, data = read_varint(data)
        number, wire = tag // 8, tag % 8
        if number not in SCHEMA[message]:
            raise Refused("unknown field")
        name, kind = SCHEMA[message][number]
        if number < last or (number == last and kind != "repeated string"):
            raise Refused("fields out of order, or twice")
        last = number
        if wire != (VARINT if kind in NUMBERS else LENGTH_DELIMITED):
            raise Refused("wrong wire type")
        value, data = read_varint(data)
        if kind in NUMBERS:
            if value == 0 or value >= NUMBERS[kind]:
                raise Refused("explicit default, or too large")
            fields[name] = unzigzag(value) if kind == "sint64" else value
            continue
        if value > len(data):
            raise Refused("truncated")
        chunk, data = data[:value], data[value:]
        if kind == "repeated string":
            fields.setdefault(name, []).append(utf8(chunk))
        elif kind in ("string", "bytes"):
            if not chunk:
                raise Refused("explicit default")
            fields[name] = utf8(chunk) if kind == "string" else chunk
        else:
            fields[name] = decode(kind, chunk)
    return fields


def utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not UTF-8") from None


# --- Collection: spec, ids, seed ----------------------------------------------------------------------------------


def question_bytes(question: dict) -> bytes:
    return encode("Question", {"version": 1, **question})


def spec_bytes(question: dict, window: dict, relay: dict | None = None) -> bytes:
    outer = {"question": question_bytes(question), "window": window}
    return encode("Collection", outer if relay is None else outer | {"relay": relay})


def collection_id(spec: bytes) -> bytes:
    return hashlib.sha256(b"hearsay/collection/v1" + spec).digest()


def question_id(question: bytes) -> bytes:
    return hashlib.sha256(b"hearsay/question/v1" + question).digest()


def seed(question: bytes) -> bytes:
    return hashlib.sha256(b"hearsay/seed/v1" + question).digest()


# --- The signed list ----------------------------------------------------------------------------------------------


def list_head(ids: list[bytes]) -> bytes:
    head = bytes(32)
    for one in ids:
        head = hashlib.sha256(b"hearsay/collection-list-head/v1" + head + one).digest()
    return head


def list_bytes(ids: list[bytes], next_key: bytes) -> bytes:
    return encode("SignedListBody", {"serial": len(ids), "head": list_head(ids), "next_key": next_key})


def signed_bytes(list_body: bytes) -> bytes:
    return b"hearsay/collection-list/v1" + list_body


def list_may_follow(held: list[bytes], held_body: bytes, ids: list[bytes], body: bytes) -> bool:
    """Whether a device that holds one list takes the other, both signed by the same key."""
    if len(ids) > 100_000 or len(ids) < len(held):
        return False
    if len(ids) == len(held) and body != held_body:
        return False
    return ids[: len(held)] == held


# --- Sealed reports: HPKE of RFC 9180, base mode, from X25519, HMAC and AES-GCM --------------------------------------


def hkdf_extract(salt: bytes, key: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), key, "sha256")


def hkdf_expand(key: bytes, info: bytes, length: int) -> bytes:
    out, block, number = b"", b"", 1
    while len(out) < length:
        block = hmac.digest(key, block + info + bytes([number]), "sha256")
        out, number = out + block, number + 1
    return out[:length]


def labeled_extract(suite: bytes, salt: bytes, label: bytes, key: bytes) -> bytes:
    return hkdf_extract(salt, b"HPKE-v1" + suite + label + key)


def labeled_expand(suite: bytes, key: bytes, label: bytes, info: bytes, length: int) -> bytes:
    return hkdf_expand(key, length.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info, length)


KEM_SUITE = b"KEM" + (0x0020).to_bytes(2, "big")
HPKE_SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x0020, 0x0001, 0x0001))


def hpke_key_and_nonce(shared: bytes, ephemeral: bytes, public: bytes, info: bytes) -> tuple[bytes, bytes]:
    """From the result of X25519 to the AES key and the nonce of the only message."""
    extracted = labeled_extract(KEM_SUITE, b"", b"eae_prk", shared)
    secret = labeled_expand(KEM_SUITE, extracted, b"shared_secret", ephemeral + public, 32)
    context = b"\x00" + labeled_extract(HPKE_SUITE, b"", b"psk_id_hash", b"")
    context += labeled_extract(HPKE_SUITE, b"", b"info_hash", info)
    key = labeled_extract(HPKE_SUITE, secret, b"secret", b"")
    return labeled_expand(HPKE_SUITE, key, b"key", context, 16), labeled_expand(
        HPKE_SUITE, key, b"base_nonce", context, 12
    )


def collector_key_id(public: bytes) -> bytes:
    return hashlib.sha256(public).digest()[:8]


def sealing_info(collection: bytes, public: bytes) -> bytes:
    return b"hearsay/sealed/v1" + collection + collector_key_id(public)


def seal(report: bytes, collection: bytes, public: bytes, ephemeral: bytes) -> bytes:
    """Seal with a given ephemeral private key."""
    pair = X25519PrivateKey.from_private_bytes(ephemeral)
    own = pair.public_key().public_bytes_raw()
    shared = pair.exchange(X25519PublicKey.from_public_bytes(public))
    key, nonce = hpke_key_and_nonce(shared, own, public, sealing_info(collection, public))
    return b"\x01" + collector_key_id(public) + own + AESGCM(key).encrypt(nonce, report, b"")


def open_sealed(sealed: bytes, collection: bytes, private: bytes) -> bytes:
    """Open with a private key; Refused unless every byte is right."""
    pair = X25519PrivateKey.from_private_bytes(private)
    public = pair.public_key().public_bytes_raw()
    check(sealed[:9] == b"\x01" + collector_key_id(public), "form, key id")
    shared = pair.exchange(X25519PublicKey.from_public_bytes(sealed[9:41]))
    key, nonce = hpke_key_and_nonce(shared, sealed[9:41], public, sealing_info(collection, public))
    try:
        return AESGCM(key).decrypt(nonce, sealed[41:], b"")
    except InvalidTag:
        raise Refused("tag") from None


# --- The tree over the signed list --------------------------------------------------------------------------------


def tree_root(ids: list[bytes]) -> bytes:
    if not ids:
        return hashlib.sha256(b"").digest()
    if len(ids) == 1:
        return hashlib.sha256(b"\x00" + ids[0]).digest()
    k = split_point(ids)
    return hashlib.sha256(b"\x01" + tree_root(ids[:k]) + tree_root(ids[k:])).digest()


def split_point(ids: list[bytes]) -> int:
    k = 1
    while 2 * k < len(ids):
        k = 2 * k
    return k


def tree_path(m: int, ids: list[bytes]) -> list[bytes]:
    if len(ids) == 1:
        return []
    k = split_point(ids)
    if m < k:
        return [*tree_path(m, ids[:k]), tree_root(ids[k:])]
    return [*tree_path(m - k, ids[k:]), tree_root(ids[:k])]


def tree_growth(m: int, ids: list[bytes], known: bool = True) -> list[bytes]:
    if m == len(ids):
        return [] if known else [tree_root(ids)]
    k = split_point(ids)
    if m <= k:
        return [*tree_growth(m, ids[:k], known), tree_root(ids[k:])]
    return [*tree_growth(m - k, ids[k:], False), tree_root(ids[:k])]


def rooted_list_bytes(ids: list[bytes]) -> bytes:
    return encode("SignedListBody", {"serial": len(ids), "head": list_head(ids), "root": tree_root(ids)})


def cosigned_bytes(list_key: bytes, list_body: bytes) -> bytes:
    return b"hearsay/list-cosignature/v1" + list_key + hashlib.sha256(list_body).digest()


# --- Rules of a spec ----------------------------------------------------------------------------------------------


# The characters with the Unicode property White_Space, and U+001C to U+001F.
WHITE_SPACE = set(
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def check(rule: bool, text: str) -> None:
    if not rule:
        raise Refused(text)


def one_member(oneof: dict) -> tuple[str, dict]:
    check(len(oneof) == 1, "exactly one member of a oneof")
    return next(iter(oneof.items()))


def read_collection(spec: bytes) -> tuple[dict, dict]:
    """(question, window) of a spec that obeys every rule; Refused for any other bytes."""
    check(len(spec) <= 1_048_576, "too long")
    outer = decode("Collection", spec)
    question, window = decode("Question", outer.get("question", b"")), outer.get("window", {})
    check(question.get("version") == 1, "version")
    text = question.get("text", "")
    check(1 <= len(text.encode()) <= 4096 and not set(text) <= WHITE_SPACE, "text")
    check(question.get("nonce", 0) <= 65535, "nonce")
    check(window.get("opens", 0) < window.get("closes", 0) <= 2**40, "window")
    if "relay" in outer:
        check(2 <= outer["relay"].get("smallest_batch", 0) <= 2**20, "smallest_batch")
    check_epsilon(question.get("epsilon", ""))
    if "schedule" in question:
        schedule = question["schedule"]
        check(60 <= schedule.get("period_seconds", 0) <= 2**40, "period")
        check(1 <= schedule.get("reports", 0) <= 2**20, "reports")
    check_domain(question.get("domain", {}))
    check_mechanism(question.get("mechanism", {}), domain_size(question["domain"]))
    return question, window


def check_epsilon(text: str) -> None:
    check(re.fullmatch(r"(0|[1-9][0-9]?)(\.[0-9]{0,8}[1-9])?", text, re.ASCII) is not None, "epsilon")
    check(Fraction(1, 100) <= Fraction(text) <= 20, "epsilon")


def check_domain(domain: dict) -> None:
    kind, rules = one_member(domain)
    if kind == "categories":
        names = rules.get("names", [])
        check(1 <= len(names) <= 2**20 - 1 and len(set(names)) == len(names), "names")
        check(all(1 <= len(name.encode()) <= 256 for name in names), "name")
    elif kind == "strings":
        check(1 <= rules.get("max_bytes", 0) <= 1024, "max_bytes")
    else:
        check(1 <= rules.get("count", 0) <= 2**64 - 1, "count")


def check_mechanism(mechanism: dict, size: int) -> None:
    kind, rules = one_member(mechanism)
    if kind == "randomized_response":
        check(size <= 2**20, "size")
        return
    if kind == "subset_selection":
        check(size <= 256 and 1 <= rules.get("d", 0) <= size // 2, "size, d")
        check(math.comb(size, rules["d"]) <= 2**63, "number of sets")
        return
    q, t = rules.get("q", 0), rules.get("t", 0)
    check(1 <= t <= 24 and 2 <= q <= 2**20, "q, t")  # q is the k of a response, so at most 2^20
    prime = all(q % divisor for divisor in range(2, int(q**0.5) + 2) if divisor < q)
    check(prime or q == 4 or q == 8, "q is prime, 4 or 8")
    check(q**t <= 2**24, "q^t")
    if kind == "linear_hash":
        check(size <= q**t, "size")
    else:
        check(1 <= rules.get("rows", 0) <= 4096, "rows")
        check(rules["rows"] * points(q, t) * q <= 2**32, "bound")


# --- Domain: item to index ----------------------------------------------------------------------------------------


def domain_size(domain: dict) -> int:
    kind, rules = one_member(domain)
    if kind == "categories":
        return len(rules["names"]) + 1
    if kind == "strings":
        return (256 ** (rules["max_bytes"] + 1) - 1) // 255 + 1
    return rules["count"] + 1


def index_bits(domain: dict) -> int:
    return max(1, len(bin(domain_size(domain) - 1)) - 2)


def item_index(domain: dict, item: str | bytes | int | None) -> int:
    """The index of an item; 0 for none and for any item outside the domain."""
    kind, rules = one_member(domain)
    if item is None:
        return 0
    if kind == "categories":
        return rules["names"].index(item) + 1 if item in rules["names"] else 0
    if kind == "strings":
        data = item.encode() if isinstance(item, str) else item
        if len(data) > rules["max_bytes"]:
            return 0
        return 1 + (256 ** len(data) - 1) // 255 + int.from_bytes(data, "big")
    index = item - rules.get("lowest", 0) + 1
    return index if 1 <= index <= rules["count"] else 0


# --- Public randomness --------------------------------------------------------------------------------------------


def expand(seed: bytes, label: str, length: int) -> bytes:
    name = label.encode("ascii")
    return hashlib.shake_128(b"hearsay/stream/v1" + seed + bytes([len(name)]) + name).digest(length)


def expand_words(seed: bytes, label: str, count: int, size: int = 8) -> list[int]:
    """Little-endian numbers of `size` bytes each."""
    data = expand(seed, label, size * count)
    return [int.from_bytes(data[size * i : size * i + size], "little") for i in range(count)]


def limbs(x: int, bits: int) -> list[int]:
    """x_1 ... x_s of 32 bits, the lowest first; s = ceil(bits / 32)."""
    return [x // 2 ** (32 * i) % 2**32 for i in range((bits + 31) // 32)]


def pairwise_hash(seed: bytes, label: str, bits: int, target: int, x: int) -> int:
    x_limbs = limbs(x, bits)
    b, *a = expand_words(seed, label, len(x_limbs) + 1)
    v = (b + sum(a_i * x_i for a_i, x_i in zip(a, x_limbs, strict=True))) % N // 2**32
    return v * target // 2**32


def kwise_hash(seed: bytes, label: str, bits: int, k: int, target: int, x: int) -> int:
    p = 2**61 - 1
    c = [number % p for number in expand_words(seed, label + "/polynomial", k, 16)]
    u = x
    if bits > 60:
        x_limbs = limbs(x, bits)
        d = [number % p for number in expand_words(seed, label + "/compression", len(x_limbs), 16)]
        u = sum(d_i * x_i for d_i, x_i in zip(d, x_limbs, strict=True)) % p
    w = sum(c_i * u**i for i, c_i in enumerate(c)) % p
    return w // 2**29 * target // 2**32


def block_round(part: int, words: int, k_0: int, k_1: int, k_2: int) -> int:
    """F_i of the block permutation: a part to a number of `words` words."""

    def mix(z: int) -> int:
        z %= N
        z ^= z >> 32
        z = z * k_1 % N
        z ^= z >> 29
        z = z * k_2 % N
        return z ^ (z >> 32)

    z = k_0
    for j in range(words):
        z = mix(z ^ (part // N**j % N))
    out = [z]
    while len(out) < words:
        out.append(mix(out[-1] + k_0))
    return sum(word * N**j for j, word in enumerate(out))


def permute(seed: bytes, label: str, bits: int, x: int, backwards: bool = False) -> int:
    """The block permutation, or its inverse: the same rounds, the last first."""
    right_bits = (bits + 1) // 2
    left_bits = bits - right_bits
    words = (right_bits + 63) // 64
    keys = expand_words(seed, label, 18)
    left, right = x // 2**right_bits, x % 2**right_bits
    for i in reversed(range(6)) if backwards else range(6):
        key = (keys[3 * i], keys[3 * i + 1] | 1, keys[3 * i + 2] | 1)
        if i % 2 == 0:
            left ^= block_round(right, words, *key) % 2**left_bits
        else:
            right ^= block_round(left, words, *key) % 2**right_bits
    return left * 2**right_bits + right


# --- Randomizers: words to report ---------------------------------------------------------------------------------


def e_low(epsilon: str) -> Fraction:
    """floor(2^64 e^epsilon) / 2^64, from 80 digits of a correctly rounded exponential; the floor is certain."""
    context = decimal.Context(prec=80)
    power = context.exp(decimal.Decimal(epsilon))
    ulp = Fraction(10) ** (power.adjusted() - 79)
    below, above = ((Fraction(power) + sign * ulp) * N for sign in (-1, 1))
    if below // 1 != above // 1:
        raise ArithmeticError("80 digits do not settle the floor")
    return Fraction(below // 1, N)


def ceiling(number: Fraction) -> int:
    return -(-number // 1)


def response_weights(epsilon: str, k: int) -> tuple[int, int]:
    """(T, W): how many words give the true answer, and how many give each of the others (without the leftover)."""
    e = e_low(epsilon)
    w = ceiling(N / (e + k - 1))
    t = N - (k - 1) * w
    if (e * w - t) * 2**32 > e * w:
        w = N // (e + k - 1)
        t = e * w // 1
    return t, w


def response(epsilon: str, k: int, x: int, u: int) -> int:
    t, w = response_weights(epsilon, k)
    if u < t:
        return x
    if u < t + (k - 1) * w:
        j = (u - t) % (k - 1)
        return j if j < x else j + 1
    return (u - t - (k - 1) * w) % k


def points(q: int, t: int) -> int:
    """P: how many points there are."""
    return (q**t - 1) // (q - 1)


def digits(number: int, q: int, t: int) -> list[int]:
    return [number // q**i % q for i in range(t)]


def linear_hash_report(epsilon: str, q: int, t: int, index: int, u_1: int, u_2: int) -> int:
    j = u_1 * points(q, t) // N
    starts = [(q**s - 1) // (q - 1) for s in range(t)]
    s = max(place for place in range(t) if starts[place] <= j)
    a = q**s + j - starts[s]
    pairs = list(zip(digits(a, q, t), digits(index, q, t), strict=True))
    if q in (4, 8):
        h = 0
        for x, y in pairs:
            h ^= field_product(x, y, {4: 2, 8: 3}[q])
    else:
        h = sum(x * y for x, y in pairs) % q
    return j * q + response(epsilon, q, h, u_2)


def report_of(question: dict, index: int, words: list[int]) -> int:
    """The report for an index, from its private words."""
    kind, rules = one_member(question["mechanism"])
    epsilon = question["epsilon"]
    if kind == "randomized_response":
        return response(epsilon, domain_size(question["domain"]), index, words[0])
    if kind == "subset_selection":
        return subset_selection(epsilon, domain_size(question["domain"]), rules["d"], index, words)
    q, t = rules["q"], rules["t"]
    if kind == "linear_hash":
        return linear_hash_report(epsilon, q, t, index, words[0], words[1])
    bits = index_bits(question["domain"])
    return hashtogram_report(epsilon, seed(question_bytes(question)), bits, rules, index, words)


def hashtogram_report(epsilon: str, own_seed: bytes, bits: int, rules: dict, index: int, words: list[int]) -> int:
    q, t = rules["q"], rules["t"]
    r = words[0] * rules["rows"] // N
    cell = pairwise_hash(own_seed, f"hashtogram/row/{r}", bits, q**t, index)
    return r * points(q, t) * q + linear_hash_report(epsilon, q, t, cell, words[1], words[2])


def word_count(question: dict) -> int:
    words = {"randomized_response": 1, "linear_hash": 2, "hashtogram": 3, "subset_selection": 3}
    return words[one_member(question["mechanism"])[0]]


def bound_of(question: dict) -> int:
    """Reports are below this number."""
    kind, rules = one_member(question["mechanism"])
    if kind == "randomized_response":
        return domain_size(question["domain"])
    if kind == "subset_selection":
        return math.comb(domain_size(question["domain"]), rules["d"])
    return rules.get("rows", 1) * points(rules["q"], rules["t"]) * rules["q"]


# --- Packing ------------------------------------------------------------------------------------------------------


def report_bytes(bound: int) -> int:
    return (max(1, len(bin(bound - 1)) - 2) + 7) // 8


def pack(reports: list[int], bound: int) -> bytes:
    return b"".join(report.to_bytes(report_bytes(bound), "little") for report in reports)


def unpack(payload: bytes, bound: int) -> list[int]:
    width = report_bytes(bound)
    check(len(payload) > 0, "EMPTY_BATCH")
    check(len(payload) <= 250_000, "BATCH_TOO_LARGE")
    check(len(payload) % width == 0, "WRONG_LENGTH")
    reports = [int.from_bytes(payload[i : i + width], "little") for i in range(0, len(payload), width)]
    check(all(report < bound for report in reports), "REPORT_OUT_OF_RANGE")
    return reports


def randomize(question: dict, item: str | bytes | int | None, words: list[int]) -> bytes:
    """One packed report: what a device sends."""
    index = item_index(question["domain"], item)
    return pack([report_of(question, index, words)], bound_of(question))


# --- Attributes and numbers -----------------------------------------------------------------------------------------


def attributes_index(names: list[str], held: set[str] | None) -> int:
    if held is None or not held <= set(names):
        return 0
    return sum(2 ** names.index(name) for name in held)


def integers_index(lowest: int, count: int, item: int | None) -> int:
    return item - lowest + 1 if item is not None and lowest <= item < lowest + count else 0


def composed_response(k: int, low: int, high: int, flip: int, index: int, u: int) -> int:
    kept = 2**48 - flip
    m = {d: N * kept ** (k - d) * flip**d // 2 ** (48 * k) for d in range(low, high + 1)}
    inside = sum(math.comb(k, d) for d in m)
    if inside < 2**k:
        rest = (N - sum(math.comb(k, d) * m[d] for d in m)) // (2**k - inside)
        m |= {d: rest for d in range(k + 1) if d not in m}
    start = 0
    for d in range(k + 1):
        after = start + math.comb(k, d) * m[d]
        if u < after:
            # The combinatorial number system orders subsets by their largest element, then the next, and so on.
            subsets = sorted(itertools.combinations(range(k - 1, -1, -1), d))
            return index ^ sum(2**place for place in subsets[(u - start) // m[d]])
        start = after
    return (u - start) % 2**k


def sampled_attribute(epsilon: str, k: int, index: int, u: list[int]) -> int:
    j = u[0] * k // N
    return 2 * j + response(epsilon, 2, index // 2**j % 2, u[1])


def window_weights(epsilon: str, m: int, w: int) -> tuple[int, int]:
    e = e_low(epsilon)
    x = N / (w * e + m - w)
    down, up = x // 1, ceiling(x)
    pairs = [(e * down // 1, down), ((N - (m - w) * up) // w, up)]

    def gives(pair):
        t, lie = pair
        s = (N - w * t - (m - w) * lie) // m
        return Fraction(t + s, lie + s)

    first, second = pairs
    return second if gives(second) > gives(first) else first


def bounded_number(epsilon: str, count: int, m: int, w: int, presence: int, index: int, u: list[int]) -> int:
    if 256 * u[0] // N < presence:
        return m + response(epsilon, 2, int(index > 0), u[2])
    a, b = ((index - 1) * (m - w), count - 1) if index else (m - w, 2)
    place = a // b + (u[1] * b < a % b * N)
    t, lie = window_weights(epsilon, m, w)
    if u[2] < w * t:
        return place + u[2] % w
    if u[2] < w * t + (m - w) * lie:
        j = (u[2] - w * t) % (m - w)
        return j if j < place else j + w
    return (u[2] - w * t - (m - w) * lie) % m


def hierarchy(epsilon: str, count: int, b: int, q: int, index: int, u: list[int]) -> int:
    cells = [count]
    while cells[0] > b:
        cells.insert(0, ceiling(Fraction(cells[0], b)))
    level = u[0] * len(cells) // N
    places = [next(t for t in range(1, 100) if q**t >= c + 1) for c in cells]
    before = sum(points(q, t) * q for t in places[:level])
    cell = 1 + (index - 1) // b ** (len(cells) - 1 - level) if index else 0
    return before + linear_hash_report(epsilon, q, places[level], cell, u[1], u[2])


# --- Records ---------------------------------------------------------------------------------------------------------


def field_size(field: dict) -> int:
    """How many values a field has, `none` included."""
    if field["kind"] == "yes_no":
        return 2 if field["none_is_no"] else 3
    return 1 + (len(field["names"]) if "names" in field else field["highest"] - field["lowest"] + 1)


def field_value(field: dict, held: str | int | bool | None) -> int:
    if field["kind"] == "yes_no":
        yes = field_size(field) - 1
        return {None: 0, False: yes - 1, True: yes}[held]
    if field["kind"] == "categories":
        return field["names"].index(held) + 1 if held in field["names"] else 0
    return integers_index(field["lowest"], field["highest"] - field["lowest"] + 1, held)


def record_index(fields: list[dict], item: dict | None) -> int:
    """The value of the first field counts once, each other as often as there are contents of the fields before it."""
    if item is None:
        return 0
    index, contents = 0, 1
    for field in fields:
        index += contents * field_value(field, item[field["name"]])
        contents *= field_size(field)
    return index


def sampled_table(epsilon: str, sizes: list[int], lists: dict, index: int, u: list[int]) -> int:
    values = []
    for size in sizes:
        values.append(index % size)
        index //= size
    r = u[0] * sum(lists["weights"]) // N
    start = 0
    for mask, weight, kind, number in zip(
        lists["tables"], lists["weights"], lists["responses"], lists["numbers"], strict=True
    ):
        chosen = [i for i in range(len(sizes)) if mask // 2**i % 2 == 1]
        cells = math.prod(sizes[i] for i in chosen)
        if kind == 1:
            cells, cell = 2, sum(values[i] for i in chosen) % 2
        else:
            cell = sum(values[i] * math.prod(sizes[j] for j in chosen if j < i) for i in chosen)
        t = next(t for t in range(1, 25) if number**t >= cells) if kind == 3 else 0
        if r < weight:
            if kind == 2:
                return start + subset_selection(epsilon, cells, number, cell, u[1:])
            if kind == 3:
                return start + linear_hash_report(epsilon, number, t, cell, u[1], u[2])
            return start + response(epsilon, cells, cell, u[1])
        r -= weight
        start += {2: math.comb(cells, number), 3: points(number, t) * number if t else 0}.get(kind, cells)
    raise AssertionError("r is below the sum of the weights")


def every_field(sizes: list[int], billionths: list[int], index: int, u: list[int]) -> int:
    """From the last field to the first, each value from what the fields before it leave of the index."""
    report = 0
    for i in range(len(sizes) - 1, -1, -1):
        value = index // math.prod(sizes[:i]) % sizes[i]
        epsilon = f"{billionths[i] // 10**9}.{billionths[i] % 10**9:09d}"
        report = report * sizes[i] + response(epsilon, sizes[i], value, u[i])
    return report


def averaged_table(epsilon: str, sizes: list[int], number: int, q: int, index: int, u: list[int]) -> int:
    values = []
    for size in sizes:
        values.append(index % size)
        index //= size
    others = [i for i in range(len(sizes)) if i != number]
    cell = sum(values[i] * math.prod(sizes[j] for j in others if j < i) for i in others)
    cells, v = math.prod(sizes[i] for i in others), values[number] - 1
    up = 1 if Fraction(v, sizes[number] - 2) > Fraction(u[0], N) else 0
    if q == 0:
        return response(epsilon, 1 + 2 * cells, 0 if v < 0 else 1 + 2 * cell + up, u[1])
    t = next(t for t in range(1, 25) if q**t >= q * (1 + cells))
    return linear_hash_report(epsilon, q, t, 0 if v < 0 else q * (1 + cell) + up, u[1], u[2])


def sampled_grid(epsilon: str, sizes: list[int], grid: dict, index: int, u: list[int]) -> int:
    x, y = index % sizes[0] - 1, index // sizes[0] - 1
    width, height = sizes[0] - 1, sizes[1] - 1

    def part(v: int, parts: int, count: int) -> int:
        """The place of v / count, as a fraction of the range, among so many equal parts."""
        return int(Fraction(v, count) * parts)

    there = x >= 0 and y >= 0
    tile = part(x, grid["across"], width) + grid["across"] * part(y, grid["down"], height)
    cells = [
        (grid["lines"], grid["columns"], part(x, grid["columns"], width), grid["lines_q"]),
        (grid["lines"], grid["rows"], part(y, grid["rows"], height), grid["lines_q"]),
        (grid["tiles"], grid["across"] * grid["down"], tile, grid["tiles_q"]),
    ]
    r, start = u[0] * sum(weight for weight, *_ in cells) // N, 0
    for weight, count, cell, q in cells:
        element = 1 + cell if there else 0
        t = next(t for t in range(1, 25) if q**t >= count + 1) if q else 0
        if r < weight:
            if q:
                return start + linear_hash_report(epsilon, q, t, element, u[1], u[2])
            return start + response(epsilon, count + 1, element, u[1])
        r -= weight
        start += points(q, t) * q if q else count + 1
    raise AssertionError("r is below the sum of the weights")


# --- Compiled channels ----------------------------------------------------------------------------------------------


def compiled_channel(weights: list[int], elements: int, index: int, u: list[int]) -> int:
    """The first report whose weights, and those of the reports before it, are more than the word."""
    m = len(weights) // elements
    line, limit = weights[index * m : index * m + m], 0
    for report, weight in enumerate(line):
        limit += weight
        if u[0] < limit:
            return report
    raise AssertionError("the weights of a line add up to 2^64")


def shifted_channel(sizes: list[int], p: dict, index: int, u: list[int]) -> int:
    """Each axis in turn, its lists cut off from the front of those of the spec."""
    absent, moves, empties = (list(p[name]) for name in ("absent", "moves", "empties"))
    report, stride = 0, 1
    for axis, size in enumerate(sizes):
        c, ring = size - 1, p["rings"][axis] == 1
        count = 0 if c == 1 else c if ring else 2 * c - 1
        w, moves = moves[:count], moves[count:]
        e, empties = empties[: count and c], empties[count and c :]
        x, index = index % size, index // size
        none, word = u[2 * axis], u[2 * axis + 1]
        if x == 0:
            place = sum(word >= sum(e[: j + 1]) for j in range(len(e) - 1))
        else:
            moved = x - 1 + sum(word >= total for total in itertools.accumulate(w[:-1]))
            place = moved % c if ring else min(max(moved - (c - 1), 0), c - 1)
        said = 0 if none < absent[2 * axis + (x > 0)] else 1 + place
        report += stride * said
        stride *= size
    return report


# --- Subset selection -----------------------------------------------------------------------------------------------


def subset_of_rank(n: int, chosen: int, rank: int) -> list[int]:
    """The subset p_1 < p_2 < ... of 0 ... n-1 with C(p_1, 1) + C(p_2, 2) + ... = rank, its largest place first."""
    places = []
    for count in range(chosen, 0, -1):
        place = max(p for p in range(n) if math.comb(p, count) <= rank)
        rank -= math.comb(place, count)
        places.append(place)
    return places


def subset_threshold(epsilon: str, k: int, d: int) -> int:
    """T: the largest integer with T ceil(M/A) <= e_low (N - T) floor(M/B)."""
    a, b = ceiling(Fraction(N * N, math.comb(k - 1, d - 1))), N * N // math.comb(k - 1, d)
    return N * e_low(epsilon) * b // (a + e_low(epsilon) * b)


def subset_selection(epsilon: str, k: int, d: int, index: int, u: list[int]) -> int:
    number = u[1] * N + u[2]
    if u[0] < subset_threshold(epsilon, k, d):
        places = [0] + [1 + p for p in subset_of_rank(k - 1, d - 1, number * math.comb(k - 1, d - 1) // N**2)]
    else:
        places = [1 + p for p in subset_of_rank(k - 1, d, number * math.comb(k - 1, d) // N**2)]
    turned = sorted((place + index) % k for place in places)
    return sum(math.comb(place, i + 1) for i, place in enumerate(turned))


# --- Sketches of teams ----------------------------------------------------------------------------------------------
# Fields by polynomials, Lagrange's formula at every use, graphs as sets of pairs.

POLYNOMIALS = [
    None,
    *("x+1", "x2+x+1", "x3+x+1", "x4+x+1", "x5+x2+1", "x6+x+1", "x7+x3+1", "x8+x4+x3+x2+1", "x9+x4+1"),
    *("x10+x3+1", "x11+x2+1", "x12+x6+x4+x+1", "x13+x4+x3+x+1", "x14+x10+x6+x+1", "x15+x+1", "x16+x12+x3+x+1"),
]


def modulus(c):
    total = 0
    for term in POLYNOMIALS[c].split("+"):
        total += 1 if term == "1" else 1 << int(term[1:] or "1")
    return total


def field_product(a, b, c):
    """Multiply as polynomials over two elements, then take the remainder."""
    whole = 0
    for i in range(c):
        if b >> i & 1:
            whole ^= a << i
    for i in range(2 * c, c - 1, -1):
        if whole >> i & 1:
            whole ^= modulus(c) << (i - c)
    return whole


def quotient(a, b, c):
    """The x with x b = a, as a times b to the power 2^c - 2."""
    power, base, exponent = 1, b, (1 << c) - 2
    while exponent:
        if exponent & 1:
            power = field_product(power, base, c)
        base = field_product(base, base, c)
        exponent >>= 1
    return field_product(a, power, c)


def codeword(symbols, length, c):
    """f(0) ... f(length - 1) for the polynomial with f(j) = symbol j."""
    out = []
    for m in range(length):
        value = 0
        for j, symbol in enumerate(symbols):
            term = symbol
            for i in range(len(symbols)):
                if i != j:
                    term = quotient(field_product(term, m ^ i, c), j ^ i, c)
            value ^= term
        out.append(value)
    return out


def team_graph(seed, teams, degree, attempt):
    """Each team's neighbours in slot order."""
    label = f"expander-sketch/expander/attempt={attempt}"
    rounds = (degree + 1) // 2
    words = expand_words(seed, label, rounds * (teams - 1))
    slots = [{} for _ in range(teams)]
    for i in range(rounds):
        order = list(range(teams))
        for step in range(teams - 1):
            last = teams - 1 - step
            place = words[i * (teams - 1) + step] * (last + 1) // 2**64
            order[place], order[last] = order[last], order[place]
        if 2 * i + 1 < degree:
            for n in range(teams):
                slots[order[n]][2 * i] = order[(n + 1) % teams]
                slots[order[n]][2 * i + 1] = order[n - 1]
        else:
            for n in range(0, teams, 2):
                slots[order[n]][2 * i] = order[n + 1]
                slots[order[n + 1]][2 * i] = order[n]
    return [[row[s] for s in range(degree)] for row in slots]


def expander_cell(seed, bits, parameters, index, team):
    c, y, teams = parameters["chunk_bits"], parameters["hash_bits"], parameters["teams"]
    block = permute(seed, "expander-sketch/permutation", bits, index)
    k = -(-bits // c)
    symbols, rest = [], block
    for j in range(k):
        width = (bits + k - 1 - j) // k
        symbols.append(rest % 2**width)
        rest //= 2**width
    word = codeword(symbols, teams, c)

    def h(m):
        label = f"expander-sketch/hash/{m}"
        if parameters["symbol_pointers"]:
            return pairwise_hash(seed, label, c, 2**y, word[m])
        return pairwise_hash(seed, label, bits, 2**y, block)

    fields = [(word[team], c)]
    if not parameters["symbol_pointers"]:
        fields.append((h(team), y))
    fields += [(h(n), y) for n in team_graph(seed, teams, parameters["degree"], parameters["attempt"])[team]]
    if parameters["bucket_bits"]:
        buckets = 2 ** parameters["bucket_bits"]
        fields.append((kwise_hash(seed, "expander-sketch/bucket", bits, 8 * bits, buckets, block), 0))
    cell, shift = 0, 0
    for value, width in fields:
        cell += value << shift
        shift += width
    return cell


def tree_cell(seed, bits, name, parameters, index, level):
    block = permute(seed, f"{name}/permutation", bits, index)
    starts = [0, *range(parameters["first_bits"], bits, parameters["step_bits"])]
    starts += [bits] * parameters.get("check_levels", 0)
    start, end = starts[level], [*starts, bits][level + 1]
    payload = block // 2**start % 2 ** (end - start)
    if start == 0:
        return payload
    room = 2 ** (parameters["cell_bits"] - (end - start))
    return payload + 2 ** (end - start) * pairwise_hash(seed, f"{name}/level/{level}", start, room, block % 2**start)


def teams_of(name, bits, parameters):
    if name == "expander-sketch":
        return parameters["teams"]
    return 1 + len(range(parameters["first_bits"], bits, parameters["step_bits"])) + parameters.get("check_levels", 0)


def sketch_report(name, seed, epsilon, bits, parameters, index, words):
    """The report of a sketch with one report."""
    q, t = parameters["q"], parameters["t"]
    team = words[0] * teams_of(name, bits, parameters) // 2**64
    if name == "expander-sketch":
        cell = expander_cell(seed, bits, parameters, index, team)
    else:
        cell = tree_cell(seed, bits, name, parameters, index, team)
    return team * (q**t - 1) // (q - 1) * q + linear_hash_report(epsilon, q, t, cell, words[1], words[2])


# --- Set selection --------------------------------------------------------------------------------------------------


def sets_index(names: list[str], item: set[str] | None) -> int:
    return sum(2 ** names.index(name) for name in item or () if name in names)


def set_elements(k: int, most: int, index: int, u: int) -> list[int]:
    """The m elements that a user holds: items are 0 ... k-1, filler j is k+j-1, `more` is k+m."""
    held = [place for place in range(k) if index // 2**place % 2]
    if len(held) <= most:
        return held + [k + j - 1 for j in range(1, most - len(held) + 1)]
    start = u * len(held) // N
    return [*sorted((held[start:] + held[:start])[: most - 1]), k + most]


def set_selection(epsilon: str, k: int, most: int, d: int, index: int, u: list[int]) -> int:
    elements = k + most + 1
    misses = math.comb(elements - most, d)
    hits = math.comb(elements, d) - misses
    a, b = ceiling(Fraction(N * N, hits)), N * N // misses
    threshold = N * e_low(epsilon) * b // (a + e_low(epsilon) * b)
    mine, v = set_elements(k, most, index, u[3]), u[1] * N + u[2]
    order = [place for place in range(elements) if place not in mine] + mine
    rank = misses + v * hits // N**2 if u[0] < threshold else v * misses // N**2
    sent = sorted(order[place] for place in subset_of_rank(elements, d, rank))
    return sum(math.comb(place, count) for count, place in enumerate(sent, 1))
