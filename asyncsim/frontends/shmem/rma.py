"""Puts and gets, and their order: fence and quiet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.shmem.constants import SIGNAL
from asyncsim.frontends.shmem.locks import SigAddr
from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.frontends.shmem.teams import Ctx, domain_of, issued
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.places import contiguous
from asyncsim.trace.cells import ATOMIC_ADD, SET
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.frontends.shmem.pe import Pe
    from asyncsim.guest.places import Array, Block


def common_size(what: str, target: Any, source: Any, size: Any, tst: int = 1, sst: int = 1) -> int:
    """Return how many elements are copied.

    Args:
        what: the call, for the message.
        target: where to.
        source: where from.
        size: what was given for it; None: as many as both have.
        tst: from one element of the target to the next.
        sst: likewise, of the source.

    Raises:
        MisuseError: they differ in dtype, or one of them has less than that, or it is no number of elements.

    """
    if min(tst, sst) < 1:
        raise MisuseError(f"{what}: a stride of {min(tst, sst)}; it must be at least 1")
    rooms = {}
    for name, array, step in (("target", target, tst), ("source", source, sst)):
        rooms[name] = -(-contiguous(what, name, array).size // step)
    if target.dtype != source.dtype:
        raise MisuseError(f"{what}: target holds {target.dtype} and source {source.dtype}; they must be the same")
    if size is None:
        return min(rooms.values())
    if not hasattr(size, "__index__") or size < 0:
        raise MisuseError(f"{what}: size is {size!r}; give a number of elements")
    for name, room in rooms.items():
        if size > room:
            raise MisuseError(f"{what}: {size} elements, and {name} has {room}: out of range")
    return int(size)


@answers
def put(target: Any, source: Any, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy to a PE; returns when the source may be reused."""
    _put("put", target, source, pe, size, ctx)


@answers
def put_nbi(target: Any, source: Any, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy to a PE; the source may not be touched before a quiet."""
    _put("put_nbi", target, source, pe, size, ctx, nbi=True)


@answers
def iput(target: Any, source: Any, pe: int, tst: int = 1, sst: int = 1, size: int | None = None,
         ctx: Ctx | None = None) -> None:  # fmt: skip
    """Copy every `sst`-th element to every `tst`-th place."""
    _put("iput", target, source, pe, size, ctx, tst=tst, sst=sst)


@answers
def put_signal(target: Any, source: Any, pe: int, signal: Any, value: int, sigop: Any, size: int | None = None,
               ctx: Ctx | None = None) -> None:  # fmt: skip
    """Copy to a PE, and update its signal when that is there."""
    _put("put_signal", target, source, pe, size, ctx, signal=(signal, value, sigop))


@answers
def put_signal_nbi(target: Any, source: Any, pe: int, signal: Any, value: int, sigop: Any,
                   size: int | None = None, ctx: Ctx | None = None) -> None:  # fmt: skip
    """Do the same without waiting for the source."""
    _put("put_signal_nbi", target, source, pe, size, ctx, signal=(signal, value, sigop), nbi=True)


def _put(
    what: str, target: Any, source: Any, pe: int, size: int | None, ctx: Ctx | None, *, nbi: bool = False,
    tst: int = 1, sst: int = 1, signal: tuple[Any, int, Any] | None = None,
) -> None:  # fmt: skip
    own, (domain, pe) = present_pe(), issued(what, pe, ctx)
    block = own.symmetric(what, "target", target)
    size = common_size(what, target, source, size, tst, sst)
    if not size:
        return
    start = block.offset(target)
    if signal is None and size == 1 and ("flag", block.key, start) in own.layout.marks:
        value = int(use(source).ravel(order="K")[0])  # somebody waits for this element: it is set, as a whole
        cell = own.cell(block, start, pe)
        own.issue(domain, lambda rank: rank.notify(cell, value, SET, order="relaxed"))
        return
    there = own.region(block, (start, size, tst), pe)
    here = _source(own, block, source, size, sst, nbi=nbi)
    if signal is None:
        own.issue(domain, lambda rank: rank.put(there, here, nbi=nbi))
        return
    handle, value, op = signal
    cell = SigAddr.cells(what, handle).at(pe)[0]
    how = SET if SIGNAL(op) == SIGNAL.SET else ATOMIC_ADD
    own.issue(domain, lambda rank: rank.put_signal(there, here, cell, int(value), how, nbi=nbi))


def _source(own: Pe, target: Block, source: Array, size: int, step: int, *, nbi: bool) -> Any:
    """Return what is copied: a region of one's own, or the values as they are now."""
    block = own.followed(source) if nbi else own.places.find(source)
    if block is not None:
        own.check_alive(block)
        if block.flat.dtype == target.flat.dtype == source.dtype:
            return own.region(block, (block.offset(source), size, step), own.me)
        own.load(block, source)
    tile = source.ravel(order="K")[: (size - 1) * step + 1 : step].copy()
    return tile.view(target.flat.dtype)


@answers
def get(target: Any, source: Any, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy from a PE; complete on return."""
    _get("get", target, source, pe, size, ctx)


@answers
def get_nbi(target: Any, source: Any, pe: int, size: int | None = None, ctx: Ctx | None = None) -> None:
    """Copy from a PE; the target may not be touched before a quiet."""
    _get("get_nbi", target, source, pe, size, ctx, nbi=True)


@answers
def iget(target: Any, source: Any, pe: int, tst: int = 1, sst: int = 1, size: int | None = None,
         ctx: Ctx | None = None) -> None:  # fmt: skip
    """Copy every `sst`-th element to every `tst`-th place."""
    _get("iget", target, source, pe, size, ctx, tst=tst, sst=sst)


def _get(
    what: str, target: Any, source: Any, pe: int, size: int | None, ctx: Ctx | None, *, nbi: bool = False,
    tst: int = 1, sst: int = 1,
) -> None:  # fmt: skip
    own, (domain, pe) = present_pe(), issued(what, pe, ctx)
    block = own.symmetric(what, "source", source)
    size = common_size(what, target, source, size, tst, sst)
    if not size:
        return
    there = own.region(block, (block.offset(source), size, sst), pe)
    into = own.followed(target) if nbi else own.places.find(target)
    if into is not None and into.flat.dtype == block.flat.dtype == target.dtype:
        own.check_alive(into)
        here = own.region(into, (into.offset(target), size, tst), own.me)
        own.issue(domain, lambda rank: rank.get(here, there, nbi=nbi))
        return
    tile = own.issue(domain, lambda rank: rank.load(there))
    target.ravel(order="K")[: (size - 1) * tst + 1 : tst] = tile.view(target.dtype)
    if into is not None:
        own.store(into, target)


@answers
def fence(ctx: Ctx | None = None) -> None:
    """Order earlier puts, atomics and stores before later ones, to each PE."""
    present_pe().issue(domain_of(ctx), lambda rank: rank.fence())


@answers
def quiet(ctx: Ctx | None = None) -> None:
    """Complete everything that was issued on a context."""
    present_pe().quiet(domain_of(ctx))
