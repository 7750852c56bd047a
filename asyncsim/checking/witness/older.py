"""Witnesses of races under ``gpu``: what is read is what was there before the store that the read races with.

The fair schedule is run again, but that the reading side returns an older version of its place. So the order of the
steps is that of the fair run, and all that differs is what the reader knew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.witness.witness import Witness, failures_in_words
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.choices import Choices
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError
from asyncsim.trace.kinds import COPYING, READING, TESTING
from asyncsim.trace.late import with_old_reads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.machine.course import Begun
    from asyncsim.trace.finding import Finding, Side

READERS = READING | COPYING | TESTING
MOST_BACK = 4
"""So many versions back a read goes at most."""


async def older_witness(judge: Judge, finding: Finding, *, begun: Begun | None = None) -> Witness:
    """Let the second side of a race read what was there before the first, one pair after the other until one fails.

    Args:
        judge: of the runs of the case, under ``gpu``.
        finding: a race with examples, the sides in the order of the fair run.
        begun: called with the choices of each run when it begins, as by `simulate`.

    """
    best, schedules = Witness(), 0
    for number, sides in enumerate(finding.examples):
        reader = sides[-1]
        most = MOST_BACK if len(sides) == 2 and reader.op in READERS else 0  # noqa: PLR2004 - a pair
        for back in range(1, most + 1):
            schedules += 1
            seen, most_back = await _with_older_read(judge, reader, back, begun)
            if seen.confirmed and (seen.harmful or not best.confirmed):
                best = replace(seen, example=number, pairs=finding.pairs)
            if seen.harmful or back >= most_back:
                break
        if best.harmful:
            break
    return replace(best, schedules=schedules)


async def _with_older_read(judge: Judge, reader: Side, back: int, begun: Begun | None) -> tuple[Witness, int]:
    """Return what the fair schedule shows if one read goes so many versions back, and how far it can go at most."""
    memory = with_old_reads({(reader.actor, reader.index): back})
    choices = Choices(Fifo())
    try:
        run = await simulate.aio(
            replace(judge.case, memory=memory), choices, engine="direct", begun=begun, notice=False
        )
    except KernelError as error:
        return _shown(f"the kernel raises: {error}", choices.choices, memory, harmful=True), back
    most = run.offers.get((reader.actor, reader.index), 0)
    if not most:
        return Witness(), 0
    findings = judge.findings(run, judge.usual)
    if judge.failures(run) - judge.usual:
        shown = f"with the value before: {await failures_in_words(judge, run)}"
        kinds = frozenset(found.kind for found in findings)
        seen = _shown(shown, run.choices, memory, harmful=True)
        return replace(seen, ending=run.ending, failure=kinds, right=True), most
    differs = judge.differs_from_reference(run)
    shown = (
        "the outputs differ in their bits with the value before" if differs else "the same bits with the value before"
    )
    seen = _shown(shown, run.choices, memory, harmful=True if differs else None)
    return replace(seen, ending=run.ending), most


def _shown(shown: str, choices: Sequence[str], memory: str, *, harmful: bool | None) -> Witness:
    return Witness(confirmed=True, harmful=harmful, shown=shown, choices=choices, memory=memory)
