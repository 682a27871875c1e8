"""The public expander of a sketch: a d-regular simple graph on M teams, from the collection's seed.

The graph is a union of floor(d/2) Hamiltonian cycles, each a random order of the teams, and for odd d a perfect
matching (M even). A random graph of this kind is a good expander with high probability, but not always, so the spec
carries an attempt number. Whoever creates the collection looks for an attempt whose second eigenvalue is small, and the
server checks it (ldp_server/heavy_hitters/paper/expansion.py). The client only expands the graph, with integers alone.
An attempt with a double edge is refused.

Slots: neighbour 2i of m is its successor on cycle i, neighbour 2i + 1 its predecessor, and the last one, for odd d,
its partner. If n is m's neighbour in slot s, m is n's neighbour in slot `reverse[s]`.
"""

from __future__ import annotations

from ldp_client.errors import InvalidSpec
from ldp_client.protocol import tags
from ldp_client.protocol.stream import expand_words

__all__ = ["Expander"]


def _shuffled(words: tuple[int, ...], count: int) -> list[int]:
    """Fisher and Yates's shuffle of range(count); word i picks among the first count - i places."""
    order = list(range(count))
    for word, last in zip(words, range(count - 1, 0, -1), strict=True):
        place = word * (last + 1) >> 64
        order[place], order[last] = order[last], order[place]
    return order


class Expander:
    """`neighbours[m]`: the d neighbours of team m, in slot order."""

    def __init__(self, seed: bytes, label: str, teams: int, degree: int, attempt: int) -> None:
        if not 2 <= teams <= 64:
            raise InvalidSpec(f"an expander has 2 to 64 teams, not {teams}")
        if not 1 <= degree < teams or teams * degree % 2 or (teams == 2 and degree != 1):
            raise InvalidSpec(f"there is no {degree}-regular graph of the sketch's kind on {teams} teams")
        if not 0 <= attempt < 1 << 16:
            raise InvalidSpec("an expander's attempt number is 0 to 65535")
        self.teams, self.degree, self.attempt = teams, degree, attempt
        rounds = (degree + 1) // 2
        stream = expand_words(seed, tags.graph_attempt(label, attempt), rounds * (teams - 1))
        table: list[list[int]] = [[0] * degree for _ in range(teams)]
        for i in range(rounds):
            order = _shuffled(stream[i * (teams - 1) : (i + 1) * (teams - 1)], teams)
            if 2 * i + 1 < degree:
                for here, there in zip(order, order[1:] + order[:1], strict=True):
                    table[here][2 * i] = there
                    table[there][2 * i + 1] = here
            else:
                for here, there in zip(order[::2], order[1::2], strict=True):
                    table[here][2 * i] = there
                    table[there][2 * i] = here
        if any(len(set(row)) < degree for row in table):
            raise InvalidSpec(f"attempt {attempt} of the expander has a double edge")
        self.neighbours: tuple[tuple[int, ...], ...] = tuple(tuple(row) for row in table)
        self.reverse: tuple[int, ...] = tuple(
            slot ^ 1 if slot < degree - degree % 2 else slot for slot in range(degree)
        )
