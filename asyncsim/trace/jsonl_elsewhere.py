"""Traces recorded elsewhere, by instrumenting a real kernel: what need not be said, and what is then meant.

A header with ``"recorded": "elsewhere"`` says so. Who instruments a kernel knows what each rank does, in the
order of that rank, and often nothing else. So a line may leave out what follows or is not known:

    header  all but ``event``, ``format``, ``recorded``, ``ranks`` and ``declarations``
    step    ``step`` (then in all lines: no order between the actors is known), ``actor`` (the rank's own),
            ``call`` (0), ``have``; the ``owner`` of a place (the rank itself), the ``index`` of a cell of a
            signal that has one a rank, the ``region`` of an access (the whole window), its ``mode``
            (a load reads, a store writes, a copy reads its first access and writes its last)
    footer  ``ending`` (complete), ``steps``; or the whole footer, and then nothing is known of the end

What is filled in here is read as strictly as everything else. A trace of late memory has no landings
either: nobody sees one on real hardware, and they follow from the operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.trace.cells import ATOMIC_ADD
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.kinds import COPYING, READING, SIGNALLING
from asyncsim.trace.layout import SignalLayout, WindowLayout
from asyncsim.trace.region import READ, WRITE
from asyncsim.trace.strict import MAX_RANKS, Fields

if TYPE_CHECKING:
    from asyncsim.trace.world import World

ELSEWHERE = "elsewhere"
"""What ``recorded`` says in the header of a trace that no asyncsim recorded."""

_HEADER: dict[str, Any] = {
    "asyncsim": "", "kernel": "recorded:elsewhere", "source": "", "calls": 1, "memory": "sc", "seed": 0,
    "scheduler": ELSEWHERE,
}  # fmt: skip


def filled_header(fields: Fields) -> Fields:
    """Return the fields of a header with what was left out."""
    given = fields.rest()
    filled = {**_HEADER, **given}
    ranks = given.get("ranks")
    if "actors" not in given and type(ranks) is int and 1 <= ranks <= MAX_RANKS:
        filled["actors"] = [{"actor": str(rank), "rank": rank} for rank in range(ranks)]
    return Fields(filled, "the line")


def filled_footer(fields: Fields, steps: int) -> Fields:
    """Return the fields of a footer with what was left out; the trace has so many steps.

    Args:
        fields: of the line.
        steps: how many the trace has before it.

    """
    return Fields({"ending": COMPLETE, "steps": steps, **fields.rest()}, "the line")


def filled_step(fields: Fields, world: World) -> Fields:
    """Return the fields of a step, or of a pending operation, with what was left out.

    Args:
        fields: of the line.
        world: of the trace's header.

    """
    filled = {"call": 0, **fields.rest()}
    rank, actor = filled.get("rank"), filled.get("actor")
    if "actor" not in filled and type(rank) is int:
        filled["actor"] = str(rank)
    elif "rank" not in filled and type(actor) is str:
        number = actor.partition(".")[0]
        filled["rank"] = int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else 0  # noqa: PLR2004 - as long as an actor's name may be
    if filled.get("op") in SIGNALLING:
        filled.setdefault("how", ATOMIC_ADD)
    if type(cell := filled.get("cell")) is dict:
        filled["cell"] = _filled_cell(cell, filled.get("rank"), world)
    if type(accesses := filled.get("accesses")) is list:
        modes = _modes(filled.get("op"), len(accesses))
        filled["accesses"] = [
            _filled_access(access, mode, filled.get("rank"), world) if type(access) is dict else access
            for access, mode in zip(accesses, modes, strict=True)
        ]
    return Fields(filled, "the line")


def _modes(kind: Any, count: int) -> list[str]:  # noqa: ANN401 - any JSON value
    """Return what an operation of this kind does at each of its places, unless it says otherwise."""
    if kind in COPYING and count > 1:
        return [READ] * (count - 1) + [WRITE]
    return [READ if kind in READING else WRITE] * count


def _filled_cell(cell: dict[str, Any], rank: Any, world: World) -> dict[str, Any]:  # noqa: ANN401
    filled = {"owner": rank, **cell}
    layout = _layout(world, cell.get("signal"))
    if "index" not in cell and isinstance(layout, SignalLayout) and layout.cells_a_rank == 1:
        filled["index"] = [0] * len(layout.shape)
    return filled


def _filled_access(access: dict[str, Any], mode: str, rank: Any, world: World) -> dict[str, Any]:  # noqa: ANN401
    filled = {"owner": rank, "mode": mode, **access}
    layout = _layout(world, access.get("window"))
    if "region" not in access and isinstance(layout, WindowLayout):
        filled["region"] = [[0, extent, 1] for extent in layout.shape]
    return filled


def _layout(world: World, name: Any) -> WindowLayout | SignalLayout | None:  # noqa: ANN401
    return world.layouts.get(name) if type(name) is str else None
