"""Windows and their epochs."""

# ruff: noqa: N802 - MPI's names
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mpi.comm import PROC_NULL, Comm, Group
from asyncsim.frontends.mpi.datatypes import buffer
from asyncsim.frontends.mpi.operations import MODE_NOPUT, Operations
from asyncsim.frontends.mpi.proc import APART, LOCAL, Proc, present_rank
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.party import WORLD
from asyncsim.trace.cells import ATOMIC_ADD, SET, UpdateName
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncsim.guest.places import Array

LOCK_EXCLUSIVE, LOCK_SHARED = 234, 235
MODE_NOCHECK, MODE_NOSTORE, MODE_NOPRECEDE, MODE_NOSUCCEED = 1024, 2048, 8192, 16384


class Win(Operations):
    """A window."""

    @staticmethod
    @answers
    def Create(memory: Any, disp_unit: int = 1, info: Any = None, comm: Comm | None = None) -> Win:
        """Make a window of memory that is there."""
        del info
        flat = None if memory is None else use(buffer("Win.Create", memory))
        return Win(comm or _WORLD, flat, disp_unit, stored=True)

    @staticmethod
    @answers
    def Allocate(size: int, disp_unit: int = 1, info: Any = None, comm: Comm | None = None) -> Win:
        """Make a window of new memory, which nobody wrote."""
        del info
        return Win(comm or _WORLD, np.zeros(_bytes(size), np.uint8), disp_unit, stored=False)

    @staticmethod
    @answers
    def Allocate_shared(size: int, disp_unit: int = 1, info: Any = None, comm: Comm | None = None) -> Win:
        """Make a window of new memory, which all ranks load and store; the parts lie behind each other."""
        del info
        present_rank().marked(APART)
        return Win(comm or _WORLD, np.zeros(_bytes(size), np.uint8), disp_unit, stored=False, shared=True)

    @answers
    def Shared_query(self, rank: int) -> tuple[Array, int]:
        """Return the part of a rank, and the bytes of a displacement; of PROC_NULL, the first that is not empty."""
        self.alive("Shared_query")
        if self.home is None:
            raise MisuseError(f"Shared_query: {self.name} was not made by Allocate_shared")
        if rank == PROC_NULL:
            rank = next((number for number, part in enumerate(self.parts) if part[0]), 0)
        self.comm.world("Shared_query", rank)
        size, _, unit = self.parts[rank]
        return self.flat[self.lows[rank] : self.lows[rank] + size], unit

    def tomemory(self) -> Array:
        """Return the own memory."""
        return self.flat if self.home is None else self.Shared_query(self.comm.rank)[0]

    memory = property(tomemory)

    def Free(self) -> None:
        """Free it, with all ranks; no epoch may be open."""
        self.check_closed("Win.Free")
        own = self.comm.begin("Win.Free")
        self.alive("Win.Free")
        own.sync(self.comm.key, self.comm.members)
        self._freed = str(present_line())
        own.windows.remove(self)
        if not self._given:
            self.block.freed = self._freed
        elif self.flat.size:  # the array is the script's own again, with what is in it
            own.load_runs(self.block, [(0, self.flat.size, 1)])
            own.places.remove(self.block)

    def check_closed(self, what: str) -> None:
        """Refuse an epoch that is still open.

        Args:
            what: the call, for the message.

        Raises:
            MisuseError: one is.

        """
        open_ = "Lock" if self._locked or self._all else "Start" if self._started else "Post" if self._posted else ""
        if open_:
            raise MisuseError(f"{what}: the epoch that {open_} began on {self.name} was not ended")
        if any(key == self.key for key, _ in present_rank().pending):
            raise MisuseError(f"{what}: operations on {self.name} were not completed; end their epoch with Fence")

    # ---- epochs

    @answers
    def Fence(self, assertion: int = 0) -> None:
        """Complete what was issued since the last fence, everywhere, and begin a new epoch."""
        own = self.alive("Fence")
        if self._locked or self._all or self._started:
            raise MisuseError(f"Fence on {self.name} in an epoch of another kind; end that one first")
        self.comm.begin("Fence", precede=not assertion & MODE_NOPRECEDE, succeed=not assertion & MODE_NOSUCCEED)
        self._asserted(own, assertion)
        if not assertion & MODE_NOPRECEDE:
            self._complete(own, range(self.comm.size))
            own.sync(self.comm.key, self.comm.members)
            self._ahead.clear()
        elif any(key == self.key for key, _ in own.pending):
            raise MisuseError(f"Fence on {self.name} says MODE_NOPRECEDE, and operations precede it")
        else:
            others = [world for world in self.comm.members if world != own.me]
            cells = self.cells(own, "fenced")
            own.do(own.rank.notify_all([cells.at(world)[own.me] for world in others], 1, order="stores"))
            for world in self._ahead:  # of the fence before, which nothing was done after
                own.next(("ahead", self.key, world))
            self._ahead = set(others)
        self._fenced, self._used = not assertion & MODE_NOSUCCEED, False

    def _asserted(self, own: Proc, assertion: int) -> None:
        """Check, or keep, what an assertion says of the own memory."""
        line = own.stored.pop(self.key, None)
        if assertion & MODE_NOSTORE and line:
            raise MisuseError(f"MODE_NOSTORE on {self.name}, and line {line} stores there")
        own.mail["noput", self.key, own.me] = bool(assertion & MODE_NOPUT)

    @answers
    def Lock(self, rank: int, lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Begin an epoch with one target."""
        own = self.alive("Lock")
        target = self.comm.world("Lock", rank)
        if rank in self._locked or self._all or self._started or (self._fenced and self._used):
            raise MisuseError(f"Lock of rank {rank} on {self.name}, where an epoch with it is open")
        self._fenced = False
        if not assertion & MODE_NOCHECK:
            self._take(own, target, shared=lock_type == LOCK_SHARED)
        self._locked[int(rank)] = 0 if assertion & MODE_NOCHECK else lock_type

    def _cell(self, own: Proc, target: int) -> Any:
        return own.wanted(("lock", self.key), Wanted(f"{self.name}_lock", 1, "int64", signal=True)).at(target)[0]

    def _take(self, own: Proc, target: int, *, shared: bool) -> None:
        if not shared:
            own.marked(("exclusive", self.key))
        elif ("exclusive", self.key) not in own.layout.marks:
            return  # locks that are all shared hold up none
        cell = self._cell(own, target)
        if shared:
            own.do(own.rank.wait(cell >= 0, then=UpdateName(ATOMIC_ADD)(1)))
        else:
            own.do(own.rank.wait(cell == 0, then=UpdateName(SET)(-1)))

    def _release(self, own: Proc, target: int, *, shared: bool) -> None:
        if ("exclusive", self.key) in own.layout.marks:
            own.do(own.rank.notify(self._cell(own, target), -1 if shared else 1, order="stores"))

    @answers
    def Unlock(self, rank: int) -> None:
        """Complete what was issued to the target, and end the epoch."""
        own = self.alive("Unlock")
        if rank not in self._locked:
            raise MisuseError(f"Unlock of rank {rank} on {self.name}, which this rank has not locked")
        self._complete(own, [rank])
        kind = self._locked.pop(int(rank))
        if kind:
            self._release(own, self.comm.world("Unlock", rank), shared=kind == LOCK_SHARED)

    @answers
    def Lock_all(self, assertion: int = 0) -> None:
        """Begin an epoch with all targets, shared."""
        own = self.alive("Lock_all")
        if self._locked or self._all or self._started or (self._fenced and self._used):
            raise MisuseError(f"Lock_all on {self.name}, where an epoch is open")
        self._fenced = False
        for target in () if assertion & MODE_NOCHECK else self.comm.members:
            self._take(own, target, shared=True)
        self._all = True
        self._checked = not assertion & MODE_NOCHECK

    def Unlock_all(self) -> None:
        """Complete what was issued, and end the epoch."""
        own = self.alive("Unlock_all")
        if not self._all:
            raise MisuseError(f"Unlock_all on {self.name}, without Lock_all")
        self._complete(own, range(self.comm.size))
        self._all = False
        for target in self.comm.members if self._checked else ():
            self._release(own, target, shared=True)

    @answers
    def Flush(self, rank: int) -> None:
        """Complete what was issued to a target."""
        self._flush("Flush", [rank])

    def Flush_all(self) -> None:
        """Complete what was issued to all."""
        self._flush("Flush_all", None)

    def _flush(self, what: str, ranks: Sequence[int] | None, *, local: bool = False) -> None:
        own = self.alive(what)
        if not self._all and not (self._locked if ranks is None else set(ranks) & set(self._locked)):
            raise MisuseError(f"{what} on {self.name} outside of an epoch that Lock or Lock_all began")
        if local:
            own.marked(LOCAL)
        own.complete(
            [(self.key, int(rank)) for rank in (range(self.comm.size) if ranks is None else ranks)], local=local
        )

    @answers
    def Flush_local(self, rank: int) -> None:
        """Complete what was issued to a target at the origin alone."""
        self._flush("Flush_local", [rank], local=True)

    def Flush_local_all(self) -> None:
        """Complete what was issued to all at the origin alone."""
        self._flush("Flush_local_all", None, local=True)

    def Sync(self) -> None:
        """Do nothing but see memory anew: in unified memory, loads and stores of a rank are in order."""
        own = self.alive("Sync")
        own.flush()
        own.forget()

    def _complete(self, own: Proc, ranks: Iterable[int]) -> None:
        own.complete([(self.key, int(rank)) for rank in ranks])

    @answers
    def Post(self, group: Group, assertion: int = 0) -> None:
        """Let the ranks of a group access the own memory."""
        own = self.alive("Post")
        if self._posted:
            raise MisuseError(f"Post on {self.name}, where the epoch of another one is open; Wait ends it")
        self._asserted(own, assertion)
        self._posted = list(group.members)
        for world in self._posted:
            own.do(own.rank.notify(self.cells(own, "post").at(world)[own.me], 1, order="stores"))

    @answers
    def Start(self, group: Group, assertion: int = 0) -> None:
        """Begin an epoch with the targets of a group, when they have posted."""
        own = self.alive("Start")
        if self._started or self._locked or self._all:
            raise MisuseError(f"Start on {self.name}, where an epoch is open")
        self._fenced = False
        self._started = list(group.members)
        for world in () if assertion & MODE_NOCHECK else self._started:
            number = own.next(("started", self.key, world)) + 1
            own.do(own.rank.wait(self.cells(own, "post")[world] >= number))

    def Complete(self) -> None:
        """Complete what was issued, and end the epoch that Start began."""
        own = self.alive("Complete")
        if not self._started:
            raise MisuseError(f"Complete on {self.name}, without Start")
        self._complete(own, range(self.comm.size))
        for world in self._started:
            own.do(own.rank.notify(self.cells(own, "done").at(world)[own.me], 1, order="stores"))
        self._started = []

    def Wait(self) -> bool:
        """Wait until all that Post named have completed."""
        own = self._exposed("Wait")
        for world in self._posted:
            number = own.next(("waited", self.key, world)) + 1
            own.do(own.rank.wait(self.cells(own, "done")[world] >= number))
        self._posted = []
        return True

    def Test(self) -> bool:
        """Say whether all that Post named have completed; if so, end the epoch."""
        own = self._exposed("Test")
        done = self.cells(own, "done")
        numbers = {world: own.counted(("waited", self.key, world)) + 1 for world in self._posted}

        def test(world: int) -> bool:
            cell = done[world]
            return bool(own.tried(
                ("Test", self.key, world), lambda: own.do(own.rank.test(cell >= numbers[world])),
                lambda _: own.do(own.rank.wait(cell >= numbers[world])),
            ))  # fmt: skip

        return all(test(world) for world in self._posted) and self.Wait()

    def _exposed(self, what: str) -> Proc:
        if not self._posted:
            raise MisuseError(f"{what} on {self.name}, without Post")
        return self.alive(what)


_WORLD = Comm(WORLD)


def _bytes(size: Any) -> int:
    if not hasattr(size, "__index__") or size < 0:
        raise MisuseError(f"a window of size {size!r}; give a number of bytes")
    return int(size)
