"""One PE: what all calls of OpenSHMEM ask of it, and how PEs meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import present_line
from asyncsim.guest.memory import process
from asyncsim.guest.party import WORLD, Party
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

    from asyncsim.guest.places import Array, Block
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.region import Region


class Context(Protocol):
    """What operations are issued on."""

    is_default: bool

    def run(self, make: Callable[[Rank], Coroutine[Any, Any, Any]]) -> Any:
        """Do an operation on it."""

    def destroy(self) -> None:
        """Complete what was issued on it, and end it."""


class Pe(Party):
    """One PE.

    Attributes:
        held: the locks that it holds, each with where it took it.
        contexts: those that are open.
        waiting: arrays that a non-blocking fetch gives a value after the next quiet, by context.

    """

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:
        super().__init__(rank, *given, mail=mail)
        self.held: dict[Hashable, str] = {}
        self.contexts: list[Context] = []
        self.waiting: list[tuple[Context | None, Array, Any, str]] = []
        self.finalised = False

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

    # ---- what is given

    def symmetric(self, what: str, name: str, array: Any) -> Block:
        """Return the block that a symmetric array lies in.

        Args:
            what: the call, for the message.
            name: of the argument.
            array: what was given for it.

        Raises:
            MisuseError: it is no symmetric array, or was freed.

        """
        if not isinstance(array, np.ndarray):
            raise MisuseError(f"{what}: {name} is {type(array).__name__}; give a symmetric array")
        block = self.places.find(array)
        if block is None or block.private:
            raise MisuseError(
                f"{what}: {name} is not symmetric; it must lie in what shmem.zeros, empty, full or array gave"
            )
        self.check_alive(block)
        return block

    def pe(self, what: str, pe: Any) -> int:
        """Return the number of a PE.

        Args:
            what: the call, for the message.
            pe: what was given for it.

        Raises:
            MisuseError: there is none of that number.

        """
        if isinstance(pe, bool) or not hasattr(pe, "__index__") or not 0 <= int(pe) < self.size:
            raise MisuseError(f"{what}: there is no PE {pe!r}; PEs are 0 to {self.size - 1}")
        return int(pe)

    # ---- operations

    def issue(self, ctx: Context | None, make: Callable[[Rank], Coroutine[Any, Any, Any]]) -> Any:
        """Do an operation on a context.

        Args:
            ctx: the context; None: the default one.
            make: makes it, of the actor that does it.

        """
        if ctx is None or ctx.is_default:
            return self.do(make(self.rank))
        return ctx.run(make)

    def looked(self, asked: Hashable, ctx: Context | None, cell: Any, make: Callable[[Rank], Any]) -> Any:
        """Do an operation that returns what a cell held, and changes nothing where it returns the same again.

        Args:
            asked: what it is, and of what.
            ctx: as for `issue`.
            cell: the cell.
            make: as for `issue`.

        """
        return self.tried(
            asked, lambda: self.issue(ctx, make), lambda held: self.issue(ctx, lambda rank: rank.wait(cell != held))
        )

    def quiet(self, ctx: Context | None = None) -> None:
        """Complete what was issued on a context."""
        self.issue(ctx, lambda rank: rank.quiet())
        self.fetched(ctx)

    def fetched(self, ctx: Context | None) -> None:
        """Let the arrays of non-blocking fetches on a context have their values."""
        done = [each for each in self.waiting if each[0] is ctx]
        self.waiting = [each for each in self.waiting if each[0] is not ctx]
        for _, array, value, _ in done:
            block = self.places.find(array)
            array[...] = value
            if block is not None:
                self.store(block, array)

    def load(self, block: Block, array: Array) -> None:
        """Load, unless it is the result of a fetch that no quiet has completed.

        Args:
            block: as for all memory.
            array: likewise.

        Raises:
            MisuseError: it is.

        """
        for _, other, _, where in self.waiting:
            if np.may_share_memory(array, other):
                raise MisuseError(
                    f"the result of the non-blocking fetch at {where} is read before a quiet completes it"
                )
        super().load(block, array)

    # ---- meeting

    def collective(self, name: str, team: Hashable = WORLD, **facts: Any) -> None:
        """Say that the PE takes part in a collective of all PEs.

        Args:
            name: of it.
            team: of whom; one of less than all is not compared.
            facts: what must be the same for all.

        """
        if team == WORLD:
            self.rank.collective(name, **facts)

    def barrier(self) -> None:
        """Complete everything on the default context, and meet."""
        self.quiet()
        self.sync()

    def make_symmetric(self, count: int, dtype: np.dtype[Any], *, cleared: bool) -> Block:
        """Allocate on all PEs, and wait for all.

        Args:
            count: how many elements.
            dtype: of them.
            cleared: they may be read before anybody wrote them.

        """
        line = present_line()
        key = ("symmetric", self.next("symmetric"))
        self.collective("allocation", nbytes=count * dtype.itemsize)
        wanted = Wanted(line.assigned() or "array", count, dtype.name, initialised=cleared)
        block = self.make(key, wanted)
        self.barrier()
        return block

    def elements(self, block: Block, start: int, count: int, owner: int, step: int = 1) -> Region:
        """Return elements of a block, at any PE.

        Args:
            block: the own one.
            start: the first of them.
            count: how many.
            owner: the PE.
            step: from one to the next.

        """
        return self.region(block, (start, count, step), owner)

    def element(self, what: str, name: str, array: Any) -> tuple[Block, int]:
        """Return the block of a symmetric array of one element, and which element that is.

        Args:
            what: the call, for the message.
            name: of the argument.
            array: what was given for it.

        Raises:
            MisuseError: it is not symmetric, or has more than one element.

        """
        block = self.symmetric(what, name, array)
        if array.size != 1:
            raise MisuseError(f"{what}: {name} has {array.size} elements; give one: {name}[0:1]")
        return block, block.offset(array)

    def cell(self, block: Block, offset: int, pe: int) -> Any:
        """Return an element as a cell; one of a window of floats is its bits.

        Args:
            block: the own one.
            offset: which element.
            pe: whose it is.

        """
        dtype = block.flat.dtype
        if dtype.kind not in "iu":
            dtype = np.dtype(f"i{dtype.itemsize}")
        return self.word(block, offset * dtype.itemsize, dtype, pe)


def present_pe() -> Pe:
    """Return the PE that runs."""
    found: Pe = process()
    return found
