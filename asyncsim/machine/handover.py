"""What trio itself needs to hand over between two tasks: the unit in which the cost of a step is told."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable

HANDOVERS = 20_000


async def handover(*, times: int = HANDOVERS, clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds of one bare hand-over: two tasks that wake each other in turn, and do nothing else.

    Args:
        times: how often each of the two wakes the other.
        clock: gives the seconds; processor time is not troubled by what others do.

    """
    tasks: dict[int, trio.lowlevel.Task] = {}
    spent: list[float] = []

    async def wake(own: int) -> None:
        tasks[own] = trio.lowlevel.current_task()
        if own == 0:
            nursery.start_soon(wake, 1)
            await trio.lowlevel.wait_task_rescheduled(_abort)
        started = clock()
        for _ in range(times):
            trio.lowlevel.reschedule(tasks[1 - own])
            await trio.lowlevel.wait_task_rescheduled(_abort)
        spent.append(clock() - started)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wake, 0)
    return spent[0] / (2 * times)


def _abort(_: object) -> trio.lowlevel.Abort:
    return trio.lowlevel.Abort.SUCCEEDED
