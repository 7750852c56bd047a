"""Atomics on one element of memory, of any number type, by any operator."""

# ruff: noqa: ANN401 - operands are of any type
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.layout import Wanted
from asyncsim.trace.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from asyncsim.guest.domain import Domain
    from asyncsim.guest.party import Party
    from asyncsim.machine.rank import Rank

_FETCHES = {"SUM": "fetch_add", "REPLACE": "exchange", "MAX": "fetch_max", "MIN": "fetch_min", "BAND": "fetch_and",
            "BOR": "fetch_or", "BXOR": "fetch_xor"}  # fmt: skip
_TYPES = ("int64", "uint64", "int32", "uint32", "int16", "uint16", "int8", "uint8")
"""Adds of two types are not atomic against each other: so each operator that a memory sees has one, in a window
beside it, and two operators on one element race there."""
_WORD = 8


@dataclass(frozen=True)
class Operator:
    """An operator.

    Args:
        name: as in MPI: ``SUM``, ``REPLACE``, ``NO_OP``, …
        apply: on arrays; None: it is for atomics alone.
        update: what the machine calls it on a cell; empty: it has no such update.

    """

    name: str
    apply: Any = None
    update: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that elements are in.

    Args:
        key: of its declaration.
        name: of its window.
        nbytes: of all of it.
        view: returns it as elements of a dtype, of the process whose it is.
        owner: that process.

    """

    key: Hashable
    name: str
    nbytes: int
    view: Callable[[np.dtype[Any]], Any]
    owner: int


class Element:
    """One element.

    Args:
        own: the process that does something to it.
        domain: in which its operations are; None: the process's own.
        held: the memory.
        dtype: of the element.
        at: which one it is.

    Raises:
        RefusedError: it is no integer, and no float, of up to 64 bits.

    """

    def __init__(self, own: Party, domain: Domain | None, held: Held, dtype: np.dtype[Any], at: int) -> None:
        if dtype.kind not in "iuf" or dtype.itemsize not in (1, 2, 4, 8):
            raise RefusedError(f"an atomic on {dtype} is not followed; integers and floats of up to 64 bits are")
        self.own, self.domain, self.held, self.dtype, self.at = own, domain, held, dtype, at
        self.bits = np.dtype(f"i{dtype.itemsize}") if dtype.kind == "f" else dtype

    def _cell(self) -> Any:
        """Return it as a cell, of its bits."""
        if self.dtype.kind == "f":  # then all atomics on floats of this window are on their bits
            self.own.marked(("bits", self.held.key))
        return self.held.view(self.bits).word[self.at]

    def _whole(self) -> bool:
        """Say whether the machine has it as an element of floats."""
        return self.dtype.kind == "f" and ("bits", self.held.key) not in self.own.layout.marks

    def _number(self, value: Any) -> int:
        return int(np.array(value, self.dtype).view(self.bits))

    def _value(self, number: int) -> Any:
        return np.array(number, self.bits).view(self.dtype)[()]

    def _operator(self, op: Operator) -> None:
        """Note the operator: two that differ on one element at the same time are a race."""
        own, key = self.own, self.held.key
        own.marked(("op", key, op.name))
        names = sorted(mark[2] for mark in own.layout.marks if mark[:2] == ("op", key))  # type: ignore[index]
        if len(names) < 2 or names.index(op.name) >= len(_TYPES):  # noqa: PLR2004 - two differ
            return
        size, kind = self.dtype.itemsize, np.dtype(_TYPES[names.index(op.name)])
        count = (self.held.nbytes // size) * _WORD
        base = ("operators", key, size)
        name = f"{self.held.name}_operators"
        view = own.wanted(base, Wanted(name, count // _WORD, "int64", initialised=True))
        if kind.name != "int64":
            wanted = Wanted(f"{name}_{kind.name}", count // kind.itemsize, kind.name, over=base)
            view = own.wanted((*base, kind.name), wanted)
        view = view if self.held.owner == own.me else view.at(self.held.owner)
        at = self.at * _WORD // kind.itemsize
        own.issue(self.domain, lambda rank: rank.put(view[at : at + 1], np.zeros(1, kind), atomic="add"))

    def update(self, op: Operator, value: Any) -> None:
        """Change it.

        Args:
            op: the operator.
            value: its other operand.

        """
        self._operator(op)
        own = self.own
        if self._whole() and op.name in ("SUM", "REPLACE"):
            there = self.held.view(self.dtype)[self.at : self.at + 1]
            how: Any = "add" if op.name == "SUM" else "set"
            own.issue(self.domain, lambda rank: rank.put(there, np.array([value], self.dtype), atomic=how))
            return
        cell, number, how = self._cell(), self._number(value), op.update
        if not how or (self.dtype.kind == "f" and op.name != "REPLACE"):
            self._combine(cell, op, value)
            number, how = 0, "AtomicAdd"  # it lands late, as every accumulate
        own.issue(self.domain, lambda rank: rank.notify(cell, number, how, order="relaxed"))

    def _combine(self, cell: Any, op: Operator, value: Any) -> Any:
        async def combine(rank: Rank) -> int:
            while True:
                held = await rank.read(cell, order="relaxed")
                number = self._number(self.dtype.type(op.apply(self._value(held), value)))
                if await rank.compare_exchange(cell, held, number, order="acquire") == held:
                    return held

        return self._value(self.own.issue(self.domain, combine))

    def fetch(self, op: Operator, value: Any) -> Any:
        """Change it, and return what it held.

        Args:
            op: the operator.
            value: its other operand.

        """
        own = self.own
        if op.name != "NO_OP":
            self._operator(op)
        elif self._whole():
            there = self.held.view(self.dtype)[self.at : self.at + 1]
            return own.issue(self.domain, lambda rank: rank.load(there, atomic=True))[0]
        cell = self._cell()
        if op.name == "NO_OP":
            asked = ("read", self.held.key, self.held.owner, self.at)
            return self._value(own.looked(asked, self.domain, cell, lambda rank: rank.read(cell)))
        if op.name in _FETCHES and (self.dtype.kind != "f" or op.name == "REPLACE"):
            name, number = _FETCHES[op.name], self._number(value)
            return self._value(own.issue(self.domain, lambda rank: getattr(rank, name)(cell, number, order="acquire")))
        return self._combine(cell, op, value)

    def swap(self, old: int, new: int) -> Any:
        """Set it to `new` if it holds `old`, and return what it held.

        Args:
            old: the number to compare with.
            new: the number to set.

        """
        cell, asked = self._cell(), ("swap", self.held.key, self.held.owner, self.at, old, new)
        return self.own.looked(
            asked, self.domain, cell, lambda rank: rank.compare_exchange(cell, old, new, order="acquire")
        )
