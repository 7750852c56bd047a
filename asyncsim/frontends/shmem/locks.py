"""Locks, and signal objects: symmetric objects that are no arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.guest.answers import answers
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.trace.cells import SET, UpdateName
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from asyncsim.trace.world import SignalView


class _Handle:
    """A symmetric object that is no array; making it ends in a barrier, and deleting it begins with one."""

    kind = ""

    def __init__(self) -> None:
        pe = present_pe()
        self.key: Hashable = (self.kind, pe.next(self.kind))
        pe.collective(f"new_{self.kind}")
        wanted = Wanted(present_line().assigned() or self.kind, 1, "int64", signal=True)
        self.counters: SignalView = pe.wanted(self.key, wanted)
        self.deleted = ""
        pe.barrier()

    @classmethod
    def cells(cls, what: str, given: Any) -> SignalView:
        """Return the cells of one, one a PE.

        Args:
            what: the call, for the message.
            given: what was given for it.

        Raises:
            MisuseError: it is none, or was deleted.

        """
        if not isinstance(given, cls):
            raise MisuseError(
                f"{what}: {type(given).__name__} is no {cls.kind}; give what shmem.new_{cls.kind} returned"
            )
        if given.deleted:
            raise MisuseError(f"{what}: the {cls.kind} was deleted, at {given.deleted}")
        return given.counters

    @classmethod
    def delete(cls, given: Any) -> None:
        """Delete one, with all PEs."""
        cls.cells(f"del_{cls.kind}", given)
        pe = present_pe()
        pe.collective(f"del_{cls.kind}")
        pe.barrier()
        given.deleted = str(present_line())


class SigAddr(_Handle):
    """A signal object."""

    kind = "signal"


class LockHandle(_Handle):
    """A lock."""

    kind = "lock"


@answers
def set_lock(lock: LockHandle) -> None:
    """Wait until the lock is free, and take it."""
    pe, cell = present_pe(), LockHandle.cells("set_lock", lock).at(0)[0]
    pe.do(pe.rank.wait(cell == 0, then=UpdateName(SET)(1)))
    pe.held.add(lock.key)


@answers
def test_lock(lock: LockHandle) -> bool:
    """Take the lock if it is free; return whether it was not."""
    pe, cell = present_pe(), LockHandle.cells("test_lock", lock).at(0)[0]
    asked = ("test_lock", lock.key)
    taken = bool(pe.looked(asked, None, cell, lambda rank: rank.compare_exchange(cell, 0, 1, order="acquire")))
    if not taken:
        pe.held.add(lock.key)
    return taken


@answers
def clear_lock(lock: LockHandle) -> None:
    """Complete everything, and let the lock go.

    Raises:
        MisuseError: this PE does not hold it.

    """
    pe, cell = present_pe(), LockHandle.cells("clear_lock", lock).at(0)[0]
    if lock.key not in pe.held:
        raise MisuseError("clear_lock: this PE does not hold the lock; set_lock or test_lock takes it")
    pe.held.remove(lock.key)
    pe.quiet()
    pe.do(pe.rank.notify(cell, 0, SET))


class Lock:
    """A lock as an object."""

    def __init__(self) -> None:
        self._lock: LockHandle | None = LockHandle()

    def destroy(self) -> None:
        """Delete it."""
        if self._lock is not None:
            LockHandle.delete(self._lock)
            self._lock = None

    def acquire(self, blocking: bool = True) -> bool:  # noqa: FBT001, FBT002 - as shmem4py has it
        """Take it; without `blocking` only if it is free. Return whether it was taken."""
        return not (set_lock if blocking else test_lock)(self._lock)  # type: ignore[arg-type]

    def release(self) -> None:
        """Let it go."""
        clear_lock(self._lock)  # type: ignore[arg-type]

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


HANDLES = {
    "new_signal": SigAddr, "del_signal": SigAddr.delete, "new_lock": LockHandle, "del_lock": LockHandle.delete,
    "SigAddr": SigAddr, "LockHandle": LockHandle, "Lock": Lock,
}  # fmt: skip
"""By their names in shmem4py."""
