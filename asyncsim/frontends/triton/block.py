"""One program instance of a kernel: a stream of its rank, and what its accesses are there.

Each access of the kernel is one operation of the machine, or one for each part of it that no box covers. An atomic on
an integer is one on that word.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.triton.boxes import boxes
from asyncsim.frontends.triton.space import OWN, refused
from asyncsim.guest.host import blocking
from asyncsim.trace.cells import AND, ATOMIC_ADD, MAX, MIN, OR, SET, XOR, Change

if TYPE_CHECKING:
    from asyncsim.frontends.triton.space import Place, Space
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.region import Condition, Word

Array = np.ndarray[Any, Any]

SCOPES = {"cta": "block", "gpu": "rank", "sys": "world", "workgroup": "block", "agent": "rank", "system": "world"}
"""Between whom a scope of Triton's, or of AMD's, orders."""
_FETCHES = {
    "add": ("fetch_add", ATOMIC_ADD), "xchg": ("exchange", SET), "and": ("fetch_and", AND), "or": ("fetch_or", OR),
    "xor": ("fetch_xor", XOR), "min": ("fetch_min", MIN), "max": ("fetch_max", MAX),
}  # fmt: skip
_SEES = {"acq_rel": "acquire", "acquire": "acquire", "release": "relaxed", "relaxed": "relaxed"}
_TELLS = {"acq_rel": "release", "acquire": "relaxed", "release": "release", "relaxed": "relaxed"}
_RELEASES, _ACQUIRES = ("acq_rel", "release"), ("acq_rel", "acquire")
_WIDTH = ("", "cta", "gpu", "sys")
_COMPARED = {"==": "__eq__", "!=": "__ne__", ">=": "__ge__", "<=": "__le__"}


@dataclass(slots=True)
class Block:
    """The program instance that runs.

    Args:
        rank: its stream.
        space: what addresses mean.
        index: its number, an axis.
        grid: how many there are, an axis.

    """

    rank: Rank
    space: Space
    index: tuple[int, int, int]
    grid: tuple[int, int, int]
    seen: list[tuple[int, np.dtype[Any], int] | None] | None = None
    """In a round of a loop, what it read atomically: where, as what, and what; None: another access."""
    rounds: dict[int, int] = field(default_factory=dict)
    """How often a loop went round, by its line."""
    one_thread: bool = False
    """Whether what is done just now is inline assembly: of a thread, not of the block."""
    touched: bool = False
    """Whether other threads have had accesses since the last barrier of the block, so that a thread's release is not
    theirs."""
    acquired: str = ""
    """The widest scope of what a thread has acquired since then, which the others do not know."""

    def barrier(self) -> None:
        """Let all threads know what each one knows."""
        self.touched = False
        self.know()

    def know(self) -> None:
        """Let what comes next know what a thread has acquired."""
        if self.acquired:
            region: Any = SCOPES[self.acquired]
            self.acquired = ""
            blocking(self.rank.fence(order="acquire", scope=region))

    def fence(self, order: str, scope: str) -> None:
        """Do a thread's fence.

        Args:
            order: acquire, release, acq_rel or sc.
            scope: cta, gpu or sys.

        """
        self.know()
        if self.touched and order == "release":
            return
        kind: Any = "acquire" if self.touched else order
        region: Any = SCOPES[scope]
        blocking(self.rank.fence(order=kind, scope=region))

    def _order(self, sem: str, scope: str) -> tuple[Any, Any]:
        """Return the order and the scope of an atomic for the machine.

        Triton's own atomics that release have a barrier of the block before them (its compiler puts it there), and
        one behind them if their result is used. A thread's assembly has none.
        """
        if not self.one_thread:
            self.know()
            self.touched = self.touched and sem not in _RELEASES
            return sem, SCOPES[scope]
        if self.touched:
            sem = _SEES[sem]
        if sem in _RELEASES:
            self.know()
        if sem in _ACQUIRES:
            self.acquired = max(self.acquired, scope, key=_WIDTH.index)
            sem = _TELLS[sem]
        return sem, SCOPES[scope]

    def _note(self, access: tuple[int, np.dtype[Any], int] | None) -> None:
        if self.seen is not None:
            self.seen.append(access)

    def load(self, addresses: Array, mask: Array, dtype: np.dtype[Any]) -> Array:
        """Load elements; where the mask is false there are zeros.

        Args:
            addresses: of any shape.
            mask: booleans of that shape.
            dtype: of the elements.

        """
        out = np.zeros(addresses.shape, dtype)
        chosen = addresses[mask]
        if not len(chosen):
            return out
        values = self.space.constants(chosen, dtype)
        if values is None:
            place = self.space.place(chosen, dtype, "a load")
            self._touch(addresses.size, shared=place.number < OWN)
            places, order = np.unique(place.places, return_inverse=True)
            found = np.empty(len(places), dtype)
            for key, part, _ in boxes(places, place.view.shape):
                found[part] = np.ravel(blocking(self.rank.load(place.region(key))))
            values = found[order]
        out[mask] = values
        return out

    def store(self, addresses: Array, values: Array, mask: Array) -> None:
        """Store elements where the mask is true.

        Args:
            addresses: of the elements, any shape, int64.
            values: one for each address.
            mask: which of them count, of the same shape.

        """
        chosen = addresses[mask]
        if not len(chosen):
            return
        place = self.space.place(chosen, values.dtype, "a store")
        self.space.written.add(place.number)
        self._touch(addresses.size, shared=True)
        last = values[mask][::-1]
        places, first = np.unique(place.places[::-1], return_index=True)
        tile = last[first]
        for key, part, shape in boxes(places, place.view.shape):
            blocking(self.rank.store(place.region(key), tile[part].reshape(shape)))

    def _touch(self, size: int, *, shared: bool) -> None:
        """Take note of an access: of one thread to one element, or of all threads to a tile."""
        self._note(None)
        if size > 1 or not shared:
            self.touched |= shared
        else:
            self.know()

    def add_floats(self, addresses: Array, values: Array, mask: Array) -> None:
        """Add elements atomically; nothing comes back.

        Args:
            addresses: of the elements, any shape, int64.
            values: one for each address.
            mask: which of them count, of the same shape.

        Raises:
            RefusedError: one address is there twice.

        """
        chosen = addresses[mask]
        if not len(chosen):
            return
        place = self.space.place(chosen, values.dtype, "an atomic add")
        self.space.written.add(place.number)
        self._touch(addresses.size, shared=True)
        places, order = np.unique(place.places, return_index=True)
        if len(places) < len(chosen):
            raise refused("an atomic add with one address twice in a tile of floats")
        tile = values[mask][order]
        for key, part, shape in boxes(places, place.view.shape):
            blocking(self.rank.store(place.region(key), tile[part].reshape(shape), atomic="add"))

    def word(self, address: int, dtype: np.dtype[Any], what: str) -> tuple[Place, Word]:
        """Return the word at an address, to synchronise on.

        Args:
            address: of the word.
            dtype: its integer type.
            what: is done, for messages.

        Raises:
            RefusedError: its type is not an integer's.

        """
        if dtype.kind not in "iu":
            raise refused(f"{what} of {dtype}: only integers are words of synchronisation")
        place = self.space.place(np.array([address], np.uint64), dtype, what)
        self.space.memory.note_word(place.number)
        return place, place.word(int(place.places[0]))

    def update(
        self,
        how: str,
        address: int,
        value: Any,
        sem: str,
        scope: str,
        *,
        used: bool,
    ) -> int:
        """Change a word atomically, and return what it held; of no use: 0, which asks for nothing. Adding 0 reads.

        Args:
            how: add, xchg, and, or, xor, min, max.
            address: of the word.
            value: a numpy integer.
            sem: relaxed, acquire, release, acq_rel.
            scope: cta, gpu, sys.
            used: whether the kernel uses what comes back.

        """
        if used and how in ("add", "or", "xor") and int(value) == 0:
            return self.read(address, np.asarray(value).dtype, sem, scope)
        self._note(None)
        place, word = self.word(address, np.asarray(value).dtype, f"atomic {how}")
        self.space.written.add(place.number)
        fetch, update = _FETCHES[how]
        order, region = self._order(sem if used else _TELLS[sem], scope)
        if used:
            return int(blocking(getattr(self.rank, fetch)(word, int(value), order=order, scope=region)))
        blocking(self.rank.notify(word, int(value), update, order=order, scope=region))
        return 0

    def compare_exchange(
        self,
        address: int,
        expected: Any,
        value: Any,
        sem: str,
        scope: str,
    ) -> int:
        """Set a word if it holds `expected`; return what it held. With equal operands it only reads.

        Args:
            address: of the word.
            expected: what it has to hold.
            value: what it is set to.
            sem: relaxed, acquire, release or acq_rel.
            scope: cta, gpu or sys.

        """
        if int(expected) == int(value):
            return self.read(address, np.asarray(value).dtype, sem, scope)
        self._note(None)
        place, word = self.word(address, np.asarray(value).dtype, "atomic cas")
        self.space.written.add(place.number)
        order, region = self._order(sem, scope)
        operation = self.rank.compare_exchange(word, int(expected), int(value), order=order, scope=region)
        return int(blocking(operation))

    def read(self, address: int, dtype: np.dtype[Any], sem: str, scope: str) -> int:
        """Return what a word holds, atomically.

        Args:
            address: of the word.
            dtype: its integer type.
            sem: relaxed, acquire, release or acq_rel.
            scope: cta, gpu or sys.

        """
        _, word = self.word(address, dtype, "an atomic load")
        order, region = self._order(_SEES[sem], scope)
        value = int(blocking(self.rank.read(word, order=order, scope=region)))
        self._note((address, dtype, value))
        return value

    def await_word(
        self, address: int, dtype: np.dtype[Any], compare: str, number: int, sem: str, scope: str,
        *, then: int | None = None, value: bool = False,
    ) -> int:  # fmt: skip
        """Wait until a word compares so with a number; return what it held, or the number.

        Args:
            address: of the word.
            dtype: its integer type.
            compare: ==, !=, >=, <=.
            number: what it is compared with.
            sem: acquire, relaxed, …
            scope: cta, gpu, sys.
            then: what it is set to as the wait passes; None: it stays.
            value: whether the exact value is needed.

        """
        place, word = self.word(address, dtype, "a wait")
        condition: Condition = getattr(word, _COMPARED[compare])(number)
        change = None if then is None else Change(SET, then)
        if change is not None:
            self.space.written.add(place.number)
        order, region = self._order(sem if change is not None else _SEES[sem], scope)
        if value and compare != "==":
            return int(blocking(self.rank.wait_value(condition, then=change, order=order, scope=region)))
        blocking(self.rank.wait(condition, then=change, order=order, scope=region))
        return number


_present: ContextVar[Block] = ContextVar("block")


def enter_block(block: Block) -> None:
    """Let the hosted function that runs be a program instance."""
    _present.set(block)


def present_block() -> Block | None:
    """Return the program instance that runs; None: none does."""
    return _present.get(None)
