"""Mechanisms broken on purpose, each as a real library once was. The battery has to catch every one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.mechanisms.base import FieldLoss
from ldp_client.mechanisms.compiled_channel import CompiledChannel
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.randomized_response import RandomizedResponse, Response
from ldp_client.mechanisms.records.averaged_table import AveragedTable
from ldp_client.mechanisms.records.every_field import EveryField
from ldp_client.mechanisms.records.sampled_grid import SampledGrid
from ldp_client.mechanisms.records.sampled_table import SampledTable
from ldp_client.mechanisms.set_selection import SetSelection
from ldp_client.mechanisms.shifted_channel import ShiftedChannel
from ldp_client.mechanisms.subset_selection import SubsetSelection


class CoordinateNeverRandomized(LinearHash):
    """One point's answer is always the truth, as if a mask were one bit short."""

    def respond(self, cell: int, point_word: int, answer_word: int) -> int:
        number = point_word * self.points >> self.word_bits
        truth = self.product(self.point(number), cell)
        answer = truth if number == self.points - 1 else self.response.choose(answer_word, truth)
        return number * self.q + answer


class ReusedWord(LinearHash):
    """The word that drew the point also decides the answer."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return self.respond(index, words[0], words[0])


class RoundedAway(Response):
    """The threshold is rounded towards accuracy: one word more for the truth than the bound allows."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        while self.truth <= self.epsilon.e_low * self.lie:
            self.truth += 1
            self.spare -= 1
        self._prepare()


class RoundedAwayResponse(RandomizedResponse):
    """Randomized response with the threshold rounded the wrong way."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "response", RoundedAway(self.epsilon, self.size, self.word_bits))


class LieCanBeTruth(RandomizedResponse):
    """The lie is drawn from all answers."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        word, response = words[0], self.response
        return index if word < response.truth else (word - response.truth) % self.size


class SkippedAnswer(RandomizedResponse):
    """Lies step over the wrong answer, so the last one is said by nobody but its holders."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        answer = self.response.choose(words[0], index)
        return answer if answer == index or answer < self.size - 1 else 0


class RemembersTheItem(RandomizedResponse):
    """A report out of range that only one item can make."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return self.size if index == 1 and words[0] == 0 else self.response.choose(words[0], index)


class TurnedTheWrongWay(SubsetSelection):
    """The set is turned away from the item: it holds another category instead."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize((-index) % self.size, words)


class OneWordForTheRank(SubsetSelection):
    """The rank is drawn from half of the words: some sets are out of reach."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0], words[1] | 1 << self.word_bits - 1, words[2]))


class HoldsTheItemTooOften(SubsetSelection):
    """The threshold is rounded towards accuracy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "truth", self.truth + 1)


class OverstatedRatio(RandomizedResponse):
    """Claims less than it leaks."""

    @property
    def ratio(self) -> Fraction:
        return Fraction(1)


class TableByRecord(SampledTable):
    """Who holds nothing draws the first table: which table was drawn tells something."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0] if index else 0, *words[1:]))


class TableByTheAnswersWord(SampledTable):
    """The word that draws the table also answers it."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0], words[0], *words[2:]))


class NeighbouringCell(SampledTable):
    """A record that holds nothing is answered with the record after it, at another table's start."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return min(super().randomize(index, words) + (index == 0), self.bound - 1)


class OneWordForAllFields(EveryField):
    """One field's lie is another field's lie: together they tell more than each by itself."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0],) * len(words))


class AbsentFieldsStayAbsent(EveryField):
    """A field without an answer is not answered at random: its `none` is seen."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        report = super().randomize(index, words)
        empty = (stride * (report // stride % size) for stride, size in self.steps if not index // stride % size)
        return report - sum(empty)


class NobodyIsOneAnswer(EveryField):
    """Whoever has no answer at all is answered by the words of the first field alone."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, words) if index else super().randomize(0, (words[0],) * len(words))


class EveryFieldAtAll(EveryField):
    """Each field is answered at the person's epsilon: the report costs more than it says."""

    def __post_init__(self) -> None:
        super().__post_init__()
        each = tuple(Response(self.epsilon, one.k, self.word_bits) for one in self.responses)
        object.__setattr__(self, "responses", each)


class SwappedEpsilons(EveryField):
    """The sum is right, and the fields' epsilons are those of other fields."""

    def __post_init__(self) -> None:
        super().__post_init__()
        turned = zip(self.responses, self.responses[::-1], strict=True)
        each = tuple(Response(other.epsilon, one.k, self.word_bits) for one, other in turned)
        object.__setattr__(self, "responses", each)

    @property
    def field_losses(self) -> Sequence[FieldLoss]:
        good = EveryField(self.epsilon, self.record, self.billionths, self.word_bits)
        return good.field_losses


class RoundsByTheAnswersWord(AveragedTable):
    """The word that answers also rounds: which end it was can be read off the answer."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[-1], *words[1:]))


class NoNumberIsTheLowest(AveragedTable):
    """Who has no number is counted with those who have the lowest one, which moves every average."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        cell, held = self.place(index)
        return (
            super().randomize(index, words) if held else self.inner.randomize(self.base + self.step * cell, words[1:])
        )


class TellsTheEnd(AveragedTable):
    """A number at the upper end is answered twice, and the larger answer is sent."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        report = super().randomize(index, words)
        return max(report, super().randomize(index, words[::-1])) if self.place(index)[1] > self.reach else report


class GridByPlace(SampledGrid):
    """Who is nowhere draws columns: which grid was drawn tells something."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0] if self.elements(index)[0] else 0, *words[1:]))


class GridByTheAnswersWord(SampledGrid):
    """The word that draws the grid also answers its cell."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (words[0], words[0], *words[2:]))


class NowhereIsTheFirstTile(SampledGrid):
    """Who lacks a number is counted at the lowest place."""

    def elements(self, index: int) -> tuple[int, int, int]:
        columns, rows, tiles = super().elements(index)
        return columns, rows, max(1, tiles)

    def probability(self, index: int, report: int) -> Fraction:
        return SampledGrid(self.epsilon, self.record, *self.parameters().values(), self.word_bits).probability(
            index, report
        )


class LimitOnTheWrongSide(CompiledChannel):
    """A word that equals a limit counts as below it: every report has a word of its neighbour's."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (max(0, words[0] - 1),))


class ReadsTheTableAcross(CompiledChannel):
    """Lines and columns are confused, which a symmetric table would not show."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        limit, report = 0, 0
        for line in self.lines[:-1]:
            limit += line[index]
            report += words[0] >= limit
        return report


class NeverProved(CompiledChannel):
    """Takes any table."""

    def _prove(self, distance: int, pairs: object) -> None:
        pass


class StopsShort(ShiftedChannel):
    """Who would move beyond an end stays: then the end is a sign of where one is not."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        report = super().randomize(index, words)
        axis = self.axes[0]
        moved = index - 1 + bisect_right(self.limits[0][0], words[1] + (1 << self.word_bits)) - axis.places + 1
        return report if not index or not report or 0 <= moved < axis.places else index


class NoneStaysPut(ShiftedChannel):
    """Who has no value and says one says the first place."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        report = super().randomize(index, words)
        return report if index else min(report, 1)


class MovesUnproved(ShiftedChannel):
    """Takes any table."""

    def _prove(self, where: str, axis: object) -> None:
        pass


class FillersLeftOut(SetSelection):
    """A small set is not filled up: how likely a hit is depends on its size."""

    def members(self, index: int, start: int) -> int:
        return super().members(index, start) & ~((1 << self.most) - 1 << self.items)


class CutIsNotTold(SetSelection):
    """Who holds too many items reports one fewer and nothing in its place."""

    def members(self, index: int, start: int) -> int:
        return super().members(index, start) & (1 << self.elements - 1) - 1


class KeptWhole(SetSelection):
    """A set that is too large is not cut: it hits more often than any other."""

    def members(self, index: int, start: int) -> int:
        return index if index.bit_count() > self.most else super().members(index, start)


class RunFromTheRanksWord(SetSelection):
    """The word that draws the rank also draws where the run begins."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        return super().randomize(index, (*words[:3], words[1]))


class HitsFromTheFirstRank(SetSelection):
    """Hits are drawn from the ranks of the misses on, so that a hit may be none."""

    def randomize(self, index: int, words: Sequence[int]) -> int:
        true = self.others
        object.__setattr__(self, "others", 0)
        try:
            return super().randomize(index, words)
        finally:
            object.__setattr__(self, "others", true)


class HitsTooOften(SetSelection):
    """The threshold is rounded towards accuracy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "truth", self.truth + 1)
