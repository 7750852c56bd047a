"""Operations on a window, each in an epoch."""

# ruff: noqa: N802 - MPI's names
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mpi.comm import Comm, Request
from asyncsim.frontends.mpi.datatypes import OPS, Datatype, Op, buffer
from asyncsim.frontends.mpi.proc import Proc, present_rank
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.places import Block
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from asyncsim.guest.places import Array

_FETCHES = {"SUM": "fetch_add", "REPLACE": "exchange", "MAX": "fetch_max", "MIN": "fetch_min", "BAND": "fetch_and",
            "BOR": "fetch_or", "BXOR": "fetch_xor"}  # fmt: skip


class Operations:
    """A window, as operations see it.

    Args:
        comm: whose it is.
        flat: the own memory, of one dimension.
        disp_unit: bytes of a displacement.
        stored: what it holds was written before, and may be read.

    """

    def __init__(self, comm: Comm, flat: Array | None, disp_unit: int, *, stored: bool) -> None:
        own = comm.begin("Win")
        self.comm = comm
        self.key = ("window", own.next("window"))
        mine = (0, "", disp_unit) if flat is None or not flat.size else (flat.nbytes, flat.dtype.name, disp_unit)
        told = own.hand(comm.key, mine, to=comm.members, of=comm.members)
        self.parts = [told[world] for world in comm.members]
        kinds = {kind for _, kind, _ in self.parts if kind} or {"uint8"}
        if len(kinds) > 1:
            raise RefusedError(f"the ranks make one window of arrays of {' and '.join(sorted(kinds))}; use one dtype")
        self.dtype = np.dtype(kinds.pop())
        self._most = max([self.dtype.itemsize, *(size for size, _, _ in self.parts)])
        wanted = Wanted(present_line().assigned() or "win", self._most // self.dtype.itemsize, self.dtype.name)
        view = own.wanted(self.key, wanted)
        self.name = own.layout.wanted[self.key].name
        self.flat = np.zeros(0, self.dtype) if flat is None else flat
        block = Block(self.key, self.name, self.flat, view)
        if self.flat.size:
            own.places.add(block)
            if stored:
                own.note_store(block, [(0, self.flat.size, 1)])
        self._block, self._freed, self._given = block, "", stored
        self._fenced = self._used = self._all = self._checked = False
        self._locked: dict[int, int] = {}
        self._started: list[int] = []
        self._posted: list[int] = []
        own.windows.append(self)
        own.sync(comm.key, comm.members)

    def _alive(self, what: str) -> Proc:
        if self._freed:
            raise MisuseError(f"{what}: {self.name} is used after it was freed, at {self._freed}")
        return present_rank()

    # ---- operations

    def _issued(self, what: str, rank: Any) -> tuple[Proc, int]:
        """Return this rank and the target, which an open epoch has to be with."""
        own = self._alive(what)
        world = self.comm.world(what, rank)
        if self._started and world not in self._started:
            raise MisuseError(f"{what}: rank {rank} is not in the group that Start was given")
        if not (self._fenced or self._all or rank in self._locked or self._started):
            raise MisuseError(f"{what} to rank {rank} on {self.name} outside of an epoch")
        self._used = True
        own.pending.add((self.key, int(rank)))
        return own, world

    def _place(self, what: str, rank: int, target: Any, origin: Array) -> int:
        """Return the byte where an operation begins at its target."""
        parts = list(target) if isinstance(target, list | tuple) else [target]
        disp = 0 if parts[0] is None else int(parts[0])
        counts = [int(part) for part in parts[1:] if part is not None and not isinstance(part, Datatype)]
        if counts and counts[0] != origin.size:
            raise MisuseError(f"{what}: {origin.size} elements of the origin for {counts[0]} of the target")
        size, _, unit = self.parts[int(rank)]
        low: int = disp * unit
        if disp < 0 or low + origin.nbytes > size:
            where = f"bytes {low} to {low + origin.nbytes} of rank {rank}'s part of {self.name}"
            raise MisuseError(f"{what}: {where}, which has {size}: out of range")
        if low % origin.itemsize:
            raise RefusedError(f"{what}: at byte {low}, no multiple of the element's size: not followed")
        return low

    def _view(self, own: Proc, dtype: np.dtype[Any], world: int) -> Any:
        view = self._block.view
        if dtype != self.dtype:
            count = self._most // dtype.itemsize
            wanted = Wanted(f"{self.name}_{dtype.name}", count, dtype.name, over=self.key)
            view = own.wanted((self.key, dtype.name), wanted)
        return view if world == own.me else view.at(world)

    def _there(self, what: str, origin: Any, rank: Any, target: Any) -> tuple[Proc, Array, Any]:
        own, world = self._issued(what, rank)
        flat = buffer(what, origin)
        at = self._place(what, int(rank), target, flat) // flat.itemsize
        return own, flat, self._view(own, flat.dtype, world)[at : at + flat.size]

    @answers
    def Put(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Copy to a target; the origin may not be touched before it is complete."""
        own, flat, there = self._there("Put", origin, target_rank, target)
        if flat.size:
            own.do(own.rank.put(there, self._here(own, flat), nbi=True))

    def _here(self, own: Proc, flat: Array) -> Any:
        block = own.followed(flat)
        return own.region(block, (block.offset(flat), flat.size, 1), own.me)

    @answers
    def Get(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Copy from a target; what comes may not be touched before it is complete."""
        own, flat, there = self._there("Get", origin, target_rank, target)
        if flat.size:
            own.do(own.rank.get(self._here(own, flat), there, nbi=True))

    @answers
    def Rput(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Copy to a target; when its request is done, the origin may be reused."""
        own, flat, there = self._there("Rput", origin, target_rank, target)
        own.do(own.rank.put(there, use(flat).copy()))
        return Request(lambda: None)

    @answers
    def Rget(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Copy from a target; when its request is done, the elements are there."""
        own, flat, there = self._there("Rget", origin, target_rank, target)
        own.do(own.rank.get(self._here(own, flat), there))
        return Request(lambda: None)

    @answers
    def Accumulate(self, origin: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]) -> None:
        """Combine with elements of a target, each atomically."""
        own, flat, _ = self._there("Accumulate", origin, target_rank, target)
        use(flat)
        for number in range(flat.size):
            self._update(own, "Accumulate", flat[number : number + 1], target_rank, target, number, op)

    def _word(self, own: Proc, what: str, value: Array, rank: int, target: Any, number: int) -> Any:
        """Return an element of a target as a cell."""
        disp = list(target) if isinstance(target, list | tuple) else [target]
        low = self._place(what, int(rank), [disp[0]], value) + number * value.itemsize
        if value.dtype.kind not in "iu":
            raise RefusedError(f"{what}: this operation on {value.dtype} is not followed; integers are")
        return self._view(own, value.dtype, self.comm.members[int(rank)]).word[low // value.itemsize]

    def _update(self, own: Proc, what: str, value: Array, rank: int, target: Any, number: int, op: Op) -> None:
        if value.dtype.kind == "f" and op.name in ("SUM", "REPLACE"):
            disp = target[0] if isinstance(target, list | tuple) else target
            at = self._place(what, rank, [disp], value) // value.itemsize + number
            there = self._view(own, value.dtype, self.comm.members[int(rank)])[at : at + 1]
            own.do(own.rank.put(there, value.copy(), atomic="add" if op.name == "SUM" else "set"))
            return
        if not op.update:
            raise RefusedError(f"{what} with {op.name} is not followed")
        cell = self._word(own, what, value, rank, target, number)
        own.do(own.rank.notify(cell, int(value[0]), op.update, order="relaxed"))

    @answers
    def Fetch_and_op(
        self, origin: Any, result: Any, target_rank: int, target_disp: int = 0, op: Op = OPS["SUM"]
    ) -> None:
        """Combine with an element, and give what it held, when the operation is complete."""
        own, _ = self._issued("Fetch_and_op", target_rank)
        into = buffer("Fetch_and_op", result)[:1]
        value = into if op.name == "NO_OP" or origin is None else use(buffer("Fetch_and_op", origin))[:1]
        cell = self._word(own, "Fetch_and_op", into, target_rank, target_disp, 0)
        self._fetch(own, cell, value, into, op, (target_rank, target_disp))

    def _fetch(self, own: Proc, cell: Any, value: Array, into: Array, op: Op, asked: Any) -> None:
        if op.name == "NO_OP":
            held = own.looked(("read", self.key, asked), None, cell, lambda rank: rank.read(cell))
        elif op.name in _FETCHES:
            held = own.do(getattr(own.rank, _FETCHES[op.name])(cell, int(value[0]), order="acquire"))
        else:
            raise RefusedError(f"a fetch with {op.name} is not followed")
        own.promise((self.key, 0), into, held)

    @answers
    def Get_accumulate(
        self, origin: Any, result: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]
    ) -> None:
        """Combine with elements, and give what they held, when the operation is complete."""
        own, into, _ = self._there("Get_accumulate", result, target_rank, target)
        values = into if op.name == "NO_OP" else use(buffer("Get_accumulate", origin))
        for number in range(into.size):
            one = into[number : number + 1]
            cell = self._word(own, "Get_accumulate", one, target_rank, target, number)
            self._fetch(own, cell, values[number : number + 1], one, op, (target_rank, number, str(target)))

    @answers
    def Compare_and_swap(self, origin: Any, compare: Any, result: Any, target_rank: int, target_disp: int = 0) -> None:
        """Set an element if it holds `compare`, and give what it held, when the operation is complete."""
        own, _ = self._issued("Compare_and_swap", target_rank)
        value, expected = (use(buffer("Compare_and_swap", each))[:1] for each in (origin, compare))
        into = buffer("Compare_and_swap", result)[:1]
        cell = self._word(own, "Compare_and_swap", value, target_rank, target_disp, 0)
        old, new = int(expected[0]), int(value[0])
        asked = ("swap", self.key, target_rank, target_disp, old, new)
        held = own.looked(asked, None, cell, lambda rank: rank.compare_exchange(cell, old, new, order="acquire"))
        own.promise((self.key, 0), into, held)
