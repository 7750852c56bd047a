"""Atomics: with and without a result, blocking and not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.frontends.shmem.rma import adopted, buffer
from asyncsim.guest.answers import answers
from asyncsim.guest.line import present_line
from asyncsim.trace.cells import AND, ATOMIC_ADD, OR, SET, XOR
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.frontends.shmem.teams import Ctx

_UPDATES = {"set": SET, "inc": ATOMIC_ADD, "add": ATOMIC_ADD, "and": AND, "or": OR, "xor": XOR}
_FETCHING = {"inc": "fetch_add", "add": "fetch_add", "and": "fetch_and", "or": "fetch_or", "xor": "fetch_xor",
             "set": "exchange", "swap": "exchange"}  # fmt: skip
_ONE = 1


class _Place:
    """An element that an atomic is on, at a PE."""

    def __init__(self, what: str, target: Any, pe: int, ctx: Ctx | None, *, floats: bool) -> None:
        self.own = own = present_pe()
        pe = own.pe(what, pe)
        block, offset = own.element(what, "target", target)
        self.dtype = dtype = target.dtype
        if dtype != block.flat.dtype or dtype.itemsize not in (4, 8) or dtype.kind not in ("iuf" if floats else "iu"):
            kinds = "integers and floats" if floats else "integers"
            raise MisuseError(f"{what}: target holds {dtype}; it is for {kinds} of 32 and 64 bits")
        self.what, self.ctx = what, ctx
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

    def update(self, how: str, value: Any) -> None:
        """Change it, without a result."""
        cell, number = self.cell, self.number(value)
        self.own.issue(self.ctx, lambda rank: rank.notify(cell, number, how, order="relaxed"))

    def fetch(self) -> Any:
        """Return what it holds."""
        cell = self.cell
        return self.value(self.own.looked(self.asked, self.ctx, cell, lambda rank: rank.read(cell)))

    def exchange(self, name: str, value: Any) -> Any:
        """Change it, and return what it held before."""
        cell, number = self.cell, self.number(value)
        held = self.own.issue(self.ctx, lambda rank: getattr(rank, name)(cell, number, order="acquire"))
        return self.value(held)

    def compare(self, cond: Any, value: Any) -> Any:
        """Set it if it holds `cond`, and return what it held before."""
        cell, expected, number = self.cell, self.number(cond), self.number(value)

        def swap(rank: Any) -> Any:
            return rank.compare_exchange(cell, expected, number, order="acquire")

        return self.value(self.own.looked((*self.asked, expected, number), self.ctx, cell, swap))


@answers
def atomic_set(target: Any, value: Any, pe: int, ctx: Ctx | None = None) -> None:
    """Set an element."""
    _Place("atomic_set", target, pe, ctx, floats=True).update(SET, value)


@answers
def atomic_fetch(source: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Return an element."""
    return _Place("atomic_fetch", source, pe, ctx, floats=True).fetch()


@answers
def atomic_swap(target: Any, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Set an element, and return what it held."""
    return _Place("atomic_swap", target, pe, ctx, floats=True).exchange("exchange", value)


@answers
def atomic_compare_swap(target: Any, cond: Any, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Set an element if it holds `cond`, and return what it held."""
    return _Place("atomic_compare_swap", target, pe, ctx, floats=False).compare(cond, value)


@answers
def atomic_op(target: Any, op: str, value: Any, pe: int, ctx: Ctx | None = None) -> None:
    """Change an element."""
    name = str(op).lower()
    if name not in _UPDATES:
        raise MisuseError(f"atomic_op: there is no operation {op!r}; use {', '.join(_UPDATES)}")
    given = _ONE if name == "inc" else value
    _Place(f"atomic_{name}", target, pe, ctx, floats=name == "set").update(_UPDATES[name], given)


@answers
def atomic_fetch_op(target: Any, op: str, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
    """Change an element, and return what it held."""
    name = str(op).lower()
    if name not in _FETCHING:
        raise MisuseError(f"atomic_fetch_op: there is no operation {op!r}; use {', '.join(_UPDATES)}")
    given = _ONE if name == "inc" else value
    return _Place(f"atomic_fetch_{name}", target, pe, ctx, floats=name == "set").exchange(_FETCHING[name], given)


def _updating(name: str) -> Callable[..., None]:
    def with_value(target: Any, value: Any, pe: int, ctx: Ctx | None = None) -> None:
        atomic_op(target, name, value, pe, ctx)

    def alone(target: Any, pe: int, ctx: Ctx | None = None) -> None:
        atomic_op(target, name, _ONE, pe, ctx)

    return alone if name == "inc" else with_value


def _fetching(name: str) -> Callable[..., Any]:
    def with_value(target: Any, value: Any, pe: int, ctx: Ctx | None = None) -> Any:
        return atomic_fetch_op(target, name, value, pe, ctx)

    def alone(target: Any, pe: int, ctx: Ctx | None = None) -> Any:
        return atomic_fetch_op(target, name, _ONE, pe, ctx)

    return alone if name == "inc" else with_value


def _later(blocking: Callable[..., Any]) -> Callable[..., None]:
    """Return the non-blocking form: its result comes with the next quiet."""

    def nbi(fetch: Any, target: Any, *given: Any, ctx: Ctx | None = None) -> None:
        own = present_pe()
        if buffer("atomic_nbi", "fetch", fetch).size != 1 or fetch.dtype != target.dtype:
            raise MisuseError(f"a non-blocking fetch takes an array of one element of {target.dtype} for its result")
        if own.places.find(fetch) is None:
            adopted(own, fetch)
        own.waiting.append((ctx, fetch, blocking(target, *given, ctx=ctx), str(present_line())))

    return nbi


_FETCHES: dict[str, Any] = {
    "atomic_fetch": atomic_fetch, "atomic_swap": atomic_swap, "atomic_compare_swap": atomic_compare_swap,
    "atomic_fetch_op": atomic_fetch_op,
    **{f"atomic_fetch_{name}": _fetching(name) for name in ("inc", "add", "and", "or", "xor")},
}  # fmt: skip
ATOMICS: dict[str, Any] = {
    **{f"atomic_{name}": _updating(name) for name in ("inc", "add", "and", "or", "xor")},
    **_FETCHES,
    **{f"{name}_nbi": _later(function) for name, function in _FETCHES.items()},
}
"""By their names in shmem4py."""
