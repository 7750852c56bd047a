"""A rank as the library has it that a script calls: it says nothing of its own, and keeps its writes in order.

What a composite announces of itself would be counted among the script's collectives. And composites are
written for memory that keeps one actor's writes in order; a library for a network adapter calls ``quiet``
where they rely on that. Here, where the memory model needs it, that is done after every write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from asyncsim.trace.late import model_of

if TYPE_CHECKING:
    from asyncsim.machine.rank import Rank


def library(rank: Rank, memory: str) -> Rank:
    """Return the rank as composites should have it, for a memory model.

    Args:
        rank: as the machine has it.
        memory: the memory model by name.

    """
    model = model_of(memory)
    return cast("Rank", _Silent(rank) if model.forwarding and model.atom is None else _Orderly(rank))


class _Silent:
    """Stands for a rank in the eyes of a composite."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a rank has
        return getattr(self._rank, name)

    def collective(self, name: str, **facts: Any) -> None:  # noqa: ANN401 - as `Rank.collective`
        """Say nothing: the script's own call was announced already."""


class _Orderly(_Silent):
    """Completes each write before the next operation."""

    async def store(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as `Rank.store`
        await self._rank.store(*args, **kwargs)
        await self._rank.quiet()

    async def put(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as `Rank.put`
        await self._rank.put(*args, **kwargs)
        await self._rank.quiet()

    async def get(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as `Rank.get`
        await self._rank.get(*args, **kwargs)
        await self._rank.quiet()

    async def notify(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as `Rank.notify`
        await self._rank.notify(*args, **kwargs)
        await self._rank.quiet()
