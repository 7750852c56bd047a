"""The parts of a kernel's synchronisation, each of which can be taken away: what an audit goes through.

A barrier that is called as a composite is one part: it stands for the notifies and waits inside it. All
other waits and notifies are parts by themselves. What gives credits back, `settle` or a kernel's own
subtraction, is a part of the kind *credits*: nobody waits for it, and yet a later wait may need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.edit import DROP, SKIP, Edit
from asyncsim.trace.op import FENCE, NOTIFY, PUT_SIGNAL, QUIET, SET, WAIT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.site import Frame
    from asyncsim.trace.op import Op

BARRIER, CREDITS = "barrier", "credits"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a kernel's synchronisation.

    Args:
        kind: "barrier", "wait", "notify", "credits", "quiet" or "fence".
        edit: takes it away.

    """

    kind: str
    edit: Edit

    @property
    def site(self) -> tuple[str, ...]:
        """Where it stands: the kernel's own line first, then the lines inside what that line calls."""
        return self.edit.site


async def parts_of(case: Case, *, fine: bool = False) -> list[Part]:
    """Return the parts that the fair run of a case comes to, in that order.

    Args:
        case: the case, as a rule without edits.
        fine: list also the notifies and waits inside a barrier.

    """
    found: dict[Part, None] = {}

    def watch(op: Op, frames: Sequence[Frame]) -> None:
        kind = _kind(op)
        if kind is not None:
            found.update(dict.fromkeys(_parts(kind, frames, fine=fine)))

    await simulate.aio(case, Fifo(), watch=watch, engine="direct")
    return list(found)


def _kind(op: Op) -> str | None:
    """Return what an operation is to synchronisation; None: nothing that can be taken away."""
    if op.kind == NOTIFY:
        cell = op.cell
        own = cell is not None and cell.owner == op.actor.rank
        return CREDITS if own and (op.amount < 0 or op.how == SET) else NOTIFY
    if op.kind == PUT_SIGNAL:
        return NOTIFY
    return op.kind if op.kind in (WAIT, QUIET, FENCE) else None


def _parts(kind: str, frames: Sequence[Frame], *, fine: bool) -> list[Part]:
    """Return the parts that an operation of this kind belongs to: one, or with `fine` also the barrier around it."""
    lines = tuple(frame.text for frame in frames)
    codes = [frame.code for frame in frames]
    what = SKIP if kind in (WAIT, QUIET, FENCE) else DROP
    own = Part(kind, Edit(what, lines))
    if settle.__code__ in codes[1:]:
        return [Part(CREDITS, Edit(DROP, lines[: codes.index(settle.__code__)]))]
    if barrier.__code__ in codes[1:]:
        whole = Part(BARRIER, Edit(SKIP, lines[: codes.index(barrier.__code__)]))
        return [whole, own] if fine else [whole]
    return [own]
