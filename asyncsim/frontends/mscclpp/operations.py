"""What each operation of a plan means on a rank: the steps that a thread takes, as the executor has them.

Each is a generator of operations of a `Rank`, which is given what they return. Whoever drives it stands at the
operation's place in the plan.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mscclpp.pairing import EXECUTED, MEANT, as_executed
from asyncsim.frontends.mscclpp.plan import MOVES, PACKETS, PORT, REDUCTIONS, SEMAPHORES, Operation, Span
from asyncsim.trace.cells import MAX, UpdateName

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Mapping

    from asyncsim.frontends.mscclpp.layout import Context, Layout, Piece
    from asyncsim.frontends.mscclpp.pairing import Pairing
    from asyncsim.machine.rank import Rank
    from asyncsim.machine.stream import StreamBarrier

    Steps = Generator[Coroutine[Any, Any, Any], Any, None]

_FOLD = {"sum": np.add, "min": np.minimum, "max": np.maximum}


@dataclass(slots=True)
class Entry:
    """What a thread pushes into the FIFO of its rank for the proxy.

    Args:
        kind: "put", "signal" or "flush".
        channel: the port channel of the rank.
        op: whose entry it is.
        launch: of which launch.
        part: which source and target of the operation.
        unit: in a pipeline: as of the thread.

    """

    kind: str
    channel: int
    op: Operation
    launch: Launch
    part: int = 0
    unit: tuple[int, int] | None = None


@dataclass(slots=True)
class State:
    """What lives on from launch to launch on one rank: what is expected of counters, and the FIFO.

    Args:
        memory: the views of windows and signals, by name.
        expected: how often a counter was waited for, by its name and number.
        queues: the entries of each port channel, by its name and number.

    """

    memory: Mapping[str, Any]
    expected: Counter[tuple[str, int]] = field(default_factory=Counter)
    queues: dict[tuple[str, int], list[Entry]] = field(default_factory=dict)

    def next(self, name: str, number: int) -> int:
        """Count one more use of a counter, and return how many there were.

        Args:
            name: of the counter's signal.
            number: of the counter.

        """
        self.expected[name, number] += 1
        return self.expected[name, number]


@dataclass(slots=True)
class Launch:
    """One launch of a plan on one rank.

    Args:
        context: of the plan.
        layout: of the kernel.
        pairing: of the channels.
        state: of the rank.
        number: from 0.
        mode: `MEANT` or `EXECUTED`.
        nth: how often its context was launched before.
        barriers: of thread blocks, by number.
        nops: at which the two threads of a block meet, by block.

    """

    context: Context
    layout: Layout
    pairing: Pairing
    state: State
    number: int
    mode: str
    nth: int = 0
    barriers: dict[int, StreamBarrier] = field(default_factory=dict)
    nops: dict[int, StreamBarrier] = field(default_factory=dict)

    @property
    def flag(self) -> int:
        """What packets of this launch carry."""
        return self.number + 1

    @property
    def half(self) -> int:
        """Which half of the scratch is used."""
        return (self.flag + 1) % 2 if self.context.plan.double else 0

    def signal(self, name: str) -> Any:  # noqa: ANN401 - a view
        """Return a signal of the context."""
        return self.state.memory[name + self.context.suffix]


@dataclass(slots=True)
class Thread:
    """A thread of a thread block in a launch.

    Args:
        rank: the stream that it is.
        launch: of its rank.
        lane: 0 or 1.
        lanes: 2, or 1 that stands for all threads.
        unit: in a pipeline: the rows of a round, and the round.
        late: quiet before it meets others: where a meeting completes nothing.

    """

    rank: Rank
    launch: Launch
    lane: int
    lanes: int
    late: bool
    unit: tuple[int, int] | None = None

    def steps(self, op: Operation) -> Steps:
        """Yield the steps that this thread takes in an operation."""
        if op.name == "nop":
            yield from self._nop(op)
        elif op.name == "barrier":
            yield from self._settled()
            yield self.rank.sync(self.launch.barriers[op.number])
        elif op.name in SEMAPHORES:
            yield from self._semaphores(op)
        elif op.channel == PORT and op.name in MOVES:
            yield from self._port_put(op)
        elif op.name in MOVES:
            yield from self._moves(op)
            if op.name in ("pws", "pwsf"):
                yield from self._signals(op)
        elif op.name in REDUCTIONS:
            yield from self._reduction(op)
        elif op.name in ("wait", "rlxwait"):
            yield from self._waits(op)
        elif op.name == "flush":
            yield from self._flush(op)
        else:
            yield from self._signals(op)

    def _mine(self, many: int) -> range:
        """Return the numbers of what single threads do that this one does."""
        return range(self.lane, many, self.lanes)

    def _settled(self) -> Steps:
        if self.late:
            yield self.rank.quiet()

    def _nop(self, op: Operation) -> Steps:
        if self.lanes > 1:
            yield from self._settled()
            yield self.rank.sync(self.launch.nops[op.block])

    # Synchronisation.

    def _signals(self, op: Operation) -> Steps:
        launch = self.launch
        for number in self._mine(len(op.channels)):
            channel = op.channels[number]
            if op.channel == PORT:
                yield from self._push(Entry("signal", channel, op, launch))
                continue
            partner = launch.pairing.partner(op.gpu, op.channel, channel)
            if partner is not None:
                cell = launch.signal(op.channel).at(partner[0])[partner[1]]
                yield self.rank.notify(cell, 1, order="relaxed" if op.name == "rlxsignal" else "release")

    def _waits(self, op: Operation) -> Steps:
        for number in self._mine(len(op.channels)):
            channel = op.channels[number]
            cell = self.launch.signal(op.channel)[channel]
            expected = self.launch.state.next(op.channel + self.launch.context.suffix, channel)
            yield self.rank.wait(cell >= expected, order="relaxed" if op.name == "rlxwait" else None)

    def _flush(self, op: Operation) -> Steps:
        if self.launch.mode == MEANT and op.channel == PORT:
            for number in self._mine(len(op.channels)):
                yield from self._flushed(op, op.channels[number])

    def _flushed(self, op: Operation, channel: int) -> Steps:
        launch = self.launch
        yield from self._push(Entry("flush", channel, op, launch))
        expected = launch.state.next(f"flushed{launch.context.suffix}", channel)
        yield self.rank.wait(launch.signal("flushed")[channel] >= expected)

    def _semaphores(self, op: Operation) -> Steps:
        launch = self.launch
        for number in self._mine(len(op.semaphores)):
            semaphore = op.semaphores[number]
            cell = launch.signal("semaphore")[semaphore]
            # Of device scope, which here is as good as the world's: no other rank uses it.
            free = 1 - launch.context.plan.gpus[op.gpu].semaphores[semaphore]
            if op.name == "sem_release":
                yield from self._settled()
                yield self.rank.notify(cell, 1)
            elif launch.mode == EXECUTED:
                if (yield self.rank.fetch_add(cell, -1, order="relaxed")) < free:
                    yield self.rank.wait(cell >= free - 1)
            elif launch.pairing.users("semaphore", op.gpu, semaphore) > 1:
                yield self.rank.wait(cell >= free, then=_ADD(-1))
            else:  # one thread acquires: counting upwards is the same, and one run decides
                times = launch.state.next(f"semaphore{launch.context.suffix}", semaphore)
                yield self.rank.wait(cell >= free + times - 1)

    # Port channels.

    def _port_put(self, op: Operation) -> Steps:
        launch = self.launch
        if op.name == "rppkt":
            for piece in launch.layout.pieces(op, self.lane, self.lanes, None):
                yield from self._arrivals(op.sources[0], piece)
            yield from self._nop(op)
        for number in self._mine(len(op.targets)):
            yield from self._push(Entry("put", op.channels[number], op, launch, number, self.unit))
            if op.name in ("pws", "pwsf"):
                yield from self._push(Entry("signal", op.channels[number], op, launch))
            if op.name == "pwsf":
                yield from self._flushed(op, op.channels[number])

    def _push(self, entry: Entry) -> Steps:
        """Push an entry; where several threads push to a channel, their order is what the head of the FIFO gave."""
        launch = self.launch
        cell = launch.signal("fifo")[entry.channel]
        if launch.pairing.users("push", entry.op.gpu, entry.channel) > 1:
            yield self.rank.fetch_add(cell, 1)
        else:
            yield self.rank.notify(cell, 1)
        launch.state.queues.setdefault((launch.context.suffix, entry.channel), []).append(entry)

    def proxy(self, entry: Entry) -> Steps:
        """Yield the steps of the proxy for an entry; this thread is the proxy's."""
        launch, op = self.launch, entry.op
        if entry.kind == "flush":
            yield from self._settled()
            yield self.rank.notify(launch.signal("flushed")[entry.channel], 1)
        elif entry.kind == "signal":
            partner = launch.pairing.partner(op.gpu, PORT, entry.channel)
            if partner is not None:
                yield self.rank.notify(launch.signal(PORT).at(partner[0])[partner[1]], 1)
        else:
            source = op.sources[min(entry.part, len(op.sources) - 1)]
            for piece in launch.layout.pieces(op, 0, 1, entry.unit):
                if op.is_packets:
                    values = yield self.rank.load(self._region(source, PACKETS, piece))
                    yield from self._sent(op.targets[entry.part], piece, values)
                else:
                    target = self._region(op.targets[entry.part], "", piece)
                    yield self.rank.put(target, self._region(source, "", piece))

    # Data.

    def _moves(self, op: Operation) -> Steps:
        sources, targets = op.sources, op.targets
        for number in range(max(len(sources), len(targets))):
            source, target = sources[min(number, len(sources) - 1)], targets[min(number, len(targets) - 1)]
            if self.launch.mode == EXECUTED:
                source, target = as_executed(op, source, target)
            yield from self._reduced(op, (source,), (target,))

    def _reduction(self, op: Operation) -> Steps:
        yield from self._reduced(op, op.sources, op.targets)

    def _reduced(self, op: Operation, sources: tuple[Span, ...], targets: tuple[Span, ...]) -> Steps:
        """Read all sources, combine them, and write to all targets, piece by piece."""
        fold = _FOLD["sum" if self.launch.mode == EXECUTED else op.reduce]
        for piece in self.launch.layout.pieces(op, self.lane, self.lanes, self.unit):
            total: Any = None
            for span, kind in zip(sources, op.source_kinds(), strict=False):
                if kind == PACKETS:
                    yield from self._arrivals(span, piece)
                for rank in span.group if op.name == "glres" else (span.rank,):
                    values = yield self.rank.load(self._region(span, kind, piece, rank))
                    total = values if total is None else fold(total, values)
            for span, kind in zip(targets, op.target_kinds(), strict=False):
                for rank in span.group or (span.rank,):
                    if op.name == "gstorepkt" and (rank, span.index) == (op.gpu, sources[0].index):
                        continue  # the same packets over themselves: what others see stays as it is
                    if kind == PACKETS:
                        yield from self._sent(span, piece, total, rank)
                    else:
                        yield self.rank.store(self._region(span, kind, piece, rank), total)

    def _arrivals(self, span: Span, piece: Piece) -> Steps:
        """Wait until the packets of a piece have the flag of this launch."""
        launch = self.launch
        name, first = self._start(span)
        cells = launch.state.memory[name.replace("scratch", "flags")]
        for cell, *_ in launch.layout.flags(first, piece):
            yield self.rank.wait(cells[cell] >= launch.flag)

    def _sent(self, span: Span, piece: Piece, values: Any, rank: int | None = None) -> Steps:  # noqa: ANN401 - an array
        """Write packets, each with its flag."""
        launch = self.launch
        name, first = self._start(span)
        owner = span.rank if rank is None else rank
        cells = launch.state.memory[name.replace("scratch", "flags")].at(owner)
        packets = launch.state.memory[name.replace("scratch", "packets")].at(owner)
        top = first + piece.start
        for cell, low, high, (left, right) in launch.layout.flags(first, piece):
            columns = slice(piece.columns[0] + left, piece.columns[0] + right)
            part = np.ascontiguousarray(values[low:high, left:right])
            yield self.rank.put_signal(packets[top + low : top + high, columns], part, cells[cell], launch.flag, MAX)

    def _start(self, span: Span) -> tuple[str, int]:
        launch = self.launch
        rank = span.group[0] if span.group else span.rank
        return launch.layout.start(launch.context, rank, span.buffer, span.index, launch.half)

    def _region(self, span: Span, kind: str, piece: Piece, rank: int | None = None) -> Any:  # noqa: ANN401 - a region
        launch = self.launch
        owner = span.rank if rank is None else rank
        name, first = launch.layout.start(launch.context, owner, span.buffer, span.index, launch.half)
        if kind == PACKETS:
            name = name.replace("scratch", "packets")
        view = launch.state.memory[name].at(owner)
        return view[first + piece.start : first + piece.stop : piece.step, slice(*piece.columns)]


_ADD = UpdateName("AtomicAdd")
