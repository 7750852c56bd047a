"""One PE: what all calls of OpenSHMEM ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.guest.heap import Heap
from asyncsim.guest.memory import process

if TYPE_CHECKING:
    from collections.abc import Hashable

    from asyncsim.guest.domain import Domain
    from asyncsim.machine.rank import Rank


class Pe(Heap):
    """One PE.

    Attributes:
        held: the locks that it holds.
        contexts: those that are open.

    """

    allocated = "what shmem.zeros, empty, full or array gave"

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.held: set[Hashable] = set()
        self.contexts: list[Any] = []

    def finish(self) -> None:
        """Finalise, as every script does at its end: complete everything, and wait for all."""
        if self.finalised:
            self.flush()
            return
        self.finalised = True
        for ctx in list(self.contexts):
            ctx.destroy()
        self.collective("finalize")
        self.barrier()

    def quiet(self, domain: Domain | None = None) -> None:
        """Complete what was issued on a context: in its domain."""
        self.issue(domain, lambda rank: rank.quiet())
        self.deliver(lambda of: of is domain)

    def barrier(self) -> None:
        """Complete everything on the default context, and meet."""
        self.quiet()
        self.sync()


def present_pe() -> Pe:
    """Return the PE that runs."""
    found: Pe = process()
    return found
