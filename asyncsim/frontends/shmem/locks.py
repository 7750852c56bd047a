"""Locks, and signal objects."""

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
    """A symmetric object that is no array.

    Args:
        kind: "lock" or "signal".

    """

    def __init__(self, kind: str) -> None:
        pe = present_pe()
        self.kind = kind
        self.key: Hashable = (kind, pe.next(kind))
        pe.collective(f"new_{kind}")
        self._cells: SignalView = pe.wanted(
            self.key, Wanted(present_line().assigned() or kind, 1, "int64", signal=True)
        )
        self._freed = ""
        pe.barrier()

    def cells(self, what: str) -> SignalView:
        """Return its cells, one a PE.

        Args:
            what: the call, for the message.

        Raises:
            MisuseError: it was deleted.

        """
        if self._freed:
            raise MisuseError(f"{what}: the {self.kind} was deleted, at {self._freed}")
        return self._cells

    def delete(self) -> None:
        """Delete it, with all PEs; begins with a barrier."""
        self.cells(f"del_{self.kind}")
        pe = present_pe()
        pe.collective(f"del_{self.kind}")
        pe.barrier()
        self._freed = str(present_line())


class SigAddr(_Handle):
    """A signal object."""


class LockHandle(_Handle):
    """A lock."""


@answers
def new_signal() -> SigAddr:
    """Make a signal; ends in a barrier."""
    return SigAddr("signal")


@answers
def del_signal(signal: SigAddr) -> None:
    """Delete a signal."""
    signal.delete()


@answers
def new_lock() -> LockHandle:
    """Make a lock; ends in a barrier."""
    return LockHandle("lock")


@answers
def del_lock(lock: LockHandle) -> None:
    """Delete a lock."""
    lock.delete()


def _home(what: str, lock: Any) -> Any:
    """Return the cell of a lock: that of PE 0."""
    if not isinstance(lock, LockHandle):
        raise MisuseError(f"{what}: {type(lock).__name__} is no lock; give what shmem.new_lock returned")
    return lock.cells(what).at(0)[0]


@answers
def set_lock(lock: LockHandle) -> None:
    """Wait until the lock is free, and take it."""
    pe, cell = present_pe(), _home("set_lock", lock)
    pe.do(pe.rank.wait(cell == 0, then=UpdateName(SET)(1)))
    pe.held[lock.key] = str(present_line())


@answers
def test_lock(lock: LockHandle) -> bool:
    """Take the lock if it is free; return whether it was not."""
    pe, cell = present_pe(), _home("test_lock", lock)
    taken: int = pe.looked(
        ("test_lock", lock.key), None, cell, lambda rank: rank.compare_exchange(cell, 0, 1, order="acquire")
    )
    if not taken:
        pe.held[lock.key] = str(present_line())
    return bool(taken)


@answers
def clear_lock(lock: LockHandle) -> None:
    """Complete everything, and let the lock go.

    Raises:
        MisuseError: this PE does not hold it.

    """
    pe, cell = present_pe(), _home("clear_lock", lock)
    if pe.held.pop(lock.key, None) is None:
        raise MisuseError("clear_lock: this PE does not hold the lock; set_lock or test_lock takes it")
    pe.quiet()
    pe.do(pe.rank.notify(cell, 0, SET))


class Lock:
    """A lock as an object."""

    def __init__(self) -> None:
        self._lock: LockHandle | None = new_lock()

    def destroy(self) -> None:
        """Delete it."""
        lock, self._lock = self._lock, None
        if lock is not None:
            del_lock(lock)

    def _alive(self) -> LockHandle:
        if self._lock is None:
            raise MisuseError("this lock was destroyed")
        return self._lock

    def acquire(self, blocking: bool = True) -> bool:  # noqa: FBT001, FBT002 - as shmem4py has it
        """Take it; without `blocking` only if it is free. Return whether it was taken."""
        if blocking:
            set_lock(self._alive())
            return True
        return not test_lock(self._alive())

    def release(self) -> None:
        """Let it go."""
        clear_lock(self._alive())

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
