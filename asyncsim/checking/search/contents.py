"""What a poll would see after some of the steps of an execution, told from the tiles that were stored there.

With that a search knows which of the stores before a poll it could have done without. It is not always
known: what is copied from window to window is in no operation, and where writes land late a rank sees its own
before others do.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from asyncsim.checking.search.execution import members
from asyncsim.machine.effect import satisfied
from asyncsim.machine.memory import Memory
from asyncsim.trace.op import LAND
from asyncsim.trace.region import READ, spans_overlap

if TYPE_CHECKING:
    from asyncsim.checking.search.execution import Execution
    from asyncsim.machine.case import Case
    from asyncsim.machine.memory import Deposit
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Access

MOST = 3
"""So many stores are tried in all orders; more may let any poll pass."""


class Contents:
    """What lies in the windows of a case.

    Args:
        case: the case; its windows start as it says.

    """

    def __init__(self, case: Case) -> None:
        """Make no memory yet: only polls ask for it."""
        self._case = case
        self._memory: Memory | None = None

    def passes(self, poll: Op, execution: Execution, before: int, after: int = 0, others: int = 0) -> bool | None:
        """Say whether a poll could pass after these steps; None: it is not known.

        Args:
            poll: the poll.
            execution: the execution.
            before: the steps that come first, in their order.
            after: those that come then.
            others: more steps, each of which may come or not, also among those in `after`.

        """
        first, then, more = (self._deposits(poll, execution, steps) for steps in (before, after, others))
        if first is None or then is None or more is None:
            return None
        if not more:
            return self._holds(poll, first + then)
        free = then + more
        if len(free) > MOST:
            return True
        tries = (first + list(some) for n in range(len(free) + 1) for some in permutations(free, n))
        return any(self._holds(poll, deposits) for deposits in tries)

    def _holds(self, poll: Op, deposits: list[Deposit]) -> bool:
        if self._memory is None:
            self._memory = Memory(self._case.world, self._case.seed)
        return satisfied(poll, self._memory.peek(poll.accesses[0].region, deposits))

    def _deposits(self, poll: Op, execution: Execution, steps: int) -> list[Deposit] | None:
        """Return what these steps leave where the poll looks; None if some of it is not known."""
        found: list[Deposit] = []
        looked = poll.accesses[0].region
        for step in members(execution.steps_at(("window", looked.slot)) & steps):
            op = execution.ops[step]
            for access in op.accesses:
                if access.mode == READ or not spans_overlap(access.region.spans, looked.spans):
                    continue
                deposit = self._deposit(poll, execution, step, access)
                if deposit is None:
                    return None
                found += deposit
        return found

    def _deposit(self, poll: Op, execution: Execution, step: int, access: Access) -> list[Deposit] | None:
        """Return what one access of a step leaves, if it is known: nothing, or the tile."""
        op = execution.ops[step]
        issue = op
        if op.kind == LAND:
            previous = execution.previous[step]
            assert previous is not None  # noqa: S101 - for the type checker: what lands was issued
            issue = execution.ops[previous]
        if (op.deferred or op.kind == LAND) and op.actor.rank == poll.actor.rank:
            return None
        if op.deferred:
            return []
        if issue.payload is None:
            return None
        part = access.region.part
        tile = issue.payload
        return [(access, tile if part is None else tile.reshape(-1)[slice(*part)])]
