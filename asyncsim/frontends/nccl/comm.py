"""The communicator: a rank, its workspace, and how each collective moves one piece through it.

Every piece is a sequence that may follow any other on the same workspace: its last barrier comes after the last
read of what peers may overwrite next. So no finding in a kernel that uses them is theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.collectives.fold import fold
from asyncsim.frontends.nccl.kinds import checked_type, combined, finished, prepared
from asyncsim.machine.rank import Rank
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.world import SignalView, WindowView

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from asyncsim.collectives.reduce import Tile
    from asyncsim.frontends.nccl.buffers import Buffer
    from asyncsim.frontends.nccl.kinds import Operator, PreMulSum, ncclDataType_t
    from asyncsim.trace.declare import Declaration, Group


def workspace(
    *datatypes: ncclDataType_t, count: int = 64, name: str = "nccl", group: Group | None = None
) -> list[Declaration]:
    """Declare the memory of a communicator.

    Args:
        datatypes: those that it will be used with; one window each, of shape (P, count).
        count: elements in a row of a window; a larger call is made in pieces.
        name: of the communicator; windows are ``nccl_float32`` and the like, the signal ``nccl_signal``.
        group: whose it is; None: the world's.

    Returns:
        What a kernel declares as its memory, or as part of it.

    Raises:
        MisuseError: there is no data type, or no room for an element.

    """
    if not datatypes:
        raise MisuseError("workspace() has no windows; name the data types: workspace(ncclFloat32)")
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise MisuseError(f"workspace(count={count!r}); a row has at least one element")
    dtypes = [checked_type("workspace", datatype).dtype for datatype in datatypes]
    windows = [Window(f"{name}_{dtype.name}", ("P", count), dtype, group=group) for dtype in dict.fromkeys(dtypes)]
    return [*windows, Signal(f"{name}_signal", ("P", 1), self_cleaning=True, group=group)]


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call that was checked, and not yet made.

    Args:
        name: NCCL's.
        facts: what must be equal on all ranks.
        reads: the buffer that it reads here; None on a rank whose buffer is not used.
        writes: the buffer that it writes.
        program: makes it.

    """

    name: str
    facts: dict[str, Any]
    reads: Buffer | None
    writes: Buffer
    program: Callable[[], Coroutine[Any, Any, None]]


class Comm:
    """A communicator. Made anew in every call of a kernel, of the same memory."""

    __slots__ = ("depth", "operators", "queue", "rank", "signal", "windows")

    def __init__(self, rank: Rank, *memory: Any) -> None:  # noqa: ANN401 - the views of a workspace
        """Let a rank reach its peers.

        Args:
            rank: the kernel's; for a workspace of a group, ``rank.within(group)``.
            memory: the windows and the signal that `workspace` declared, as the kernel gets them.

        Raises:
            MisuseError: they are no workspace.

        """
        if not isinstance(rank, Rank):
            raise MisuseError(f"Comm({type(rank).__name__}, ...); give the kernel's rank first, then its memory")
        signals = [view for view in memory if isinstance(view, SignalView)]
        windows = [view for view in memory if isinstance(view, WindowView)]
        if len(signals) != 1 or not windows or len(windows) + 1 != len(memory):
            raise MisuseError(f"rank {rank.id}: Comm takes the memory that workspace() declared: windows and a signal")
        self.rank = rank
        self.signal = signals[0]
        self.windows = {view.dtype: view for view in windows}
        self.operators: list[PreMulSum] = []
        self.depth = 0
        self.queue: list[Call] = []

    def window(self, place: str, datatype: ncclDataType_t) -> WindowView:
        """Return the window for a data type, or say that it was not declared.

        Args:
            place: the rank and the call, for the message.
            datatype: of the call.

        Raises:
            MisuseError: it was not.

        """
        found = self.windows.get(datatype.dtype)
        if found is None:
            raise MisuseError(
                f"{place}: the workspace has no window of {datatype.dtype}; declare it: workspace({datatype.name})"
            )
        return found

    # One collective each. Arrays are flat views of the kernel's buffers.

    async def reduce_scatter(self, window: WindowView, send: Tile, recv: Tile, op: Operator) -> None:
        """Reduce element i of every rank's row r into element i of rank r's `recv`; `send` has P rows.

        Args:
            window: of shape (P, count), of the buffers' dtype.
            send: flat: P rows, each as long as `recv`.
            recv: flat; may be a row of `send`.
            op: is applied in the dtype of the buffers.

        """
        rank = self.rank
        rows = send.reshape(rank.size, -1)
        for piece in _pieces(recv.size, window.shape[1]):
            staged = np.ascontiguousarray(rows[:, piece])
            room = slice(staged.shape[1])
            with rank.phase("stage"):
                await rank.store(window[:, room], prepared(staged, op, rank.size))
            await self._meet("ready", 1)
            with rank.phase("reduce"):
                acc = await fold(rank, window, (rank.id, room), combined(op))
            await self._meet("read", 2)
            await self._settle(2)
            recv[piece] = finished(acc, op, rank.size)

    async def all_reduce(self, window: WindowView, send: Tile, recv: Tile, op: Operator) -> None:
        """Reduce element i of every rank's `send` into element i of everybody's `recv`; the same bits everywhere.

        Args:
            window: of shape (P, count), of the buffers' dtype.
            send: flat.
            recv: flat, as long; may be `send` itself.
            op: is applied in the dtype of the buffers.

        """
        rank = self.rank
        for piece in _pieces(recv.size, rank.size * window.shape[1]):
            staged = prepared(send[piece], op, rank.size)
            chunks = _chunks(staged.size, rank.size)
            with rank.phase("stage"):
                for owner, chunk in enumerate(chunks):
                    await rank.store(window[owner, : _length(chunk)], staged[chunk])
            await self._meet("ready", 1)
            room = slice(_length(chunks[rank.id]))
            with rank.phase("reduce"):
                acc = await fold(rank, window, (rank.id, room), combined(op))
                await rank.store(window[rank.id, room], finished(acc, op, rank.size))  # only its owner reads this row
            await self._meet("reduced", 2)
            with rank.phase("gather"):
                parts = [await rank.load(window.at(peer)[peer, : _length(at)]) for peer, at in enumerate(chunks)]
            await self._meet("read", 3)
            await self._settle(3)
            recv[piece] = np.concatenate(parts)

    async def all_gather(self, window: WindowView, send: Tile, recv: Tile) -> None:
        """Copy every rank's `send` into row r of everybody's `recv`, which has P rows.

        Args:
            window: of shape (P, count), of the buffers' dtype.
            send: flat; may be a row of `recv`.
            recv: flat: P rows, each as long as `send`.

        """
        rank = self.rank
        rows = recv.reshape(rank.size, -1)
        for piece in _pieces(send.size, window.shape[1]):
            staged = send[piece].copy()
            with rank.phase("stage"):
                await rank.store(window[rank.id, : staged.size], staged)
            await self._meet("ready", 1)
            with rank.phase("gather"):
                every = [await rank.load(window.at(peer)[peer, : staged.size]) for peer in range(rank.size)]
            await self._meet("read", 2)
            await self._settle(2)
            rows[:, piece] = np.stack(every)

    async def broadcast(self, window: WindowView, send: Tile, recv: Tile, root: int) -> None:
        """Copy the root's `send` into everybody's `recv`.

        Args:
            window: of shape (P, count), of the buffers' dtype.
            send: flat; only the root's is read.
            recv: flat, as long.
            root: the rank that is read.

        """
        rank = self.rank
        for piece in _pieces(recv.size, window.shape[1]):
            size = _length(piece)
            if rank.id == root:
                with rank.phase("stage"):
                    await rank.store(window[root, :size], send[piece].copy())
            await self._meet("ready", 1)
            with rank.phase("get"):
                tile = await rank.load(window.at(root)[root, :size])
            await self._meet("read", 2)
            await self._settle(2)
            recv[piece] = tile

    async def _meet(self, phase: str, generation: int) -> None:
        with self.rank.phase(phase):
            await barrier(self.rank, self.signal, generation=generation)

    async def _settle(self, meetings: int) -> None:
        with self.rank.phase("epilogue"):
            await settle(self.rank, self.signal, credits=meetings)


def ncclCommCount(comm: Comm) -> int:  # noqa: N802 - NCCL's name
    """Return the number of ranks."""
    return comm.rank.size


def ncclCommUserRank(comm: Comm) -> int:  # noqa: N802 - NCCL's name
    """Return the number of this rank in the communicator."""
    return comm.rank.id


def _pieces(count: int, room: int) -> Iterator[slice]:
    """Cut `count` elements into pieces of at most `room`; none if there are none."""
    return (slice(start, min(start + room, count)) for start in range(0, count, room))


def _chunks(count: int, ranks: int) -> list[slice]:
    """Cut `count` elements into one chunk a rank, equally long but for the last ones."""
    length = -(-count // ranks)
    return [slice(min(c * length, count), min((c + 1) * length, count)) for c in range(ranks)]


def _length(part: slice) -> int:
    return int(part.stop - part.start)
