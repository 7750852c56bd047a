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
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable


class _Elements:
    """Elements that are waited for, without those that `status` excludes, each with its condition."""

    def __init__(self, what: str, ivars: Any, cmp: Any, values: Any, status: Any = None) -> None:
        self.own = own = present_pe()
        block = own.symmetric(what, "ivars", ivars)
        if ivars.dtype.kind not in "iu" or ivars.dtype.itemsize not in (4, 8) or ivars.dtype != block.flat.dtype:
            raise MisuseError(f"{what}: ivars hold {ivars.dtype}; waits are for integers of 32 and 64 bits")
        if not (ivars.flags.c_contiguous or ivars.flags.f_contiguous):
            raise MisuseError(f"{what}: ivars are not contiguous")
        self.how, start = comparison(cmp), block.offset(ivars)
        left = np.zeros(ivars.size, bool) if status is None else np.asarray(use(status)).astype(bool)
        try:
            self.wanted = np.broadcast_to(np.asarray(use(values), ivars.dtype), (ivars.size,))
        except (OverflowError, TypeError, ValueError) as error:
            raise MisuseError(f"{what}: {values!r} is not what {ivars.size} elements hold: {error}") from error
        if left.size != ivars.size:
            raise MisuseError(f"{what}: status has {left.size} elements, and ivars {ivars.size}")
        self.numbers = [int(number) for number in np.flatnonzero(~left)]
        for number in self.numbers:
            own.marked(("flag", block.key, start + number))
        compare = getattr(operator, self.how)
        self.conditions = {
            number: compare(own.cell(block, start + number, own.me), int(self.wanted[number]))
            for number in self.numbers
        }
        self.asked = (what, block.key, start, self.how, tuple(map(int, self.wanted)))
        self.block, self.start = block, start

    def wait(self, number: int) -> None:
        """Wait for one."""
        self.own.do(self.own.rank.wait(self.conditions[number]))

    def test(self) -> list[int]:
        """Return which hold it, each looked at once; in a loop that comes back, first wait until another one does."""
        own = self.own

        def look() -> list[int]:
            return [number for number in self.numbers if own.do(own.rank.test(self.conditions[number]))]

        return own.tried(self.asked, look, self.wait_other)  # type: ignore[no-any-return]

    def wait_other(self, found: list[int]) -> None:
        """Wait until an element holds it that is not among `found`; for ever if there are none."""
        others = [number for number in self.numbers if number not in found]
        if len(others) == 1:
            self.wait(others[0])
        elif others:
            compare, low = getattr(np, _UFUNCS[self.how]), others[0]
            chosen, wanted = np.array(others) - low, self.wanted[others]
            region = self.own.region(self.block, (self.start + low, others[-1] - low + 1, 1), self.own.me)
            self.own.do(self.own.rank.poll(region, lambda tile: bool(compare(tile[chosen], wanted).any())))


_UFUNCS = {"eq": "equal", "ne": "not_equal", "gt": "greater", "le": "less_equal", "lt": "less", "ge": "greater_equal"}


@answers
def wait_until(ivar: Any, cmp: Any, value: Any) -> None:
    """Wait until an element holds what the comparison asks for."""
    present_pe().element("wait_until", "ivar", ivar)
    _Elements("wait_until", ivar, cmp, value).wait(0)


@answers
def test(ivar: Any, cmp: Any, value: Any) -> bool:
    """Say whether an element holds what the comparison asks for."""
    present_pe().element("test", "ivar", ivar)
    return bool(_Elements("test", ivar, cmp, value).test())


def _several(how: str, which: str, vector: str) -> tuple[str, Callable[..., Any]]:
    """Return a function on several elements, such as ``wait_until_any_vector``, and its name."""
    name = f"{how}_{which}{vector}"

    def several(ivars: Any, cmp: Any, value: Any, status: Any = None) -> Any:
        elements = _Elements(name, ivars, cmp, value, status)
        if (how, which) == ("wait_until", "all"):
            for number in elements.numbers:
                elements.wait(number)
            return None
        found = elements.test()
        if which == "all":
            return len(found) == len(elements.numbers)
        if how == "wait_until" and elements.numbers and not found:
            elements.wait_other([])
            found = elements.test()
        return found if which == "some" else found[0] if found else None

    return name, several


@answers
def signal_fetch(signal: SigAddr) -> int:
    """Return what a signal holds here."""
    own, cell = present_pe(), SigAddr.cells("signal_fetch", signal)[0]
    held: int = own.looked(("signal_fetch", signal.key), None, cell, lambda rank: rank.read(cell))
    return held


@answers
def signal_wait_until(signal: SigAddr, cmp: Any, value: int) -> int:
    """Wait until a signal holds what the comparison asks for; return what it holds then."""
    own, how, cell = present_pe(), comparison(cmp), SigAddr.cells("signal_wait_until", signal)[0]
    condition = getattr(operator, how)(cell, int(value))
    if how == "eq":  # then it is known, whatever the schedule
        own.do(own.rank.wait(condition))
        return int(value)
    held: int = own.do(own.rank.wait_value(condition))
    return held


WAITS: dict[str, Any] = dict(
    _several(how, which, vector)
    for how in ("wait_until", "test")
    for which in ("all", "any", "some")
    for vector in ("", "_vector")
)
"""Those of several elements, by their names in shmem4py."""
