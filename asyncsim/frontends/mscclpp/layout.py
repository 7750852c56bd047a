"""Where the chunks of a plan lie in the windows of its kernel, and in which pieces its threads move them.

A chunk is a few rows; a row stands for one word of 16 bytes, its two elements for the payloads of two packets. Thread
t of two moves every second row in an operation on words, column t in one on packets. Packets have a window of their
own, and a cell for each piece that is waited for, which has the flag of the launch that wrote it last.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.frontends.mscclpp.plan import INPUT, MEMORY, OUTPUT, PACKETS, PLAIN, PORT, SCRATCH, Operation, flat
from asyncsim.trace.declare import Declaration, Signal, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.frontends.mscclpp.plan import Plan, Span

MOST_ROUNDS = 6
"""So many rounds of a pipeline are run at most: its body is the same in each."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What the executor sets up for a plan and a pair of buffers, once: counters, channels, scratch.

    Args:
        plan: whose.
        suffix: of the names of its windows and signals.
        chunk_bytes: how large a chunk is; None: not said.

    """

    plan: Plan
    suffix: str
    chunk_bytes: int | None

    def place(self, rank: int, buffer: str) -> tuple[str, int]:
        """Return the window of a rank's buffer, and the chunk of it at which the buffer begins.

        Args:
            rank: whose buffer.
            buffer: `INPUT`, `OUTPUT` or `SCRATCH`.

        """
        plan = self.plan
        if buffer == SCRATCH:
            return f"scratch{'' if plan.reuse else self.suffix}", 0
        if not plan.in_place:
            return ("input" if buffer == INPUT else "output") + self.suffix, 0
        chunks = plan.gpus[rank].chunks
        inside = (
            plan.collective == "allgather" and buffer == INPUT,
            plan.collective == "reducescatter" and buffer == OUTPUT,
        )
        return f"data{self.suffix}", rank * chunks[buffer] if any(inside) else 0

    def rounds(self, pipeline: Operation) -> int:
        """Return how many rounds of a pipeline are run."""
        if self.chunk_bytes is None:
            return 2
        return max(1, min(math.ceil(pipeline.chunks * self.chunk_bytes / pipeline.unit), MOST_ROUNDS))


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows and columns that one thread moves at once.

    Args:
        start, stop, step: rows, from the beginning of the span.
        columns: from which to which.

    """

    start: int
    stop: int
    step: int
    columns: tuple[int, int]


class Layout:
    """The windows and signals of a kernel that launches plans, and where everything lies in them.

    Args:
        contexts: of the plans.

    """

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        plans = [context.plan for context in contexts]
        self.lanes = {
            (plan.file, gpu.id, number): 2 if plan.fifos is None and needs_two_threads(listed) else 1
            for plan in plans for gpu in plan.gpus for number, listed in gpu.blocks.items()
        }  # fmt: skip
        operations = [op for plan in plans for op in plan.operations()]
        two = max(self.lanes.values(), default=1) > 1
        self.parts = math.lcm(*(op.slice_of[1] for op in operations if op.is_packets), 1)
        slices = math.lcm(self.parts, *(op.slice_of[1] for op in operations))
        rounds = math.lcm(
            *(context.rounds(op) for context in contexts for op in context.plan.operations() if op.body), 1
        )
        self.rows = slices * rounds * (3 if two else 1)  # odd: a chunk further on, another thread moves the same row
        self.columns = 2 if two and any(op.is_packets for op in operations) else 1

    @cached_property
    def extents(self) -> dict[str, int]:
        """The chunks of each window, by its name."""
        found: dict[str, int] = {}
        for context in self.contexts:
            for gpu in context.plan.gpus:
                for buffer, chunks in gpu.chunks.items():
                    name, start = context.place(gpu.id, buffer)
                    found[name] = max(found.get(name, 0), start + chunks)
        return found

    def declarations(self) -> list[Declaration]:
        """Return the memory of the kernel."""
        made: list[Declaration] = []
        for name, chunks in self.extents.items():
            scratch = name.startswith("scratch")
            rows = chunks * self.rows * (2 if scratch else 1)
            made.append(Window(name, (rows, 2), np.int32))
            if scratch:
                packets = "packets" + name.removeprefix("scratch")
                made.append(Window(packets, (rows, 2), np.int32))
                made.append(Signal(f"flags{name.removeprefix('scratch')}", (chunks * 2 * self.parts * self.columns,)))
        for context in self.contexts:
            gpus = context.plan.gpus
            if (fifos := context.plan.fifos) is not None:
                ends = len(gpus) * fifos.channels
                made.append(Window(f"fifo{context.suffix}", (ends * fifos.slots * fifos.most * self.rows, 2), np.int32))
                made += [Signal(name + context.suffix, (ends,)) for name in ("tail", "head")]
                blocks = max(number for gpu in gpus for number in gpu.blocks) + 1
                made.append(Signal(f"done{context.suffix}", (blocks,)))
                continue
            for kind in (MEMORY, PORT):
                most = max(len(gpu.peers[kind]) for gpu in gpus)
                names = [kind] if kind == MEMORY else [kind, "fifo", "flushed"]
                made += [Signal(name + context.suffix, (most,)) for name in names]
            made.append(Signal(f"semaphore{context.suffix}", (max(len(gpu.semaphores) for gpu in gpus),)))
        return made

    def start(self, context: Context, rank: int, buffer: str, index: int, half: int) -> tuple[str, int]:
        """Return the window in which a chunk lies, and its first row.

        Args:
            context: of the plan.
            rank: whose buffer.
            buffer: `INPUT`, `OUTPUT` or `SCRATCH`.
            index: of the chunk.
            half: of the scratch, 0 or 1.

        """
        name, first = context.place(rank, buffer)
        if buffer == SCRATCH:
            first += half * self.extents[name]
        return name, (first + index) * self.rows

    def pieces(self, op: Operation, lane: int, lanes: int, unit: tuple[int, int] | None) -> Iterator[Piece]:
        """Yield what a thread moves of an operation, from the beginning of each of its spans.

        Args:
            op: moves data.
            lane: the thread: 0 or 1; of one thread that stands for all, 0 of 1.
            lanes: how many threads there are.
            unit: the rows of a round of a pipeline, and the round; None: it stands in none.

        """
        number, parts = op.slice_of
        share = self.rows // parts
        size = (op.sources or op.targets)[0].size
        whole = [(0, size * self.rows)] if parts == 1 else [
            (chunk * self.rows + number * share, chunk * self.rows + (number + 1) * share) for chunk in range(size)
        ]  # fmt: skip
        for start, stop in whole:
            if unit is not None and not op.is_packets:
                start, stop = start + unit[0] * unit[1], min(stop, start + unit[0] * (unit[1] + 1))  # noqa: PLW2901
            if op.is_packets:
                yield Piece(start, stop, 1, (lane, lane + 1) if lanes > 1 else (0, 2))
            elif start + lane < stop:
                yield Piece(start + lane, stop, lanes, (0, 2))

    def flags(self, first: int, piece: Piece) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
        """Yield the packets of a piece: the number of their cell, their rows from the piece's first, their columns.

        Args:
            first: the row of the packet window at which the span begins.
            piece: of an operation on packets.

        """
        size = self.rows // self.parts
        columns = [piece.columns] if self.columns == 1 else [(c, c + 1) for c in range(*piece.columns)]
        for row in range(piece.start, piece.stop, size):
            for low, high in columns:
                cell = (first + row) // size * self.columns + (low if self.columns > 1 else 0)
                yield (
                    cell,
                    row - piece.start,
                    row - piece.start + size,
                    (low - piece.columns[0], high - piece.columns[0]),
                )


def needs_two_threads(listed: Sequence[Operation]) -> bool:
    """Say whether threads of a block may differ in what they have done when they come to the same data or channel.

    Between two operations at which the threads of a block meet: single threads signal or wait while all of them move
    data; some operations are on words, some on packets; or the same data is moved from another beginning.

    Args:
        listed: the operations of the block.

    """
    segment: list[Operation] = []
    for op in flat(listed):
        if op.name in ("nop", "barrier"):
            segment = []
            continue
        if any(_differ(earlier, op) for earlier in segment):
            return True
        segment.append(op)
    return False


def _differ(one: Operation, other: Operation) -> bool:
    if not (one.is_data or other.is_data):
        return False
    if one.is_data != other.is_data:
        return True
    return any(
        (first_writes or second_writes) and _overlap(first, first_kind, second, second_kind)
        and (one.is_packets != other.is_packets or first.index != second.index or one.slice_of != other.slice_of)
        for first, first_kind, first_writes in _accesses(one) for second, second_kind, second_writes in _accesses(other)
    )  # fmt: skip


def _accesses(op: Operation) -> Iterator[tuple[Span, str, bool]]:
    yield from ((span, kind, False) for span, kind in zip(op.sources, op.source_kinds(), strict=True))
    yield from ((span, kind, True) for span, kind in zip(op.targets, op.target_kinds(), strict=True))


def _overlap(first: Span, first_kind: str, second: Span, second_kind: str) -> bool:
    """Say whether two spans may share memory; input and output may be the same."""
    if first_kind != second_kind or (first.buffer == SCRATCH) != (second.buffer == SCRATCH):
        return False
    if not set(first.group or (first.rank,)) & set(second.group or (second.rank,)):
        return False
    apart = first.index + first.size <= second.index or second.index + second.size <= first.index
    return first.buffer != second.buffer or not apart


def mixed_scratch(plan: Plan) -> tuple[Operation, Operation] | None:
    """Return two operations of which one has plain data where the other has packets, whose places are doubled."""
    held: dict[str, list[tuple[int, int, int, Operation]]] = {PLAIN: [], PACKETS: []}
    for op in plan.operations(pipelines=False):
        for span, kind, _ in _accesses(op):
            if span.buffer == SCRATCH:
                double = 2 if kind == PACKETS else 1
                for rank in span.group or (span.rank,):
                    held[kind].append((rank, span.index * double, (span.index + span.size) * double, op))
    for rank, low, high, op in held[PLAIN]:
        for other, start, stop, second in held[PACKETS]:
            if rank == other and low < stop and start < high:
                return op, second
    return None
