"""Several notifies or waits out of one await: all are checked first, then each is a step of its own.

They mean what the loop means: the same operations stand at the gate one after the other, come from the
same line, and whoever else is ready may be chosen between two of them. So a trace, a replay, an edit
and the analysis see a loop, and each of their runs is a run of the loop.

What is saved is the loop's own work, and in the fair run the choices: a scheduler that says so has one
actor go on through what follows (`Op.follows`). Taking them for *one* step would be wrong: others can
come between on every machine, and a verdict that left that out would prove too much.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asyncsim.machine.arguments import change_of, check_condition, said, shown, update_of
from asyncsim.trace.cells import ATOMIC_ADD
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import NOTIFY, STORES, WAIT
from asyncsim.trace.op import Op, SyncOp, accesses_on
from asyncsim.trace.region import Cell, Condition

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from asyncsim.trace.cells import Change
    from asyncsim.trace.world import Actor, World


ORDERS = "'release', 'stores' or 'relaxed'"
"""How a notify is ordered, as a refusal names it."""


def cells_of(  # noqa: PLR0913, PLR0917 - what a notify is given, and who notifies
    rank: int,
    cells: Any,  # noqa: ANN401 - refused if they are no cells
    value: Any,  # noqa: ANN401 - refused if it is no integer
    op: str,
    order: str,
    world: World,
) -> tuple[tuple[Cell, ...], int]:
    """Return the cells to notify, and by what.

    Args:
        rank: the caller, named in the message.
        cells: what was given for them: cells of any ranks.
        value: what each is changed by.
        op: the name of an update.
        order: "release", "stores" or "relaxed".
        world: of this run.

    Raises:
        MisuseError: one of them cannot be notified so; it says which.

    """
    found: tuple[Cell, ...] = _several(rank, "notify_all takes cells, [signal.at(p)[...] for p in rank.peers]", cells)
    if order not in ("release", STORES, "relaxed"):
        raise MisuseError(f"rank {rank}: notify_all: order={order!r}; use {ORDERS}")
    plain = type(value) is int and op == ATOMIC_ADD
    number: int = value
    for at, cell in enumerate(found):
        if not (plain and cell.__class__ is Cell and cell.world is world and cell.low <= value <= cell.high):
            number = change_of(rank, f"notify_all (cells[{at}])", cell, value, op, world)
    return found, number


def conditions_of(rank: int, conditions: Any, world: World) -> tuple[Condition, ...]:  # noqa: ANN401 - refused
    """Return the conditions to wait for.

    Args:
        rank: the caller, named in the message.
        conditions: what was given for them.
        world: of this run.

    Raises:
        MisuseError: one of them is no condition on a cell of this run; it says which.

    """
    found: tuple[Condition, ...] = _several(
        rank, "wait_all takes conditions, [signal[p] >= 1 for p in rank.peers]", conditions
    )
    for at, condition in enumerate(found):
        check_condition(rank, f"wait_all (conditions[{at}])", condition, world)
    return found


def _several(rank: int, right: str, given: object) -> tuple[Any, ...]:
    """Return what was given, item by item; a view could be indexed on and on, but is not several cells."""
    if isinstance(given, Iterable):
        return tuple(given)
    raise MisuseError(f"rank {rank}: {right}; got {shown(given)}")


def notifies(  # noqa: PLR0913 - what the operations have in common
    actor: Actor, cells: Sequence[Cell], how: str, value: int, call: int, *, order: str, deferred: bool
) -> Generator[Op, Any, None]:
    """Stand at the gate with a notify of each cell. Each is made when it comes there: a thousand would take room.

    Args:
        actor: who notifies.
        cells: in the order in which they are notified.
        how: the name of an update.
        value: what each is changed by.
        call: which call of the kernel, from 0.
        order: "release", "stores" or "relaxed".
        deferred: whether they may land later.

    """
    follows, relaxed, link = False, order != "release", STORES if order == STORES else ""
    for cell in cells:
        yield Op(
            actor, NOTIFY, cell.changes, cell, how, value, False, None, call, False, relaxed, link, deferred, follows  # noqa: FBT003
        )  # fmt: skip
        follows = True


def wait_of(  # noqa: PLR0913 - what a wait is given, and who waits
    actor: Actor,
    condition: Condition,
    then: Change | None,
    call: int,
    world: World,
    *,
    order: str | None,
    scope: str | None,
    consume: bool = False,
    value: bool = False,
) -> Op:
    """Return a wait that says more than what it waits for.

    Args:
        actor: who waits.
        condition: a comparison of a cell of this run.
        then: how it changes the cell as it passes; None: not at all.
        call: which call of the kernel, from 0.
        world: of this run.
        consume: whether it subtracts what it waited for.
        order: None: it acquires.
        scope: None: the world.
        value: whether it returns what the cell held.

    Raises:
        MisuseError: one of these cannot be right, or it is to consume and to do something else, too.

    """
    cell, rank = condition.cell, actor.rank
    update, operand = ("", 0) if then is None else update_of(rank, condition, then, world)
    if consume and update:
        raise MisuseError(f"rank {rank}: wait for {condition}: consume and then={then}; one step makes one update")
    ordered, scoped = said(rank, WAIT, cell, order, scope, changes=bool(consume or update))
    if (update, operand) == (ATOMIC_ADD, -condition.expected):
        update, operand, consume = "", 0, True
    how, expected = condition.compare, condition.expected
    accesses = accesses_on(cell, consume or update)
    if ordered or scoped or update or value:
        return SyncOp(
            actor, WAIT, accesses, cell, how, expected, bool(consume), call=call, order=ordered, scope=scoped,
            update=update, operand=operand, result=bool(value),
        )  # fmt: skip
    return Op(actor, WAIT, accesses, cell, how, expected, bool(consume), call=call)


def waits(actor: Actor, conditions: Sequence[Condition], call: int, *, consume: bool) -> Generator[Op, Any, None]:
    """Stand at the gate with a wait for each condition, likewise.

    Args:
        actor: who waits.
        conditions: in the order in which they are waited for.
        call: which call of the kernel, from 0.
        consume: whether each subtracts what it waited for.

    """
    follows = False
    for it in conditions:
        yield Op(
            actor, WAIT, accesses_on(it.cell, consume), it.cell, it.compare, it.expected, consume, None, call, False,  # noqa: FBT003
            False, "", False, follows,  # noqa: FBT003
        )  # fmt: skip
        follows = True
