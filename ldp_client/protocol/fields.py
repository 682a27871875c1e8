"""The finite fields F_q of linear-hash response: q prime, or one of the powers 4 and 8.

An element is a number below q. For a prime q the arithmetic is that of the integers modulo q. For q = 2^k an element is
a polynomial in w over F_2, bit i being the coefficient of w^i. The sum of two is their XOR. The product is taken with
w^k = w + 1, so modulo w^2 + w + 1 or w^3 + w + 1, which have no divisors. A vector of F_q^t is the number that has its
elements as digits in base q, the first of them lowest: for q = 2^k, k bits each.

Inner products for q = 2^k. Let phi(z) be the coefficient of 1 in z. It is additive, and so is z = <a, x> in each bit of
x. Let m_r be the number whose digit i has the bits j = 0 ... k-1: phi(a_i w^(j+r)). Then

    phi(w^r <a, x>) = the parity of m_r & x.

As w^k = w + 1, phi(w^r z) is the coefficient of 1 in z for r = 0, and that of w^(k-r) for 0 < r < k. So k parities are
the k bits of the product. The numbers m_r come from a by a few shifts of all digits at once:

- phi(a w^j) is bit 0 of a for j = 0, and bit k - j for 0 < j < k: m_0 is a with the bits from 1 on reversed in each
  digit, which for k = 2 is a itself;
- phi(a w^(r+k)) = phi(a w^(r+1)) + phi(a w^r): m_(r+1) is m_r with each digit moved down by one bit, and the sum of
  its two lowest bits on top.

All numbers stay below 2^24, one digit of CPython's integers, and the steps are the same for every pair of vectors.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["BINARY", "FIELDS", "BinaryVectors", "is_field", "is_prime"]

BINARY = {2: 1, 4: 2, 8: 3}
"""k of the fields with q = 2^k elements."""
FIELDS = "q is a prime, 4 or 8"
"""What an error says."""


def is_prime(number: int) -> bool:
    """Whether a small number is prime."""
    return number >= 2 and all(number % d for d in range(2, int(number**0.5) + 1))


def is_field(q: int) -> bool:
    """Whether linear-hash response may use F_q."""
    return q in BINARY or is_prime(q)


@dataclass(frozen=True)
class BinaryVectors:
    """The masks for inner products of vectors of `t` elements of `k` bits (see above)."""

    k: int
    t: int
    lowest: int = field(init=False)
    """Bit 0 of every digit."""
    first: int = field(init=False)
    """Bit 1."""
    lower: int = field(init=False)
    """All bits but the last."""

    def __post_init__(self) -> None:
        ones = sum(1 << self.k * i for i in range(self.t))
        for name, value in (("lowest", ones), ("first", ones << 1), ("lower", ones * ((1 << self.k - 1) - 1))):
            object.__setattr__(self, name, value)

    def product(self, a: int, x: int) -> int:
        """Return the inner product of two vectors."""
        k, lowest, lower = self.k, self.lowest, self.lower  # k is a property of the question
        if k == 1:
            return (a & x).bit_count() & 1
        if k == 2:
            down = a >> 1
            b = down & lower | ((a ^ down) & lowest) << 1
            return (a & x).bit_count() & 1 | ((b & x).bit_count() & 1) << 1
        first = self.first
        a = a & lowest | a >> 1 & first | (a & first) << 1
        down = a >> 1
        b = down & lower | ((a ^ down) & lowest) << 2
        down = b >> 1
        c = down & lower | ((b ^ down) & lowest) << 2
        return (a & x).bit_count() & 1 | ((b & x).bit_count() & 1) << 2 | ((c & x).bit_count() & 1) << 1
