"""Operations on a window, each in an epoch."""

# ruff: noqa: N802 - MPI's names
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mpi.comm import Comm, Request
from asyncsim.frontends.mpi.datatypes import OPS, Datatype, Op, buffer
from asyncsim.frontends.mpi.proc import LOCAL, ORDERED, Proc, To, present_rank
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.element import Element, Held
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.places import Block
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from asyncsim.guest.places import Array

MODE_NOPUT = 4096


class Operations:
    """A window, as operations see it.

    Args:
        comm: whose it is.
        flat: the own memory, of one dimension.
        disp_unit: bytes of a displacement.
        stored: what it holds was written before, and may be read.
        shared: all ranks load and store all of it.

    """

    def __init__(self, comm: Comm, flat: Array | None, disp_unit: int, *, stored: bool, shared: bool = False) -> None:
        if not hasattr(disp_unit, "__index__") or disp_unit < 1:
            raise MisuseError(f"Win: disp_unit={disp_unit!r}; give the bytes of a displacement")
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
        sizes = [size for size, _, _ in self.parts]
        self.lows = [sum(sizes[:number]) if shared else 0 for number in range(len(sizes))]
        self._most = max([self.dtype.itemsize, sum(sizes) if shared else max(sizes)])
        wanted = Wanted(present_line().assigned() or "win", self._most // self.dtype.itemsize, self.dtype.name)
        view = own.wanted(self.key, wanted)
        self.name = own.layout.wanted[self.key].name
        self.home = comm.members[0] if shared else None
        if shared:
            flat, view = np.zeros(sum(sizes), self.dtype), view if own.me == self.home else view.at(self.home)
        self.flat = np.zeros(0, self.dtype) if flat is None else flat
        self.block = Block(self.key, self.name, self.flat, view)
        if self.flat.size:
            own.places.add(self.block)
            if stored:
                own.note_store(self.block, [(0, self.flat.size, 1)])
                own.do(own.rank.quiet())
        if shared:
            own.shared.add(self.block)
        own.stored.pop(self.key, None)
        self._freed, self._given = "", stored
        self._fenced = self._used = self._all = self._checked = False
        self._ahead: set[int] = set()
        self._locked: dict[int, int] = {}
        self._started: list[int] = []
        self._posted: list[int] = []
        own.windows.append(self)
        own.sync(comm.key, comm.members)

    def alive(self, what: str) -> Proc:
        """Return this rank.

        Args:
            what: the call, for the message.

        Raises:
            MisuseError: the window was freed.

        """
        if self._freed:
            raise MisuseError(f"{what}: {self.name} is used after it was freed, at {self._freed}")
        return present_rank()

    # ---- operations

    def _issued(self, what: str, rank: Any, *, puts: bool = False) -> tuple[Proc, int, To]:
        """Return this rank and the target, which an open epoch has to be with."""
        own = self.alive(what)
        world = self.comm.world(what, rank)
        if self._started and world not in self._started:
            raise MisuseError(f"{what}: rank {rank} is not in the group that Start was given")
        if not (self._fenced or self._all or rank in self._locked or self._started):
            raise MisuseError(f"{what} to rank {rank} on {self.name} outside of an epoch")
        if world in self._ahead:  # its fence meets none; but it comes before what is done to its memory
            self._ahead.remove(world)
            own.do(own.rank.wait(self.cells(own, "fenced")[world] >= own.next(("ahead", self.key, world)) + 1))
        if puts and (self._fenced or self._started) and own.mail.get(("noput", self.key, world)):
            raise MisuseError(f"{what} to rank {rank} on {self.name}, of which that rank said MODE_NOPUT")
        self._used = True
        to = (self.key, int(rank))
        own.pending.setdefault(to, "")
        return own, world, to

    def cells(self, own: Proc, name: str) -> Any:
        """Return cells of a window by which ranks meet.

        Args:
            own: this rank.
            name: of them.

        """
        return own.wanted((name, self.key), Wanted(f"{self.name}_{name}", own.size, "int64", signal=True))

    def _place(self, what: str, rank: int, target: Any, origin: Array) -> tuple[Any, int, int]:
        """Return where an operation begins at its target: the key of the memory there, its bytes, and the byte."""
        parts = list(target) if isinstance(target, list | tuple) else [target]
        disp = 0 if not parts or parts[0] is None else parts[0]
        if not hasattr(disp, "__index__"):
            raise MisuseError(
                f"{what}: the target is {target!r}; give a displacement, or [displacement, count, datatype]"
            )
        counts = [int(part) for part in parts[1:] if part is not None and not isinstance(part, Datatype)]
        if counts and counts[0] != origin.size:
            raise MisuseError(f"{what}: {origin.size} elements of the origin for {counts[0]} of the target")
        key, size, most, low = self.found(what, int(rank), int(disp))
        if low < 0 or low + origin.nbytes > size:
            where = f"bytes {low} to {low + origin.nbytes} of rank {rank}'s part of {self.name}"
            raise MisuseError(f"{what}: {where}, which has {size}: out of range")
        if low % origin.itemsize:
            raise RefusedError(f"{what}: at byte {low}, no multiple of the element's size: not followed")
        return key, most, low + self.lows[int(rank)]

    def found(self, what: str, rank: int, disp: int) -> tuple[Any, int, int, int]:
        """Return the memory of a rank that a displacement is in: its key, its bytes, those of all ranks', the byte.

        Args:
            what: the call, for the message.
            rank: whose.
            disp: the displacement.

        """
        del what
        size, _, unit = self.parts[rank]
        return self.key, size, self._most, disp * unit

    def view(self, own: Proc, place: tuple[Any, int, int], dtype: np.dtype[Any], world: int) -> Any:
        """Return the memory of a rank as elements of a dtype.

        Args:
            own: this rank.
            place: as `_place` gives it.
            dtype: of the elements.
            world: the rank.

        """
        key, most, _ = place
        held = own.layout.wanted[key]
        if dtype.name != held.dtype:
            count = most // dtype.itemsize
            key, held = (key, dtype.name), Wanted(f"{held.name}_{dtype.name}", count, dtype.name, over=key)
        view, owner = own.wanted(key, held), self._owner(world)
        return view if owner == own.me else view.at(owner)

    def _owner(self, world: int) -> int:
        return world if self.home is None else self.home

    def _there(self, what: str, origin: Any, rank: Any, target: Any) -> tuple[Proc, To, Array, Any]:
        own, world, to = self._issued(what, rank, puts="ut" in what)
        flat = buffer(what, origin)
        place = self._place(what, int(rank), target, flat)
        at = place[2] // flat.itemsize
        return own, to, flat, self.view(own, place, flat.dtype, world)[at : at + flat.size]

    def _here(self, own: Proc, flat: Array) -> Any:
        block = own.followed(flat)
        return own.region(block, (block.offset(flat), flat.size, 1), own.me)

    def _put(self, what: str, origin: Any, rank: int, target: Any, *, request: bool) -> Request:
        own, to, flat, there = self._there(what, origin, rank, target)
        if not flat.size:
            return Request(lambda: None)
        here = self._here(own, flat)
        if not request and LOCAL not in own.layout.marks:
            own.issue(own.domain(to), lambda actor: actor.put(there, here, nbi=True))
            return Request(lambda: None)
        tile = use(flat).copy()
        own.issue(own.domain(to), lambda actor: actor.put(there, tile))
        return Request(own.beside(to, lambda actor: actor.load(here)))

    def _get(self, what: str, origin: Any, rank: int, target: Any, *, request: bool) -> Request:
        own, to, flat, there = self._there(what, origin, rank, target)
        if not flat.size:
            return Request(lambda: None)
        here = self._here(own, flat)
        if not request and LOCAL not in own.layout.marks:
            own.issue(own.domain(to), lambda actor: actor.get(here, there, nbi=True))
            return Request(lambda: None)
        return Request(own.beside(to, lambda actor: actor.get(here, there)))

    @answers
    def Put(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Copy to a target; the origin may not be touched before it is complete."""
        self._put("Put", origin, target_rank, target, request=False)

    @answers
    def Get(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Copy from a target; what comes may not be touched before it is complete."""
        self._get("Get", origin, target_rank, target, request=False)

    @answers
    def Rput(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Copy to a target; when its request is done, the origin may be reused."""
        return self._put("Rput", origin, target_rank, target, request=True)

    @answers
    def Rget(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Copy from a target; when its request is done, the elements are there."""
        return self._get("Rget", origin, target_rank, target, request=True)

    # ---- atomics

    def _elements(self, what: str, given: Any, rank: Any, target: Any, op: Op) -> tuple[Proc, To, list[Element]]:
        """Return what an atomic is on, one by one."""
        own, world, to = self._issued(what, rank, puts=op.name != "NO_OP")
        if not isinstance(op, Op) or op.name in ("MAXLOC", "MINLOC"):
            raise MisuseError(f"{what}: {op!r} is no predefined operation of an accumulate")
        flat = buffer(what, given)
        place = self._place(what, int(rank), target, flat)
        if op.name != "NO_OP":
            before = own.pending[to]
            if before and (before != op.name or op.name == "REPLACE"):
                own.marked(ORDERED)
            own.pending[to] = op.name
        domain = own.domain(to, ORDERED)
        if ORDERED in own.layout.marks and domain is not None:
            domain.run(own, lambda actor: actor.fence())
        at = place[2] // flat.itemsize
        held = Held(
            place[0], self.name, place[1], lambda dtype: self.view(own, place, dtype, world), self._owner(world)
        )
        return own, to, [Element(own, domain, held, flat.dtype, at + n) for n in range(flat.size)]

    def _accumulate(self, what: str, origin: Any, rank: int, target: Any, op: Op) -> Request:
        own, to, elements = self._elements(what, origin, rank, target, op)
        flat = use(buffer(what, origin))
        if op.name != "NO_OP":
            for element, value in zip(elements, flat, strict=True):
                element.update(op, value)
        return self._lent(own, to, flat)

    def _lent(self, own: Proc, to: To, flat: Array, *results: tuple[Array, Any]) -> Request:
        """Let the origin be untouched, and results come, until the operation is complete."""
        number = (to, own.next("atomic"))
        for array, value in results:
            own.promise(number, array, value)
        if all(array is not flat for array, _ in results):
            own.promise(number, flat)
        return Request(lambda: own.deliver(lambda of: of == number))

    @answers
    def Accumulate(self, origin: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]) -> None:
        """Combine with elements of a target, each atomically."""
        self._accumulate("Accumulate", origin, target_rank, target, op)

    @answers
    def Raccumulate(self, origin: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]) -> Request:
        """Combine likewise; when its request is done, the origin may be reused."""
        return self._accumulate("Raccumulate", origin, target_rank, target, op)

    @answers
    def Get_accumulate(
        self, origin: Any, result: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]
    ) -> None:
        """Combine with elements, and give what they held, when the operation is complete."""
        self.Rget_accumulate(origin, result, target_rank, target, op)

    @answers
    def Rget_accumulate(
        self, origin: Any, result: Any, target_rank: int, target: Any = None, op: Op = OPS["SUM"]
    ) -> Request:
        """Combine likewise; when its request is done, the result is there."""
        own, to, elements = self._elements("Get_accumulate", result, target_rank, target, op)
        into = buffer("Get_accumulate", result)
        flat = into if op.name == "NO_OP" else use(buffer("Get_accumulate", origin))
        if flat.size != into.size or flat.dtype != into.dtype:
            raise MisuseError(f"Get_accumulate: {flat.size} of {flat.dtype} for a result of {into.size} {into.dtype}")
        held = [element.fetch(op, value) for element, value in zip(elements, flat, strict=True)]
        return self._lent(own, to, flat, (into, np.array(held, into.dtype)))

    @answers
    def Fetch_and_op(
        self, origin: Any, result: Any, target_rank: int, target_disp: int = 0, op: Op = OPS["SUM"]
    ) -> None:
        """Combine with an element, and give what it held, when the operation is complete."""
        into = buffer("Fetch_and_op", result)[:1]
        value = into if op.name == "NO_OP" or origin is None else buffer("Fetch_and_op", origin)[:1]
        self.Rget_accumulate(value, into, target_rank, target_disp, op)

    @answers
    def Compare_and_swap(self, origin: Any, compare: Any, result: Any, target_rank: int, target_disp: int = 0) -> None:
        """Set an element if it holds `compare`, and give what it held, when the operation is complete."""
        value, expected = (use(buffer("Compare_and_swap", each))[:1] for each in (origin, compare))
        into = buffer("Compare_and_swap", result)[:1]
        if not value.dtype == expected.dtype == into.dtype or value.dtype.kind not in "iu":
            raise MisuseError(
                f"Compare_and_swap of {value.dtype}, {expected.dtype}, {into.dtype}; use one integer type"
            )
        own, to, (element,) = self._elements("Compare_and_swap", into, target_rank, target_disp, OPS["NO_OP"])
        self._lent(own, to, value, (into, element.swap(int(expected[0]), int(value[0]))))
