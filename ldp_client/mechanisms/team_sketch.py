"""What the sketches of large domains share: users fall into teams, and a user reports one cell of the team's.

Public: for every team a function from the domain to the cells [0, q^t), from the seed. A report is made of three
words: the first draws a team m = word * M >> 64, the other two make the linear-hash response (linear_hash.py) of
cell_m(x). Report = m B + (its report), with B the bound of the inner mechanism.

Privacy. The team is drawn without regard to the item; given the team, the report is the linear-hash response of a
function of the item. For any two items the ratio of a report's probabilities is that of two weights of the q-ary
response, or 1 where the cells meet: epsilon-LDP for every seed and every code, hostile ones included.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer, scaled
from ldp_client.mechanisms.linear_hash import LinearHash

__all__ = ["TeamSketch", "check_teams"]

_MAX_REPORTS = 1 << 32


def check_teams(teams: int, inner: LinearHash) -> None:
    """Refuse what no server could count."""
    if teams * inner.bound > _MAX_REPORTS:
        raise InvalidSpec(f"{teams} teams of {inner.bound} reports are more than a server holds (2^32)")


class TeamSketch(Randomizer):
    """A randomizer that answers for one cell of one team."""

    teams: int
    inner: LinearHash
    word_bits: int

    @abstractmethod
    def cell(self, index: int, team: int) -> int:
        """The cell of a domain element in a team: public arithmetic."""

    @property
    def words(self) -> int:
        """One for the team, two for the response."""
        return 3

    @property
    def bound(self) -> int:
        """M B."""
        return self.teams * self.inner.bound

    def randomize(self, index: int, words: Sequence[int]) -> int:
        """The report for `index`."""
        team = words[0] * self.teams >> self.word_bits
        return team * self.inner.bound + self.inner.respond(self.cell(index, team), words[1], words[2])

    def probability(self, index: int, report: int) -> Fraction:
        """The exact probability of a report: that of its team times that of the response."""
        team, inner = divmod(report, self.inner.bound)
        return scaled(team, self.teams, self.word_bits) * self.inner.probability(self.cell(index, team), inner)

    @property
    def ratio(self) -> Fraction:
        """At most that of the inner response, and equal to it where two items meet different answers."""
        return self.inner.ratio
