"""One rank of MPI: its messages, and the operations on windows that it has under way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.guest.domain import Domain
from asyncsim.guest.host import blocking
from asyncsim.guest.line import present_line
from asyncsim.guest.memory import process
from asyncsim.guest.party import Party

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from asyncsim.guest.places import Block, Run
    from asyncsim.machine.rank import Rank

To = tuple["Hashable", int]
"""A window, by its key, and a target."""
APART, ORDERED, LOCAL = "apart", "ordered", "local"
"""What is learnt of a script: operations to one target are completed apart from others; accumulates of one rank on one
target have to be in order; operations are completed at their origin alone."""


class Proc(Party):
    """One rank.

    Attributes:
        windows: those that are not freed.
        pending: the windows and targets that operations are under way to, and the last operator of accumulates.
        stored: where it last stored to a window in place, by the window's key.
        shared: the blocks that peers load and store, too.

    """

    completes = "a flush, or the end of its epoch, completes"

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.windows: list[Any] = []
        self.pending: dict[To, str] = {}
        self.stored: dict[Hashable, str] = {}
        self.shared: set[Block] = set()
        self._domains: dict[tuple[To, str], Domain] = {}

    def finish(self) -> None:
        """Finalise: complete everything, and wait for all."""
        if self.finalised:
            self.flush()
            return
        self.finalised = True
        for window in self.windows:
            window.check_closed("Finalize")
        self.rank.collective("Finalize")
        self.complete(self.pending)
        for domain in self._domains.values():
            domain.end(self)
        self.do(self.rank.quiet())
        self.sync()

    # ---- loads and stores

    def note_store(self, block: Block, runs: Sequence[Run]) -> None:
        """Store.

        Args:
            block: as for all memory.
            runs: likewise.

        """
        super().note_store(block, runs)
        self.stored[block.key] = str(present_line())

    def flush(self) -> None:
        """Tell the machine what was stored; stores to what is shared are seen by peers at once."""
        shared = any(block in self.shared for block in self._stored)
        super().flush()
        if shared:
            blocking(self.rank.quiet())

    # ---- operations under way

    def domain(self, to: To, kind: str = "") -> Domain | None:
        """Return the domain of operations to a target; None: the rank's own.

        Args:
            to: the window and the target.
            kind: `ORDERED`: of accumulates that have to be in order.

        """
        marks = self.layout.marks
        if APART not in marks and (ORDERED not in marks or not kind):
            return None
        key = (to, kind if ORDERED in marks else "")
        if key not in self._domains:
            self._domains[key] = Domain(self)
        return self._domains[key]

    def complete(self, to: Iterable[To], *, local: bool = False) -> None:
        """Complete what is under way to some targets.

        Args:
            to: the windows and targets.
            local: at the origin alone.

        """
        these = [each for each in self.pending if each in set(to)]
        self.join(lambda of: of in these)
        if not local and these:
            if len(these) < len(self.pending):
                self.marked(APART)
            if APART not in self.layout.marks:
                self.do(self.rank.quiet())
            for (target, _), domain in self._domains.items():
                if target in these:
                    domain.run(self, lambda rank: rank.quiet())
            for each in these:
                del self.pending[each]
        self.deliver(lambda of: of[0] in these)


def present_rank() -> Proc:
    """Return the rank that runs."""
    found: Proc = process()
    return found
