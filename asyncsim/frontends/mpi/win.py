"""Windows and their epochs."""

# ruff: noqa: N802 - MPI's names
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mpi.comm import Comm, Group
from asyncsim.frontends.mpi.datatypes import buffer
from asyncsim.frontends.mpi.operations import Operations
from asyncsim.frontends.mpi.proc import Proc, present_rank
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.party import WORLD
from asyncsim.trace.cells import ATOMIC_ADD, SET, UpdateName
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.guest.places import Array

LOCK_EXCLUSIVE, LOCK_SHARED = 234, 235
MODE_NOCHECK, MODE_NOSTORE, MODE_NOPUT, MODE_NOPRECEDE, MODE_NOSUCCEED = 1024, 2048, 4096, 8192, 16384


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
        return Win(comm or _WORLD, np.zeros(int(size), np.uint8), disp_unit, stored=False)

    @staticmethod
    @answers
    def Allocate_shared(size: int, disp_unit: int = 1, info: Any = None, comm: Comm | None = None) -> Win:
        """Refuse: peers load and store such memory directly."""
        del size, disp_unit, info, comm
        raise RefusedError("Win.Allocate_shared is not followed: peers load and store such memory directly")

    Create_dynamic = Allocate_shared

    def tomemory(self) -> Array:
        """Return the own memory."""
        return self.flat

    @property
    def memory(self) -> Array:
        """The own memory."""
        return self.flat

    def Free(self) -> None:
        """Free it, with all ranks; no epoch may be open."""
        self.check_closed("Win.Free")
        own = self.comm.begin("Win.Free")
        self._alive("Win.Free")
        own.complete()
        own.sync(self.comm.key, self.comm.members)
        self._freed = str(present_line())
        own.windows.remove(self)
        if not self._given:
            self._block.freed = self._freed
        elif self.flat.size:  # the array is the script's own again, with what is in it
            own.load_runs(self._block, [(0, self.flat.size, 1)])
            own.places.remove(self._block)

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
        own = self._alive("Fence")
        if self._locked or self._all or self._started:
            raise MisuseError(f"Fence on {self.name} in an epoch of another kind; end that one first")
        self.comm.begin("Fence")
        if not assertion & MODE_NOPRECEDE:
            self._complete(own, "Fence", range(self.comm.size))
            own.sync(self.comm.key, self.comm.members)
        elif any(key == self.key for key, _ in own.pending):
            raise MisuseError(f"Fence on {self.name} says MODE_NOPRECEDE, and operations precede it")
        self._fenced, self._used = not assertion & MODE_NOSUCCEED, False

    @answers
    def Lock(self, rank: int, lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Begin an epoch with one target."""
        own = self._alive("Lock")
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
        cell = self._cell(own, target)
        if shared:
            own.do(own.rank.wait(cell >= 0, then=UpdateName(ATOMIC_ADD)(1)))
        else:
            own.do(own.rank.wait(cell == 0, then=UpdateName(SET)(-1)))

    @answers
    def Unlock(self, rank: int) -> None:
        """Complete what was issued to the target, and end the epoch."""
        own = self._alive("Unlock")
        if rank not in self._locked:
            raise MisuseError(f"Unlock of rank {rank} on {self.name}, which this rank has not locked")
        self._complete(own, "Unlock", [rank])
        kind = self._locked.pop(int(rank))
        if kind:
            cell = self._cell(own, self.comm.world("Unlock", rank))
            own.do(own.rank.notify(cell, -1 if kind == LOCK_SHARED else 1, order="stores"))

    @answers
    def Lock_all(self, assertion: int = 0) -> None:
        """Begin an epoch with all targets, shared."""
        own = self._alive("Lock_all")
        if self._locked or self._all or self._started or (self._fenced and self._used):
            raise MisuseError(f"Lock_all on {self.name}, where an epoch is open")
        self._fenced = False
        for target in () if assertion & MODE_NOCHECK else self.comm.members:
            self._take(own, target, shared=True)
        self._all = True
        self._checked = not assertion & MODE_NOCHECK

    def Unlock_all(self) -> None:
        """Complete what was issued, and end the epoch."""
        own = self._alive("Unlock_all")
        if not self._all:
            raise MisuseError(f"Unlock_all on {self.name}, without Lock_all")
        self._complete(own, "Unlock_all", range(self.comm.size))
        self._all = False
        for target in self.comm.members if self._checked else ():
            own.do(own.rank.notify(self._cell(own, target), -1, order="stores"))

    @answers
    def Flush(self, rank: int) -> None:
        """Complete what was issued to a target."""
        own = self._alive("Flush")
        if not self._all and rank not in self._locked:
            raise MisuseError(f"Flush of rank {rank} on {self.name} outside of an epoch that Lock or Lock_all began")
        self._complete(own, "Flush", [rank])

    def Flush_all(self) -> None:
        """Complete what was issued to all."""
        own = self._alive("Flush_all")
        if not self._all and not self._locked:
            raise MisuseError(f"Flush_all on {self.name} outside of an epoch that Lock or Lock_all began")
        self._complete(own, "Flush_all", range(self.comm.size))

    @answers
    def Flush_local(self, rank: int) -> None:
        """Refuse to let the origin be reused while the target is not complete."""
        raise RefusedError(f"Flush_local of rank {rank} is not followed: it completes the origin alone; use Flush")

    def Sync(self) -> None:
        """Do nothing: loads and stores of a rank are in order, in the unified memory that is assumed."""
        self._alive("Sync")

    def _complete(self, own: Proc, what: str, ranks: Sequence[int]) -> None:
        """Complete what was issued to some targets."""
        these = {(self.key, int(rank)) for rank in ranks}
        if own.pending - these and own.pending & these:
            raise RefusedError(
                f"{what} completes operations to some targets while those to others, or on another window, go on; that "
                "is not followed: complete these first"
            )
        if own.pending & these:
            own.complete()
            own.pending.clear()

    def _cells(self, own: Proc, name: str) -> Any:
        return own.wanted((name, self.key), Wanted(f"{self.name}_{name}", own.size, "int64", signal=True))

    @answers
    def Post(self, group: Group, assertion: int = 0) -> None:
        """Let the ranks of a group access the own memory."""
        del assertion
        own = self._alive("Post")
        if self._posted:
            raise MisuseError(f"Post on {self.name}, where the epoch of another one is open; Wait ends it")
        self._posted = list(group.members)
        for world in self._posted:
            own.do(own.rank.notify(self._cells(own, "post").at(world)[own.me], 1, order="stores"))

    @answers
    def Start(self, group: Group, assertion: int = 0) -> None:
        """Begin an epoch with the targets of a group, when they have posted."""
        own = self._alive("Start")
        if self._started or self._locked or self._all:
            raise MisuseError(f"Start on {self.name}, where an epoch is open")
        self._fenced = False
        self._started = list(group.members)
        for world in () if assertion & MODE_NOCHECK else self._started:
            number = own.next(("started", self.key, world)) + 1
            own.do(own.rank.wait(self._cells(own, "post")[world] >= number))

    def Complete(self) -> None:
        """Complete what was issued, and end the epoch that Start began."""
        own = self._alive("Complete")
        if not self._started:
            raise MisuseError(f"Complete on {self.name}, without Start")
        self._complete(own, "Complete", range(self.comm.size))
        for world in self._started:
            own.do(own.rank.notify(self._cells(own, "done").at(world)[own.me], 1, order="stores"))
        self._started = []

    def Wait(self) -> bool:
        """Wait until all that Post named have completed."""
        own = self._alive("Wait")
        if not self._posted:
            raise MisuseError(f"Wait on {self.name}, without Post")
        for world in self._posted:
            number = own.next(("waited", self.key, world)) + 1
            own.do(own.rank.wait(self._cells(own, "done")[world] >= number))
        self._posted = []
        return True


_WORLD = Comm(WORLD)
