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

from asyncsim.frontends.mscclpp.plan import INPUT, MEMORY, OUTPUT, PACKETS, PORT, SCRATCH, Operation, flat
from asyncsim.trace.declare import Declaration, Signal, Window

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.frontends.mscclpp.plan import Plan, Span

MOST_ROUNDS = 6
"""So many rounds of a pipeline are run at most: its body is the same in each."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What the executor sets up once for a plan and a pair of buffers: counters, channels, scratch.

    Args:
        plan: whose.
        suffix: of the names of its windows and signals.
        chunk_bytes: how large a chunk is; None: not said.

    """

    plan: Plan
    suffix: str
    chunk_bytes: int | None

    def place(self, rank: int, buffer: str) -> tuple[str, int]:
        """Return the window of a buffer, and the chunk of it at which the buffer begins.

        Args:
            rank: whose.
            buffer: which.

        """
        if buffer == SCRATCH:
            return f"scratch{'' if self.plan.reuse else self.suffix}", 0
        if not self.plan.in_place:
            return ("input" if buffer == INPUT else "output") + self.suffix, 0
        inside = (self.plan.collective, buffer) in {("allgather", INPUT), ("reducescatter", OUTPUT)}
        return f"data{self.suffix}", rank * self.plan.gpus[rank].chunks[buffer] if inside else 0

    def rounds(self, pipeline: Operation) -> int:
        """Return how many rounds of a pipeline are run."""
        if self.chunk_bytes is None:
            return 2
        return max(1, min(-(-pipeline.chunks * self.chunk_bytes // pipeline.unit), MOST_ROUNDS))


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a span, counted from its beginning, and columns, that one thread moves at once."""

    start: int
    stop: int
    step: int
    columns: tuple[int, int]


class Layout:
    """The windows and signals of a kernel that launches plans, and where everything lies in them."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        plans = [context.plan for context in contexts]
        self.lanes = {
            (plan.file, gpu.id, number): 2 if plan.fifos is None and needs_two_threads(listed) else 1
            for plan in plans for gpu in plan.gpus for number, listed in gpu.blocks.items()
        }  # fmt: skip
        operations = [op for plan in plans if plan.fifos is None for op in plan.operations(pipelines=True)]
        two = max(self.lanes.values(), default=1) > 1
        self.parts = math.lcm(*(op.slice_of[1] for op in operations if op.is_packets), 1)
        slices = math.lcm(self.parts, *(op.slice_of[1] for op in operations))
        loops = ((context, op) for context in contexts for op in context.plan.operations(pipelines=True) if op.body)
        rounds = math.lcm(*(context.rounds(op) for context, op in loops), 1)
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
                made.append(Window(name.replace("scratch", "packets"), (rows, 2), np.int32))
                made.append(Signal(name.replace("scratch", "flags"), (chunks * 2 * self.parts * self.columns,)))
        for context in self.contexts:
            gpus, fifos = context.plan.gpus, context.plan.fifos
            if fifos is not None:
                ends = len(gpus) * fifos.channels
                made.append(Window(f"fifo{context.suffix}", (ends * fifos.slots * fifos.most * self.rows, 2), np.int32))
                sizes = {
                    "tail": ends,
                    "head": ends,
                    "done": max((n for gpu in gpus for n in gpu.blocks), default=0) + 1,
                }
            else:
                memory, port = (max(len(gpu.peers[kind]) for gpu in gpus) for kind in (MEMORY, PORT))
                sizes = {MEMORY: memory, **dict.fromkeys((PORT, "fifo", "flushed"), port)}
                sizes["semaphore"] = max(len(gpu.semaphores) for gpu in gpus)
            made += [Signal(name + context.suffix, (size,)) for name, size in sizes.items()]
        return made

    def start(self, context: Context, rank: int, buffer: str, index: int, half: int) -> tuple[str, int]:
        """Return the window in which a chunk lies, and its first row.

        Args:
            context: of the plan.
            rank: whose buffer.
            buffer: which.
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
            lane: the thread.
            lanes: of so many.
            unit: the rows of a round of a pipeline, and the round; None: it stands in none.

        """
        number, parts = op.slice_of
        share, size = self.rows // parts, op.targets[0].size
        starts = [chunk * self.rows + number * share for chunk in range(size)]
        for start, stop in [(0, size * self.rows)] if parts == 1 else [(start, start + share) for start in starts]:
            if op.is_packets:
                yield Piece(start, stop, 1, (lane, lane + 1) if lanes > 1 else (0, 2))
                continue
            low, high = (start, stop) if unit is None else (start + unit[0] * unit[1], start + unit[0] * (unit[1] + 1))
            if low + lane < min(stop, high):
                yield Piece(low + lane, min(stop, high), lanes, (0, 2))

    def flags(self, first: int, piece: Piece) -> Iterator[tuple[int, int, int, tuple[int, int]]]:
        """Yield the packets of a piece: the number of their cell, their rows from the piece's first, their columns.

        Args:
            first: the row of the packet window at which the span begins.
            piece: of an operation on packets.

        """
        size, left = self.rows // self.parts, piece.columns[0]
        for row in range(piece.start, piece.stop, size):
            for low, high in [piece.columns] if self.columns == 1 else [(c, c + 1) for c in range(*piece.columns)]:
                cell = (first + row) // size * self.columns + (low if self.columns > 1 else 0)
                yield cell, row - piece.start, row - piece.start + size, (low - left, high - left)


def needs_two_threads(listed: Sequence[Operation]) -> bool:
    """Say whether threads of a block may differ in what they have done when they come to the same data or channel.

    Between two operations at which the threads of a block meet: single threads signal or wait while all of them move
    data; some operations are on words, some on packets; or the same data is moved from another beginning.
    """
    segment: list[Operation] = []
    for op in flat(listed):
        if op.row.does == "m":
            segment = []
            continue
        if any(_differ(earlier, op) for earlier in segment):
            return True
        segment.append(op)
    return False


def _differ(one: Operation, other: Operation) -> bool:
    if not (one.is_data and other.is_data):
        return one.is_data != other.is_data
    return any(
        (first_writes or second_writes) and _overlap(first, first_kind, second, second_kind)
        and (one.is_packets != other.is_packets or first.index != second.index or one.slice_of != other.slice_of)
        for first, first_kind, first_writes in one.accesses() for second, second_kind, second_writes in other.accesses()
    )  # fmt: skip


def _overlap(first: Span, first_kind: str, second: Span, second_kind: str) -> bool:
    """Say whether two spans may share memory; input and output may be the same."""
    if first_kind != second_kind or (first.buffer == SCRATCH) != (second.buffer == SCRATCH):
        return False
    if not set(first.ranks) & set(second.ranks):
        return False
    apart = first.index + first.size <= second.index or second.index + second.size <= first.index
    return first.buffer != second.buffer or not apart


def mixed_scratch(plan: Plan) -> tuple[Operation, Operation] | None:
    """Return two operations of which one has plain data where the other has packets, whose places are doubled."""
    held: dict[bool, list[tuple[int, int, int, Operation]]] = {False: [], True: []}
    for op in plan.operations():
        for span, kind, _ in op.accesses():
            double = 1 + (kind == PACKETS)
            for rank in span.ranks if span.buffer == SCRATCH else ():
                held[kind == PACKETS].append((rank, span.index * double, (span.index + span.size) * double, op))
    pairs = ((one, other) for one in held[False] for other in held[True])
    return next((
        (op, second) for (rank, low, high, op), (other, start, stop, second) in pairs
        if rank == other and low < stop and start < high
    ), None)  # fmt: skip
