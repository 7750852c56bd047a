"""One rank of MPI: its messages, and the operations on windows that it has under way."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from asyncsim.guest.domain import Domain
from asyncsim.guest.host import blocking, hosted
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import at_line, present_line
from asyncsim.guest.memory import process
from asyncsim.guest.party import Party

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from asyncsim.guest.domain import Make
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
        pending: the windows and targets that operations are under way to.
        stored: where it last stored to a window in place, by the window's key.
        shared: the blocks that peers load and store, too.

    """

    completes = "a flush, or the end of its epoch, completes"

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.windows: list[Any] = []
        self.pending: dict[To, None] = {}
        self.stored: dict[Hashable, str] = {}
        self.shared: set[Block] = set()
        self._domains: dict[tuple[To, str], Domain] = {}
        self._local: list[tuple[To, Any]] = []

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

    def beside(self, to: To, make: Make) -> Callable[[], None]:
        """Do an operation that goes on beside what follows; return what waits for it.

        Args:
            to: with what it is complete at the latest.
            make: makes it.

        """
        line = present_line()

        async def going_on(rank: Rank) -> None:
            await hosted(lambda: at_line(line)(blocking, make(rank)))

        entry = (to, self.do(self.rank.start(going_on)))
        self._local.append(entry)

        def wait() -> None:
            if entry in self._local:
                self._local.remove(entry)
                self.do(self.rank.join(entry[1]))

        return wait

    def complete(self, to: Iterable[To], *, local: bool = False) -> None:
        """Complete what is under way to some targets.

        Args:
            to: the windows and targets.
            local: at the origin alone.

        """
        these = [each for each in self.pending if each in set(to)]
        for entry in [entry for entry in self._local if entry[0] in these]:
            self._local.remove(entry)
            self.do(self.rank.join(entry[1]))
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

    # ---- messages

    def send(self, channel: Hashable, to: int, value: Any) -> None:
        """Send a value; it is in the mail when this returns.

        Args:
            channel: messages of one are received in the order in which they are sent.
            to: the receiver, by its number in the world.
            value: a copy is sent.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("sent", channel, to))
        self.mail["message", channel, number, self.me, to] = copy.deepcopy(value)
        cell = arrived[self.me] if to == self.me else arrived.at(to)[self.me]
        self.do(self.rank.notify(cell, 1, order="stores"))

    def receive(self, channel: Hashable, of: int) -> tuple[Callable[[], Any], Any]:
        """Return a function that waits for the next message of a rank and returns its value, and the condition.

        Args:
            channel: as for `send`.
            of: the sender, by its number in the world.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("received", channel, of))

        def wait() -> Any:
            self.do(self.rank.wait(arrived[of] >= number + 1))
            return self.mail["message", channel, number, of, self.me]

        return wait, arrived[of] >= number + 1


def present_rank() -> Proc:
    """Return the rank that runs."""
    found: Proc = process()
    return found
