"""What operations are given: checked, and turned into what fits; or an error that says what would be right.

None of this runs for a correct operation on arrays, which `Rank` recognises at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.cells import ATOMIC_ADD, UPDATES, Change, UpdateName
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import ACQ_REL, KINDS, MOST_PENDING, RELEASE, SCOPES, WORLD
from asyncsim.trace.region import WRITE, Cell, Condition, Region
from asyncsim.trace.world import OutsideView, SignalView, WindowView

if TYPE_CHECKING:
    from asyncsim.machine.memory import Tile
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import World


def no_region(rank: int, what: str, region: object) -> MisuseError:
    """Return the error for something that is no region of this run.

    Args:
        rank: the caller, named in the message.
        what: the operation's name.
        region: what was given for it.

    """
    if isinstance(region, Region):
        return MisuseError(f"rank {rank}: {what} of {region}, which belongs to another run; use this run's windows")
    return MisuseError(f"rank {rank}: {what} takes a region, window[...] or window.at(peer)[...]; got {shown(region)}")


def no_cell(rank: int, what: str, cell: object, right: str) -> MisuseError:
    """Return the error for something that is no cell of this run; `right` says what would be one.

    Args:
        rank: the caller, named in the message.
        what: the operation's name.
        cell: what was given for it.
        right: such as ``signal.at(peer)[...]``.

    """
    if isinstance(cell, Cell):
        return MisuseError(f"rank {rank}: {what} of {cell}, which belongs to another run; use this run's signals")
    return MisuseError(f"rank {rank}: {what} takes a cell, {right}; got {shown(cell)}")


def check_condition(rank: int, what: str, condition: Condition, world: World) -> None:
    """Refuse what is no condition on a cell of this run.

    Args:
        rank: the caller, named in the message.
        what: the operation's name, for the message.
        condition: what was given for it.
        world: of this run.

    Raises:
        MisuseError: it is no condition, or on a cell of another run.

    """
    if not isinstance(condition, Condition):
        right = "; compare it, as in signal[peer] >= 1" if isinstance(condition, Cell) else ""
        raise MisuseError(
            f"rank {rank}: {what} takes a condition on a cell, signal[peer] >= 1; got {shown(condition)}{right}"
        )
    cell = condition.cell
    if cell.world is not world:
        raise no_cell(rank, what, cell, "signal[...]")


def change_of(rank: int, what: str, cell: Cell, value: Any, op: str, world: World) -> int:  # noqa: ANN401, PLR0913, PLR0917
    """Return what a cell is changed by, as an integer that it can hold.

    Args:
        rank: the caller, named in the message.
        what: the operation's name, for the message.
        cell: what was given for it.
        value: what to add or to set: an integer of Python's or numpy's, no boolean.
        op: the name of an update.
        world: of this run.

    Raises:
        MisuseError: it is no cell of this run, there is no such `op`, or the value is no integer or outside the dtype
            of the signal.

    """
    if not isinstance(cell, Cell) or cell.world is not world:
        raise no_cell(rank, what, cell, "signal.at(peer)[...]")
    if op not in UPDATES:
        *most, last = UPDATES
        raise MisuseError(f"rank {rank}: {what} of {cell}: op={op!r}; use {', '.join(most)} or {last}")
    if hasattr(value, "as_threshold"):  # the number of a call, or what grows with it
        value = value.as_threshold()
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise MisuseError(f"rank {rank}: {what} of {cell}: value {value!r} is no integer")
    number = int(value.__index__())
    if op == ATOMIC_ADD and cell.region is not None and abs(number) <= cell.high - cell.low:
        number = cell.wrapped(number)  # to subtract from a word without a sign is to add the rest
    if not cell.low <= number <= cell.high:
        raise MisuseError(f"rank {rank}: {what} of {cell}: value {number} is outside {cell.low} to {cell.high}")
    return number


def said(  # noqa: PLR0913 - what an operation is given, and whose
    rank: int, kind: str, place: object, order: str | None, scope: str | None, *, changes: bool = True
) -> tuple[str, str]:
    """Return the order and scope of an operation as it says them: empty where they are what its kind means anyway.

    Args:
        rank: the caller, named in the message.
        kind: of the operation.
        place: what it is done to, for the message.
        order: what was given for it; None: the default.
        scope: likewise.
        changes: it changes its cell; what only looks has nothing to release.

    Raises:
        MisuseError: the kind has no such order, or there is no such scope.

    """
    orders = KINDS[kind].orders
    known = orders if changes else tuple(each for each in orders if each not in (RELEASE, ACQ_REL))
    for name, given, possible in (("order", order, known), ("scope", scope, SCOPES)):
        if given is not None and given not in possible:
            right = ", ".join(map(repr, possible[:-1])) + f" or {possible[-1]!r}" if possible[1:] else repr(possible[0])
            raise MisuseError(f"rank {rank}: {kind} of {place}: {name}={given!r}; use {right}")
    return ("" if order in (None, orders[0]) else str(order)), ("" if scope in (None, WORLD) else str(scope))


def update_of(rank: int, condition: Condition, then: Any, world: World) -> tuple[str, int]:  # noqa: ANN401
    """Return the update that a wait makes as it passes.

    Args:
        rank: the caller, named in the message.
        condition: what it waits for.
        then: what was given for it: ``Set(0)``.
        world: of this run.

    Raises:
        MisuseError: it is no update with an amount that the cell holds.

    """
    cell = condition.cell
    if isinstance(then, UpdateName):
        raise MisuseError(f"rank {rank}: wait for {condition}: then={then}; say by what: then={then}(0)")
    if not isinstance(then, Change):
        raise MisuseError(f"rank {rank}: wait for {condition}: then={shown(then)}; use an update, such as then=Set(0)")
    return then.how, change_of(rank, f"wait, then {then},", cell, then.amount, then.how, world)


def atomic_of(rank: int, kind: str, region: Region, atomic: object) -> tuple[Access]:
    """Return the access of an atomic add or set, if the window can be added to.

    Args:
        rank: the caller, named in the message.
        kind: the operation's name, for the message.
        region: where it writes.
        atomic: "add" or "set".

    Raises:
        MisuseError: it is neither, or the window holds booleans and is to be added to.

    """
    if atomic == "set":
        return region.atomic(WRITE)
    if atomic != "add":
        raise MisuseError(f"rank {rank}: {kind} to {region}: atomic={atomic!r}; use 'add' or 'set', or leave it out")
    if region.dtype.kind == "b":
        raise MisuseError(f"rank {rank}: {kind} to {region}: booleans cannot be added; use an integer window")
    return region.adds


def tile_for(rank: int, kind: str, region: Region, tile: Any) -> Tile:  # noqa: ANN401
    """Return `tile` as an array that fits the region, or say why it does not.

    Args:
        rank: the caller, named in the message.
        kind: the operation's name, for the message.
        region: where it is written to.
        tile: an array of the region's shape and dtype; for a single element also a number of Python's that the dtype
            holds (a float is rounded).

    Raises:
        MisuseError: it has another shape or dtype, or does not fit.

    """
    place = f"rank {rank}: {kind} to {region}"
    if not isinstance(tile, np.ndarray | np.generic):
        if region.shape != () or not isinstance(tile, bool | int | float | complex):
            got = shown(tile)
            raise MisuseError(f"{place} takes an array of shape {region.shape} and dtype {region.dtype}; got {got}")
        try:
            array = np.array(tile, dtype=region.dtype)
        except (OverflowError, TypeError, ValueError) as error:
            raise MisuseError(f"{place}: {tile!r} does not fit dtype {region.dtype}") from error
        if region.dtype.kind in "biu" and array != tile:
            raise MisuseError(f"{place}: {tile!r} does not fit dtype {region.dtype}")
        return array
    if tile.shape != region.shape:
        raise MisuseError(f"{place}: the tile has shape {tile.shape}, the region has shape {region.shape}")
    if tile.dtype != region.dtype:
        raise MisuseError(
            f"{place}: the tile has dtype {tile.dtype}, the window has {region.dtype}; convert it with .astype"
        )
    return np.asarray(tile)


def check_copy(rank: int, what: str, target: Region, source: Region, world: World) -> None:
    """Refuse a copy whose two regions do not fit each other.

    Args:
        rank: the caller, named in the message.
        what: the operation's name, for the message.
        target: where it is copied to.
        source: where it is copied from.
        world: of this run.

    Raises:
        MisuseError: one of them is no region of this run, or they differ in shape or dtype.

    """
    for region in (target, source):
        if region.__class__ is not Region or region.world is not world:
            raise no_region(rank, what, region)
    if source.shape != target.shape or source.dtype != target.dtype:
        raise MisuseError(
            f"rank {rank}: {what} from {source} to {target}: the source has shape {source.shape} and dtype "
            f"{source.dtype}, the target {target.shape} and {target.dtype}; they must be the same"
        )


def put_of(  # noqa: PLR0913, PLR0917 - what a put is given, and who puts
    rank: int,
    kind: str,
    target: Region,
    source: Any,  # noqa: ANN401 - an own region, or an array
    atomic: object,
    world: World,
) -> tuple[tuple[Access, ...], Tile | None]:
    """Return the accesses of a put, and its tile if the source is a private array.

    Args:
        rank: the caller; a source region must be its own.
        kind: the operation's name, for the message.
        target: the region that is written.
        source: an own region, or a private array; of the target's shape and dtype.
        atomic: None, "add" or "set".
        world: of this run.

    Raises:
        MisuseError: one of them cannot be right; the message says which.

    """
    if target.__class__ is not Region or target.world is not world:
        raise no_region(rank, kind, target)
    if source.__class__ is not Region:
        tile = tile_for(rank, kind, target, source)
        return (target.writes if atomic is None else atomic_of(rank, kind, target, atomic)), tile
    check_copy(rank, kind, target, source, world)
    if source.owner != rank:
        raise MisuseError(f"rank {rank}: {kind} from {source}; a put copies from an own region: window[...]")
    written = written_by(target, source) if atomic is None else atomic_of(rank, kind, target, atomic)
    return (*source.reads, *written), None


def pending_of(rank: int, pending: Any, scope: str) -> int:  # noqa: ANN401 - whatever an author passes
    """Return how many copies a quiet may leave pending.

    Args:
        rank: whose quiet.
        pending: an integer of Python's or numpy's, no boolean, from 0.
        scope: "rank": of a whole rank, whose streams have no order in which one copy is the last.

    Raises:
        MisuseError: it is no such number, or goes with a whole rank.

    """
    number = -1 if isinstance(pending, bool) or not hasattr(pending, "__index__") else int(pending.__index__())
    if not 0 <= number <= MOST_PENDING:
        raise MisuseError(f"rank {rank}: quiet of pending={pending!r}; use a number of copies: 0, 1, …")
    if number and scope == "rank":
        raise MisuseError(f"rank {rank}: quiet of scope='rank' and pending={number}; the last copies are of one stream")
    return number


def written_by(target: Region, source: Region) -> tuple[Access]:
    """Return the access to a copy's destination: a read where it copies elements onto themselves.

    Args:
        target: where it is copied to.
        source: where it is copied from.

    """
    same = target.slot == source.slot and target.spans == source.spans
    return target.reads if same else target.writes


def shown(value: object) -> str:
    """Write what was given instead, the same in every process and never at length."""
    if isinstance(value, Region | Cell):
        return str(value)
    if isinstance(value, Condition):
        return f"the condition {value}"
    if isinstance(value, WindowView | SignalView | OutsideView):
        return f"all of {value.name!r}; index it"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, str | int | float | complex | None):
        return repr(value)
    return f"an object of type {type(value).__name__}"
