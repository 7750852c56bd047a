"""One rank of MPI: its messages, and the arrays that operations go on with."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from asyncsim.guest.layout import Wanted
from asyncsim.guest.memory import process
from asyncsim.guest.party import Party

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from asyncsim.machine.rank import Rank


class Proc(Party):
    """One rank.

    Attributes:
        windows: those that are not freed.
        pending: the windows and targets that operations are under way to.

    """

    completes = "a flush, or the end of its epoch, completes"

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.windows: list[Any] = []
        self.pending: set[tuple[Hashable, int]] = set()

    def finish(self) -> None:
        """Finalise: complete everything, and wait for all."""
        if self.finalised:
            self.flush()
            return
        self.finalised = True
        for window in self.windows:
            window.check_closed("Finalize")
        self.rank.collective("Finalize")
        self.complete()
        self.sync()

    def complete(self) -> None:
        """Complete everything that this rank has under way."""
        self.do(self.rank.quiet())
        self.deliver(lambda _: True)

    # ---- messages

    def send(self, channel: Hashable, to: int, value: Any) -> Callable[[], None]:
        """Send a value; it is in the mail when this returns.

        Args:
            channel: messages of one are received in the order in which they are sent.
            to: the receiver, by its number in the world.
            value: a copy is sent.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("sent", channel, to))
        self.mail["message", channel, number, self.me, to] = copy.deepcopy(value)
        if to == self.me:
            self.do(self.rank.notify(arrived[self.me], 1, order="stores"))
        else:
            self.do(self.rank.notify(arrived.at(to)[self.me], 1, order="stores"))
        return lambda: None

    def receive(self, channel: Hashable, of: int) -> Callable[[], Any]:
        """Return a function that waits for the next message of a rank, and returns its value.

        Args:
            channel: as for `send`.
            of: the sender, by its number in the world.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("received", channel, of))

        def wait() -> Any:
            self.do(self.rank.wait(arrived[of] >= number + 1))
            return self.mail["message", channel, number, of, self.me]

        return wait


def present_rank() -> Proc:
    """Return the rank that runs."""
    found: Proc = process()
    return found
