"""What a poll of a recorded run would see after some writes, told from the bytes that were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from asyncsim.machine.memory import Memory

if TYPE_CHECKING:
    from asyncsim.analysis.polls import Deposits
    from asyncsim.machine.case import Case
    from asyncsim.machine.memory import Tile
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access


class Versions:
    """What lies in the windows of a case.

    Args:
        case: the case; its windows start as it says.

    """

    def __init__(self, case: Case) -> None:
        """Make no memory yet: only polls ask for it."""
        self._case = case
        self._memory: Memory | None = None

    def __call__(self, poll: Op, deposits: Deposits) -> tuple[bool, bytes] | None:
        """Return whether the poll accepts what these writes leave where it looks, and that.

        Returns None where the predicate is not at hand, as in a trace that was read from a file, or raises.
        """
        if poll.payload is None:
            return None
        if self._memory is None:
            self._memory = Memory(self._case.world, self._case.seed)
        tiles = [(access, _piece(access, data)) for access, data in deposits]
        tile = self._memory.peek(poll.accesses[0].region, tiles)
        seen = tile.tobytes()
        try:
            return bool(poll.payload(tile)), seen
        except (Exception, SystemExit):  # noqa: BLE001 - raised again in its own place, if the poll comes to see this
            return None


def _piece(access: Access, data: bytes) -> Tile:
    """Return what is written by the whole of an operation, or what lands of it as one piece."""
    tile = np.frombuffer(data, access.region.dtype)
    part = access.region.part
    return tile[slice(*part)] if part is not None and len(tile) > part[1] - part[0] else tile
