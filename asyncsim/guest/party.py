"""How processes meet: syncs, which complete nothing that was put, and what they hand each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.guest.layout import Wanted
from asyncsim.guest.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from asyncsim.machine.rank import Rank

WORLD = "world"
"""The team of all."""
_ROUNDS = 8
"""Collectives come to new cells; so many are declared at a time."""


class Party(Memory):
    """A process that meets others.

    Args:
        rank: as for `Memory`.
        given: likewise.
        mail: what processes hand each other, by team, round and process; read after the signal that it is there.

    """

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:  # noqa: ANN401 - as `Memory` takes them
        super().__init__(rank, *given)
        self.mail = mail
        self._counts: dict[Hashable, int] = {}

    def next(self, key: Hashable) -> int:
        """Return how often it was asked for this before."""
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        return number

    def sync(self, team: Hashable = WORLD, members: Sequence[int] = ()) -> None:
        """Meet: own stores are visible to the others then, and no put is complete.

        Args:
            team: what sets it apart from other teams.
            members: its processes; empty: all.

        """
        others = [other for other in members or range(self.size) if other != self.me]
        arrived = self.wanted(("sync", team), Wanted("sync", self.size, "int64", signal=True))
        number = self.next(("sync", team)) + 1

        async def meet(rank: Rank) -> None:
            await rank.notify_all([arrived.at(other)[self.me] for other in others], 1, order="stores")
            await rank.wait_all([arrived[other] >= number for other in others])

        self.do(meet(self.rank))

    def round(self, team: Hashable) -> tuple[Any, int, int]:
        """Return the cells of a new round of a team's, where they begin, and the number of the round."""
        number = self.next(("round", team))
        count = (number // _ROUNDS + 1) * _ROUNDS * self.size
        cells = self.wanted(("round", team), Wanted("arrived", count, "int64", signal=True))
        return cells, number * self.size, number

    def hand(
        self,
        team: Hashable,
        value: Any,  # noqa: ANN401 - whatever they hand each other
        *,
        to: Sequence[int],
        of: Sequence[int],
        order: str = "relaxed",
    ) -> dict[int, Any]:
        """Hand a value to some members of a team, and return what some hand to this one, in a round of theirs.

        Args:
            team: what sets it apart.
            value: by receiver, or one for all.
            to: the receivers, by their numbers in the world.
            of: whose values are waited for.
            order: of the signal, as of a notify.

        """
        cells, base, number = self.round(team)
        others = [other for other in to if other != self.me]
        for other in to:
            self.mail[team, number, self.me, other] = value
        awaited = [other for other in of if other != self.me]

        async def meet(rank: Rank) -> None:
            await rank.notify_all([cells.at(other)[base + self.me] for other in others], 1, order=order)  # type: ignore[arg-type]
            await rank.wait_all([cells[base + other] >= 1 for other in awaited])

        self.do(meet(self.rank))
        return {other: self.mail[team, number, other, self.me] for other in of}
