"""One rank of MPI: its messages, and the arrays that operations go on with."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.memory import process
from asyncsim.guest.party import Party
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from asyncsim.guest.places import Array, Block
    from asyncsim.machine.rank import Rank


class Proc(Party):
    """One rank.

    Attributes:
        results: arrays that an atomic gives a value when its epoch, or a flush, completes it; each with its window,
            its target and its line.
        windows: those that are not freed.
        pending: the windows and targets that operations are under way to.

    """

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.results: list[tuple[Array, Any, str]] = []
        self.windows: list[Any] = []
        self.pending: set[tuple[Hashable, int]] = set()
        self.finalised = False

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
        done, self.results = self.results, []
        for array, value, _ in done:
            array[...] = value
            block = self.places.find(array)
            if block is not None:
                self.store(block, array)

    def load(self, block: Block, array: Array) -> None:
        """Load, unless it is a result that is not there yet.

        Args:
            block: as for all memory.
            array: likewise.

        Raises:
            MisuseError: it is.

        """
        for other, _, where in self.results:
            if np.may_share_memory(array, other):
                raise MisuseError(
                    f"the result of the operation at {where} is read before a flush, or the end of its epoch"
                )
        super().load(block, array)

    def give(self, into: Array, held: int) -> None:
        """Let an array have a value when what this rank has under way is complete.

        Args:
            into: of one element.
            held: the value.

        """
        self.followed(into)
        self.results.append((into, held, str(present_line())))

    def looked(self, asked: Hashable, cell: Any, make: Callable[[Rank], Any]) -> Any:
        """Do an operation that returns what a cell held, and changes nothing where it returns the same again.

        Args:
            asked: what it is, and of what.
            cell: the cell.
            make: makes the operation.

        """
        return self.tried(asked, lambda: self.do(make(self.rank)), lambda held: self.do(self.rank.wait(cell != held)))

    def followed(self, array: Array) -> Block:
        """Return the block of an array; of a private one, follow it from now on."""
        block = self.places.find(array)
        if block is not None:
            return block
        whole = array
        while isinstance(whole.base, np.ndarray) and whole.base.dtype == array.dtype:
            whole = whole.base
        if not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            whole = array
        flat = whole.reshape(-1, order="A")
        wanted = Wanted(present_line().assigned() or "buffer", flat.size, flat.dtype.name)
        return self.make(("private", self.me, self.next("private")), wanted, flat=flat, private=True)

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
