"""Atomics: with and without a result, blocking and not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.frontends.shmem.teams import Ctx, domain_of, issued
from asyncsim.guest.answers import answers
from asyncsim.guest.places import contiguous
from asyncsim.trace.cells import AND, ATOMIC_ADD, OR, SET, XOR
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

_OPS = {
    "set": (SET, "exchange"), "inc": (ATOMIC_ADD, "fetch_add"), "add": (ATOMIC_ADD, "fetch_add"),
    "and": (AND, "fetch_and"), "or": (OR, "fetch_or"), "xor": (XOR, "fetch_xor"),
}  # fmt: skip
"""What each does to a cell, and the operation of the machine that also returns what it held."""


class _Place:
    """An element that an atomic is on, at a PE."""

    def __init__(self, what: str, target: Any, pe: int, ctx: Ctx | None, *, floats: bool) -> None:
        self.own = own = present_pe()
        self.what, (self.domain, pe) = what, issued(what, pe, ctx)
        block, offset = own.element(what, "target", target)
        self.dtype = dtype = target.dtype
        if dtype != block.flat.dtype or dtype.itemsize not in (4, 8) or dtype.kind not in ("iuf" if floats else "iu"):
            kinds = "integers and floats" if floats else "integers"
            raise MisuseError(f"{what}: target holds {dtype}; it is for {kinds} of 32 and 64 bits")
        self.cell = own.cell(block, offset, pe)
        self.bits = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "f" else dtype
        self.asked = (what, block.key, offset, pe)

    def number(self, value: Any) -> int:
        """Return a value as what the cell holds of it."""
        try:
            return int(np.array(value, self.dtype).view(self.bits))
        except (OverflowError, TypeError, ValueError) as error:
            raise MisuseError(f"{self.what}: {value!r} does not fit {self.dtype}") from error

    def value(self, held: int) -> Any:
        """Return what the cell holds as a value."""
        return np.array(held, self.bits).view(self.dtype).item()

    def change(self, op: Any, value: Any, *, fetching: bool) -> Any:
        """Change it by an operation of `_OPS`; return what it held, or nothing."""
        cell, number, (how, name) = self.cell, self.number(value), _OPS[op]
        if not fetching:
            return self.own.issue(self.domain, lambda rank: rank.notify(cell, number, how, order="relaxed"))
        return self.value(self.own.issue(self.domain, lambda rank: getattr(rank, name)(cell, number, order="acquire")))

    def look(self, make: Callable[[Any], Any], *asked: int) -> Any:
        """Return what it held, of an operation that may change nothing."""
        return self.value(self.own.looked((*self.asked, *asked), self.domain, self.cell, make))


@answers
def atomic_fetch(source: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Return an element."""
    place = _Place("atomic_fetch", source, pe, ctx, floats=True)
    return place.look(lambda rank: rank.read(place.cell))


@answers
def atomic_compare_swap(target: Any, cond: Any, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Set an element if it holds `cond`, and return what it held."""
    place = _Place("atomic_compare_swap", target, pe, ctx, floats=False)
    cell, held, new = place.cell, place.number(cond), place.number(value)
    return place.look(lambda rank: rank.compare_exchange(cell, held, new, order="acquire"), held, new)


def _changed(what: str, op: Any, target: Any, value: Any, pe: int, ctx: Ctx | None, *, fetching: bool = False) -> Any:
    name = str(op).lower()
    if name not in _OPS:
        raise MisuseError(f"{what}: there is no operation {op!r}; use {', '.join(_OPS)}")
    place = _Place(what, target, pe, ctx, floats=name == "set")
    return place.change(name, 1 if name == "inc" else value, fetching=fetching)


@answers
def atomic_op(target: Any, op: str, value: Any, pe: int, ctx: Ctx | None = None) -> None:
    """Change an element."""
    _changed("atomic_op", op, target, value, pe, ctx)


@answers
def atomic_fetch_op(target: Any, op: str, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Change an element, and return what it held."""
    return _changed("atomic_fetch_op", op, target, value, pe, ctx, fetching=True)


def _named(what: str, op: str, *, fetching: bool) -> Callable[..., Any]:
    def with_value(target: Any, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
        return _changed(what, op, target, value, pe, ctx, fetching=fetching)

    def alone(target: Any, pe: int, ctx: Ctx | None = None) -> Any:
        return with_value(target, 1, pe, ctx)

    return alone if op == "inc" else with_value


def _later(fetching: Callable[..., Any]) -> Callable[..., None]:
    """Return the non-blocking form: its result comes with the next quiet."""

    def nbi(fetch: Any, target: Any, *given: Any, ctx: Ctx | None = None, **more: Any) -> None:
        if contiguous("atomic_nbi", "fetch", fetch).size != 1 or fetch.dtype != getattr(target, "dtype", None):
            raise MisuseError("a non-blocking fetch takes an array of one element, of its target's dtype, as `fetch`")
        present_pe().promise(domain_of(ctx), fetch, fetching(target, *given, ctx=ctx, **more))

    return nbi


_FETCHES: dict[str, Any] = {
    "atomic_fetch": atomic_fetch, "atomic_compare_swap": atomic_compare_swap, "atomic_fetch_op": atomic_fetch_op,
    "atomic_swap": _named("atomic_swap", "set", fetching=True),
    **{f"atomic_fetch_{op}": _named(f"atomic_fetch_{op}", op, fetching=True) for op in _OPS if op != "set"},
}  # fmt: skip
ATOMICS: dict[str, Any] = {
    **{f"atomic_{op}": _named(f"atomic_{op}", op, fetching=False) for op in _OPS},
    **_FETCHES,
    **{f"{name}_nbi": _later(function) for name, function in _FETCHES.items()},
}
"""By their names in shmem4py."""
