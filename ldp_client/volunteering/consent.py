"""What a user agreed to, before anything of theirs leaves in the clear for the curator."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ldp_client.errors import InvalidSpec, WrongType
from ldp_client.protocol.sealing import is_usable
from ldp_client.trust.policy import amount, hexes

__all__ = ["Consent"]

_MOST_WORDS = 20_000


@dataclass(frozen=True, init=False)
class Consent:
    """The words that the user agreed to, whose key may open the answer, and what all releases may cost together.

    `words` are those of the form, as the user saw them. They should say who reads the raw answer, and what for.
    """

    words: str
    curator: bytes
    """The curator's X25519 public key."""
    epsilon: Fraction
    """The most that all releases about this data set may cost, for replacement of one person's record."""

    def __init__(self, words: str, *, curator: bytes | str, epsilon: str | int | Decimal) -> None:
        if not isinstance(words, str):
            raise WrongType(f"consent: give the words that the user agreed to, not {type(words).__name__}")
        if not 20 <= len(words.strip()) <= _MOST_WORDS:
            raise InvalidSpec(f"consent: give the whole text that the user agreed to, 20 to {_MOST_WORDS:,} characters")
        (key,) = hexes([curator], "curator")
        if not is_usable(key):
            raise InvalidSpec("curator: nothing can be sealed to this key")
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "curator", key)
        object.__setattr__(self, "epsilon", amount(epsilon, "epsilon of a consent"))
