"""Point-to-point synchronisation: waits for, and tests of, elements that others change."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem.constants import comparison
from asyncsim.frontends.shmem.locks import SigAddr
from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.frontends.shmem.pe import Pe


def _conditions(what: str, own: Pe, ivars: Any, cmp: Any, values: Any, status: Any) -> dict[int, Any]:
    """Return the conditions of a wait by the numbers of its elements, without those that `status` excludes."""
    block = own.symmetric(what, "ivars", ivars)
    if ivars.dtype.kind not in "iu" or ivars.dtype.itemsize not in (4, 8) or ivars.dtype != block.flat.dtype:
        raise MisuseError(f"{what}: ivars hold {ivars.dtype}; waits are for integers of 32 and 64 bits")
    if not (ivars.flags.c_contiguous or ivars.flags.f_contiguous):
        raise MisuseError(f"{what}: ivars are not contiguous")
    start = block.offset(ivars)
    wanted = np.broadcast_to(np.asarray(values), (ivars.size,))
    left = np.zeros(ivars.size, bool) if status is None else np.asarray(use(status)).astype(bool)
    compare = getattr(operator, comparison(cmp))
    found = {}
    for number in np.flatnonzero(~left[: ivars.size]):
        own.marked(("flag", block.key, start + int(number)))
        found[int(number)] = compare(own.cell(block, start + int(number), own.me), int(wanted[number]))
    return found


@answers
def wait_until(ivar: Any, cmp: Any, value: Any) -> None:
    """Wait until an element holds what the comparison asks for."""
    own = present_pe()
    own.element("wait_until", "ivar", ivar)
    for condition in _conditions("wait_until", own, ivar, cmp, value, None).values():
        own.do(own.rank.wait(condition))


@answers
def test(ivar: Any, cmp: Any, value: Any) -> bool:
    """Say whether an element holds what the comparison asks for."""
    own = present_pe()
    block, offset = own.element("test", "ivar", ivar)
    (condition,) = _conditions("test", own, ivar, cmp, value, None).values()
    asked = ("test", block.key, offset, comparison(cmp), int(value))
    found: bool = own.tried(asked, lambda: own.do(own.rank.test(condition)), lambda _: own.do(own.rank.wait(condition)))
    return found


def _all(what: str, ivars: Any, cmp: Any, values: Any, status: Any) -> None:
    own = present_pe()
    for condition in _conditions(what, own, ivars, cmp, values, status).values():
        own.do(own.rank.wait(condition))


def _tested(what: str, ivars: Any, cmp: Any, values: Any, status: Any) -> tuple[dict[int, Any], list[int]]:
    """Return the conditions, and which of them hold, each looked at once."""
    own = present_pe()
    conditions = _conditions(what, own, ivars, cmp, values, status)
    return conditions, [number for number, condition in conditions.items() if own.do(own.rank.test(condition))]


@answers
def wait_until_all(ivars: Any, cmp: Any, value: Any, status: Any = None) -> None:
    """Wait until all elements hold it."""
    _all("wait_until_all", ivars, cmp, value, status)


@answers
def wait_until_all_vector(ivars: Any, cmp: Any, values: Sequence[Any], status: Any = None) -> None:
    """Wait until each element holds its own."""
    _all("wait_until_all_vector", ivars, cmp, values, status)


def _waiting(name: str, *, several: bool) -> Callable[..., Any]:
    def wait(ivars: Any, cmp: Any, value: Any, status: Any = None) -> Any:
        conditions, found = _tested(name, ivars, cmp, value, status)
        if not conditions:
            return [] if several else None
        if not found and len(conditions) > 1:
            raise RefusedError(
                f"{name}: none of its {len(conditions)} elements holds it yet, and to stand until any does is not "
                "followed; wait for one, or for all"
            )
        if not found:
            ((number, condition),) = conditions.items()
            own = present_pe()
            own.do(own.rank.wait(condition))
            found = [number]
        return found if several else found[0]

    return wait


@answers
def test_all(ivars: Any, cmp: Any, value: Any, status: Any = None) -> bool:
    """Say whether all elements hold it."""
    conditions, found = _tested("test_all", ivars, cmp, value, status)
    return len(found) == len(conditions)


@answers
def test_any(ivars: Any, cmp: Any, value: Any, status: Any = None) -> int | None:
    """Return the number of an element that holds it, or None."""
    _, found = _tested("test_any", ivars, cmp, value, status)
    return found[0] if found else None


@answers
def test_some(ivars: Any, cmp: Any, value: Any, status: Any = None) -> list[int]:
    """Return the numbers of those that hold it."""
    return _tested("test_some", ivars, cmp, value, status)[1]


@answers
def signal_fetch(signal: SigAddr) -> int:
    """Return what a signal holds here."""
    own = present_pe()
    cell = _signal("signal_fetch", signal)
    held: int = own.looked(("signal_fetch", signal.key), None, cell, lambda rank: rank.read(cell))
    return held


@answers
def signal_wait_until(signal: SigAddr, cmp: Any, value: int) -> int:
    """Wait until a signal holds what the comparison asks for; return what it holds then."""
    own = present_pe()
    how = comparison(cmp)
    condition = getattr(operator, how)(_signal("signal_wait_until", signal), int(value))
    if how == "eq":  # then it is known, whatever the schedule
        own.do(own.rank.wait(condition))
        return int(value)
    held: int = own.do(own.rank.wait_value(condition))
    return held


def _signal(what: str, signal: Any) -> Any:
    if not isinstance(signal, SigAddr):
        raise MisuseError(f"{what}: {type(signal).__name__} is no signal; give what shmem.new_signal returned")
    return signal.cells(what)[0]


WAITS: dict[str, Any] = {
    "test_all_vector": test_all,
    "test_any_vector": test_any,
    "test_some_vector": test_some,
    **{
        f"wait_until_{which}{vector}": _waiting(f"wait_until_{which}{vector}", several=which == "some")
        for which in ("any", "some")
        for vector in ("", "_vector")
    },
}
"""Further ones, by their names in shmem4py."""
