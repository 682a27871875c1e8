r"""Every field of a record in one report, each by randomized response at an epsilon of its own.

Some fields must be protected more than others: by law, by contract, or by a promise in the app. Here each field has
its own epsilon, and no field borrows from another one.

Distribution. A record of F fields has the values v_i, each from 0 to s_i - 1, 0 being the field's `none`. Field i is
answered by randomized response (randomized_response.py) with s_i answers, at e_i, by word i alone:

    y_i = the response to v_i with the word u_i,        report = y_1 + s_1 (y_2 + s_2 (y_3 + ...)).

The responses use different words and different fields, so the law of a report is the product of theirs:

    Pr[report | record] = product over i of Pr[y_i | v_i].

An absent field is its value 0, which is answered like every other value of the field.

Privacy. Each factor depends on one field. So two records that differ in the fields D alone have laws whose ratio is at
most the product over D of the responses' ratios, each at most e_low(e_i) <= e^(e_i): at most e^(sum over D of e_i).
That is e_i for field i by itself, and for the person e_1 + ... + e_F. The question's epsilon has to be this sum,
exactly: it is what a ledger charges. An answer to one field says nothing about another field beyond what the fields
have to do with each other among people. That much it does say: who knows that all A are B learns of B from the answer
about A. If fields tell each other, e_i is no bound for what can be learned about field i; the sum is.

Pair laws (shared/pair_law.py). Of all pairs of records, those that differ in every field are the worst. For one field,
a truth that both records share has the multiples (r, r) at one answer and (1, 1) at another, where truths that differ
have (r, 1) and (1, r). In the product with any multiples (a, b) of the other fields, L has the values r (a - e^eps b)
and a - e^eps b there, here r a - e^eps b and a - e^eps r b: the same sum, and the largest of the four. So this is a
spread in every field. Of the words that are left over, an answer has as many as any other, or one more. That one is
rounded into the first law and out of the second.

Estimation. Given the record, the answers are independent. The table of the probabilities of any fields is the Kronecker
product of those of the responses, and so is its inverse (ldp_server/oracles/shared/product.py). With p and q how likely
the truth and a lie are and d = p - q, the estimate of one of k cells of some fields has, for users spread evenly, the
variance n (product over these fields of (1/s^2 + (s - 1)/(s^2 d^2)) - 1/k^2). It multiplies with each field: single
fields are known best, pairs less well, and tables of many fields hardly.

Why randomized response. For a field of more than 3 e^(e_i) + 2 elements other responses have less variance, by a factor
of (e + s - 2)/(4 e) for s elements, e = e^(e_i). Their reports are sets of elements; counted together for several
fields, they would need far more cells. Such fields are better made coarser (docs/records.md).

Limits. At most 1,024 elements of a field, and 2^22 different records. Each e_i is from 0.01 to 20, in billionths.

Timing. Each field costs one division and one response, whatever the record is. CPython is not constant time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, ClassVar, Self

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import WORD_BITS, Example, FieldLoss, Randomizer
from ldp_client.mechanisms.randomized_response import Response
from ldp_client.mechanisms.shared.pair_law import Atom, PairLaw, clones, merged, together
from ldp_client.protocol.domain import Categories, Domain, Field, Integers, Record, YesNo
from ldp_client.protocol.epsilon import Epsilon

__all__ = ["BILLION", "MAX_ELEMENTS_OF_A_FIELD", "MAX_RECORDS", "EveryField", "design", "field_epsilon"]

BILLION = 10**9
MAX_ELEMENTS_OF_A_FIELD = 1024
MAX_RECORDS = 1 << 22
_MOST_ATOMS = 1024
"""A pair law with more takes long to work with; the one of any mechanism stands for it."""


def field_epsilon(billionths: int) -> Epsilon:
    """Return the epsilon of a field."""
    if not 0 <= billionths <= 20 * BILLION:
        raise InvalidSpec("the epsilon of a field is from 0.01 to 20, in billionths")
    whole, part = divmod(billionths, BILLION)
    return Epsilon.parse(f"{whole}.{part:09d}")


@dataclass(frozen=True)
class EveryField(Randomizer):
    """Reports every field of a record, each at its own epsilon."""

    epsilon: Epsilon
    """Of the person: the sum over the fields."""
    record: Record
    billionths: tuple[int, ...]
    """The epsilon of each field."""
    word_bits: int = WORD_BITS
    size: int = field(init=False, repr=False)
    responses: tuple[Response, ...] = field(init=False, repr=False, compare=False)
    steps: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    """Of each field: its stride in the record, and how many elements it has."""
    name: ClassVar[str] = "every-field"

    def __post_init__(self) -> None:
        _check(self.epsilon, self.record, self.billionths)
        steps = tuple(zip(self.record.strides, self.record.sizes, strict=False))
        made = (
            Response(field_epsilon(one), size, self.word_bits)
            for one, size in zip(self.billionths, self.record.sizes, strict=True)
        )
        for name, value in (("size", self.record.size), ("responses", tuple(made)), ("steps", steps)):
            object.__setattr__(self, name, value)

    @classmethod
    def build(cls, epsilon: Epsilon, domain: Domain, seed: bytes, parameters: Mapping[str, Any]) -> Self:
        del seed  # it uses no public randomness
        if not isinstance(domain, Record):
            raise InvalidSpec("every-field takes a record domain")
        return cls(epsilon, domain, tuple(parameters["epsilons"]))

    @classmethod
    def examples(cls) -> Sequence[Example]:
        yes, color = YesNo(none_is_no=True), Categories(("red", "green"))
        two = Record((Field("a", yes), Field("b", color)))
        small = Record(tuple(Field(name, yes) for name in "abc"))
        person = Record((Field("a", YesNo()), Field("c", YesNo()), Field("b", color)))
        return (
            Example("1.5", two, design(two, {"a": "0.5", "b": "1"}), 6),
            Example("2", small, design(small, {"a": "0.25", "b": "1", "c": "0.75"}), 5),
            Example("1", Record((Field("b", color),)), {"epsilons": (BILLION,)}, 8),
            Example("3", two, design(two, {"a": "2.5", "b": "0.5"}), 5),
            Example("3.5", person, design(person, {"a": "1", "c": "0.5", "b": "2"})),
            Example("1.5", two, design(two, {"a": "0.5", "b": "1"})),
            Example("0.333333333", Record((Field("n", Integers(-3, 40)),)), {"epsilons": (333_333_333,)}),
        )

    @property
    def words(self) -> int:
        """One for each field."""
        return len(self.responses)

    @property
    def bound(self) -> int:
        return self.size

    def randomize(self, index: int, words: Sequence[int]) -> int:
        if len(words) != len(self.responses):
            raise IndexError("as many words as `words` says, one for each field")
        answers = zip(self.steps, self.responses, words, strict=True)
        return sum(stride * response.choose(word, index // stride % size) for (stride, size), response, word in answers)

    def probability(self, index: int, report: int) -> Fraction:
        return prod(
            (
                response.probability(index // stride % size, report // stride % size)
                for (stride, size), response in zip(self.steps, self.responses, strict=True)
            ),
            start=Fraction(1),
        )

    @property
    def ratio(self) -> Fraction:
        return prod((response.ratio for response in self.responses), start=Fraction(1))

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """The pair of records that differ in every field."""
        found: PairLaw = (Atom(Fraction(1), Fraction(1), Fraction(1)),)
        for response in self.responses:
            found = together(found, _different(response))
            if len(found) > _MOST_ATOMS:
                return (clones(self.ratio),)
        return (found,)

    @property
    def field_losses(self) -> Sequence[FieldLoss]:
        return tuple(
            FieldLoss(name, response.epsilon, response.ratio)
            for name, response in zip(self.record.names, self.responses, strict=True)
        )

    def parameters(self) -> Mapping[str, Any]:
        return {"epsilons": self.billionths}


def design(record: Record, epsilons: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the parameters for the epsilon of each field, by its name."""
    missing = [name for name in record.names if name not in epsilons]
    if missing or len(epsilons) != len(record.names):
        raise InvalidSpec(
            f"every field has an epsilon of its own, and nothing else has one: the fields are {', '.join(record.names)}"
            + (f"; {missing[0]!r} has none" if missing else "")
        )
    return {"epsilons": tuple(int(Epsilon.parse(epsilons[name]).value * BILLION) for name in record.names)}


def _different(response: Response) -> PairLaw:
    """Two truths that differ; of the words left over, the odd ones are rounded into the first law alone."""
    least = response.lie + response.spare // response.k
    each, ratio, one = Fraction(least, 1 << response.word_bits), response.ratio, Fraction(1)
    odd = Fraction(1 if response.spare % response.k else 0, least)
    return merged(
        (
            Atom(each, ratio + odd, one),
            Atom(each, one + odd, ratio),
            Atom(each * (response.k - 2), one + odd, one),
        )
    )


def _check(epsilon: Epsilon, record: Record, billionths: Sequence[int]) -> None:
    if len(billionths) != len(record.names):
        raise InvalidSpec(
            f"every-field has an epsilon for each of the record's {len(record.names)} fields, not {len(billionths)}"
        )
    total = Fraction(sum(billionths), BILLION)
    if total != epsilon.value:
        raise InvalidSpec(
            f"the fields' epsilons add up to {float(total):.9g}, and the question's epsilon, which the person is "
            f"charged, is {epsilon}: they must be equal"
        )
    if max(record.sizes) > MAX_ELEMENTS_OF_A_FIELD:
        raise InvalidSpec(
            f"a field of every-field has at most {MAX_ELEMENTS_OF_A_FIELD} elements, its none included: make it coarser"
        )
    if record.size > MAX_RECORDS:
        raise InvalidSpec(
            f"every-field takes at most {MAX_RECORDS:,} different records, and these are {record.size:,}: leave fields "
            "out, make them coarser, or ask about them in two questions"
        )
