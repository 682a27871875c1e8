"""What the sketches of large domains share: users are divided into teams, and a report is about one cell of a team.

Public: for each of the M teams a function cell_m from the domain to [0, q^t), expanded from the seed. A report is made
of three words. The first draws a team m = word * M >> 64. The other two make the linear-hash response (linear_hash.py)
of cell_m(x). Report = m B + (that response), with B the bound of the inner mechanism.

Privacy. The team does not depend on the item. Given the team, the report is the linear-hash response of a function of
the item. So for any two items the ratio of a report's probabilities is that of two weights of the q-ary response, or 1
where the two items have the same cell. This is epsilon-LDP for every seed and every function, hostile ones included.

The expander sketch, the tree sketch, the prefix tree and Hashtogram differ in cell_m alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction

from ldp_client.errors import InvalidSpec
from ldp_client.mechanisms.base import Randomizer, scaled
from ldp_client.mechanisms.linear_hash import LinearHash
from ldp_client.mechanisms.shared.pair_law import PairLaw

__all__ = ["TeamSketch", "check_teams"]

_MAX_REPORTS = 1 << 32


def check_teams(teams: int, inner: LinearHash) -> None:
    """Refuse a sketch with more different reports than a server can count."""
    if teams * inner.bound > _MAX_REPORTS:
        raise InvalidSpec(
            f"a server counts at most 2^32 different reports, not {teams} times {inner.bound}: use fewer teams"
        )


class TeamSketch(Randomizer):
    """A randomizer whose report is about one cell of one team."""

    teams: int
    inner: LinearHash
    word_bits: int

    @abstractmethod
    def cell(self, index: int, team: int) -> int:
        """Return the cell of a domain element in a team."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many of the q^t cells a team uses."""

    @property
    def words(self) -> int:
        return 3

    @property
    def bound(self) -> int:
        return self.teams * self.inner.bound

    def randomize(self, index: int, words: Sequence[int]) -> int:
        team = words[0] * self.teams >> self.word_bits
        return team * self.inner.bound + self.inner.respond(self.cell(index, team), words[1], words[2])

    def probability(self, index: int, report: int) -> Fraction:
        team, inner = divmod(report, self.inner.bound)
        return scaled(team, self.teams, self.word_bits) * self.inner.probability(self.cell(index, team), inner)

    @property
    def ratio(self) -> Fraction:
        """At most the inner response's ratio, and equal to it where two items have different answers."""
        return self.inner.ratio

    @property
    def pair_laws(self) -> Sequence[PairLaw]:
        """A pair with different cells in every team; the team is public."""
        return self.inner.pair_laws
