"""The direct engine: a bare loop in the place of trio, for search, and for where no trio loop may run.

The same lives as under trio, so the same choices make the same run, byte for byte. A step costs no
task switch. It works in any thread, and inside any running event loop, which it keeps waiting.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from asyncsim.machine.course import Course
from asyncsim.machine.forgotten import noticed
from asyncsim.trace.guest import GUEST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.machine.calluse import CallUse
    from asyncsim.machine.case import Case, Run
    from asyncsim.machine.course import Begun, Life
    from asyncsim.machine.edit import Watch
    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op


def drive(  # noqa: PLR0913 - each is one thing that a caller may want of a run
    case: Case,
    scheduler: Scheduler,
    *,
    record: str | None = None,
    watch: Watch | None = None,
    use: CallUse | None = None,
    begun: Begun | None = None,
    lines: bool = True,
    notice: bool = False,
    onward: Mapping[str, int] | None = None,
) -> Run:
    """Run a case once, under a schedule chosen by `scheduler`, as `simulate` does, but without trio.

    Args:
        case: what to run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header; the run then keeps its trace.
        watch: is told of each operation, and of the lines it comes from, before it stands at the gate.
        use: is told what the kernel does with the number of its call.
        begun: is given the choices of the run, none so far, when it begins; they grow as it goes on.
        lines: whether the trace says where each operation stands in the source; to find out costs a quarter of a run.
        notice: a forgotten await is looked for also where no lines are.
        onward: where the run hangs, nobody waits any more; how many waits and polls each actor has behind it there.

    Raises:
        KernelError: the kernel raised, or awaited something that is no operation of its rank.
        MisuseError: the scheduler chose what was not ready.
        DivergenceError: the scheduler replays a schedule that this kernel does not follow.

    """
    course = Course(
        case, scheduler, record=record, watch=watch, use=use, begun=begun, lines=lines, notice=notice, onward=onward
    )
    with GUEST, noticed(case) if notice or (record is not None and lines) else nullcontext():
        _go(course)
        return course.result()


def _go(course: Course) -> None:
    """Resume whoever is chosen, until the run ends."""
    unstarted, turn = course.unstarted, course.gate.turn
    lives: dict[int, Life] = {}
    chosen: Op | None = None
    try:
        while True:
            if chosen is not None:
                life = lives[chosen.actor.order]
            elif unstarted:
                actor, life = unstarted.pop()
                lives[actor.order] = life
            else:
                course.end()
                return
            for chosen in life:  # noqa: B007 - up to where somebody else goes on
                break
            else:
                chosen = turn(None)
    finally:
        for life in lives.values():
            life.close()
