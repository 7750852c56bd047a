"""A word in time: what a check will need is more than the machine has, which would end it without one."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asyncsim.checking.record.footprint import footprint
from asyncsim.cli.ticker import ticking
from asyncsim.machine.free import available, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.checking.record.stage import Stage
    from asyncsim.checking.search.tally import Progress


@contextmanager
def room_watched(told: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """Say on stderr, once, while a check runs, that its runs have become too long for the memory there was at first.

    Args:
        told: is told the progress, too; None: nobody is.

    """
    room = _Room(available())

    def take(now: Progress) -> None:
        room.stage = now.stage
        if told is not None:
            told(now)

    if room.free is None:
        yield take
        return
    with ticking(room.look):
        yield take


class _Room:
    """The memory there was at first, and what goes on."""

    def __init__(self, free: int | None) -> None:
        self.free = free
        self.stage: Stage | None = None

    def look(self) -> None:
        """Say it, if it is time."""
        stage, free = self.stage, self.free
        if stage is None or free is None:
            return
        steps = max(stage.steps, stage.total or 0)
        need = footprint(steps, compact=stage.compact)
        if need > free:
            self.free = None  # once is enough
            sys.stderr.write(
                f"asyncsim: a run of {steps:,} steps and more can take {size_text(need)} of memory, and "
                f"{size_text(free)} were free: the system may end this check; judge fewer ranks or calls\n"
            )
