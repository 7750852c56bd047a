"""What each operation of a plan means on a rank: the steps that a thread takes, as the executor has them.

Each is a generator of operations of a `Rank`, which is given what they return. Whatever drives it stands at the
operation's place in the plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mscclpp.pairing import EXECUTED, MEANT, as_executed
from asyncsim.frontends.mscclpp.plan import PACKETS, PORT, Operation, Span
from asyncsim.trace.cells import MAX, UpdateName

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator, Mapping

    from asyncsim.frontends.mscclpp.layout import Context, Layout, Piece
    from asyncsim.frontends.mscclpp.pairing import Pairing
    from asyncsim.machine.rank import Rank
    from asyncsim.machine.stream import StreamBarrier

    Steps = Generator[Coroutine[Any, Any, Any], Any, None]

FOLD = {"sum": np.add, "min": np.minimum, "max": np.maximum}
_ADD = UpdateName("AtomicAdd")


@dataclass(slots=True)
class Entry:
    """What a thread pushes into the FIFO of its rank for the proxy.

    Args:
        kind: "put", "signal" or "flush".
        channel: the port channel of the rank.
        op, launch: whose entry it is.
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
        expected: how often a counter was waited for, by the name of its signal and its number.
        queues: the entries of each port channel, by the suffix of its context and its number.

    """

    memory: Mapping[str, Any]
    expected: Counter[tuple[str, int]] = field(default_factory=Counter)
    queues: dict[tuple[str, int], list[Entry]] = field(default_factory=lambda: defaultdict(list))


@dataclass(slots=True)
class Launch:
    """One launch of a plan on one rank.

    Args:
        context, layout, pairing, state: of the plan, of the kernel, of the channels, of the rank.
        number: from 0.
        mode: `MEANT` or `EXECUTED`.
        nth: how often its context was launched before.
        omitted: the paths of operations that store nothing.
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
    omitted: frozenset[str] = frozenset()
    barriers: dict[int, StreamBarrier] = field(default_factory=dict)
    nops: dict[int, StreamBarrier] = field(default_factory=dict)

    @property
    def flag(self) -> int:
        """What packets of this launch carry."""
        return self.number + 1

    def signal(self, name: str) -> Any:  # noqa: ANN401 - a view
        """Return a signal of the context."""
        return self.state.memory[name + self.context.suffix]

    def next(self, name: str, number: int) -> int:
        """Return how often a counter of the context was used, this time included.

        Args:
            name: of its signal.
            number: its place there.

        """
        key = name + self.context.suffix, number
        self.state.expected[key] += 1
        return self.state.expected[key]

    def start(self, span: Span, rank: int) -> tuple[str, int]:
        """Return the window of a span, and its first row.

        Args:
            span: on one rank or several.
            rank: on which.

        """
        half = (self.flag + 1) % 2 if self.context.plan.double else 0
        return self.layout.start(self.context, rank, span.buffer, span.index, half)


@dataclass(slots=True)
class Thread:
    """A thread of a thread block in a launch.

    Args:
        rank: the stream that it is.
        launch: of its rank.
        lane, lanes: 0 or 1 of 2, or 0 of 1 that stands for all threads.
        late: quiet before it meets others: where a meeting completes nothing.
        unit: in a pipeline: the rows of a round, and the round.

    """

    rank: Rank
    launch: Launch
    lane: int
    lanes: int
    late: bool
    unit: tuple[int, int] | None = None

    def steps(self, op: Operation) -> Steps:
        """Yield the steps that this thread takes in an operation."""
        row = op.row
        if row.does == "m":
            yield from self._meeting(op)
        elif row.does in {"a", "r"}:
            yield from self._semaphores(op)
        elif row.does == "w":
            yield from self._waits(op)
        elif row.reads and op.channel == PORT:
            yield from self._port_put(op)
        else:
            if row.reads:
                yield from self._data(op)
            if "s" in row.does:
                yield from self._signals(op)
            if row.does == "f" and self.launch.mode == MEANT and op.channel == PORT:
                for number in self._mine(len(op.channels)):
                    yield from self._flushed(op, op.channels[number])

    def _mine(self, many: int) -> range:
        """Return the numbers of what single threads do that this one does."""
        return range(self.lane, many, self.lanes)

    def settled(self) -> Steps:
        """Complete what was written, where a meeting does not."""
        if self.late:
            yield self.rank.quiet()

    def _meeting(self, op: Operation) -> Steps:
        if op.name == "barrier" or self.lanes > 1:
            launch = self.launch
            yield from self.settled()
            yield self.rank.sync(launch.barriers[op.number] if op.name == "barrier" else launch.nops[op.block])

    def _signals(self, op: Operation) -> Steps:
        launch = self.launch
        for number in self._mine(len(op.channels)):
            channel = op.channels[number]
            if op.channel == PORT:
                yield from self._push(Entry("signal", channel, op, launch))
            elif partner := launch.pairing.partner(op.gpu, op.channel, channel):
                cell = launch.signal(op.channel).at(partner[0])[partner[1]]
                yield self.rank.notify(cell, 1, order="relaxed" if op.name == "rlxsignal" else "release")

    def _waits(self, op: Operation) -> Steps:
        for number in self._mine(len(op.channels)):
            channel = op.channels[number]
            cell, expected = self.launch.signal(op.channel)[channel], self.launch.next(op.channel, channel)
            yield self.rank.wait(cell >= expected, order="relaxed" if op.name == "rlxwait" else None)

    def _flushed(self, op: Operation, channel: int) -> Steps:
        launch = self.launch
        yield from self._push(Entry("flush", channel, op, launch))
        yield self.rank.wait(launch.signal("flushed")[channel] >= launch.next("flushed", channel))

    def _semaphores(self, op: Operation) -> Steps:
        launch = self.launch
        for number in self._mine(len(op.semaphores)):
            semaphore = op.semaphores[number]
            cell = launch.signal("semaphore")[semaphore]
            # Of device scope, which here is as good as the world's: no other rank uses it.
            free = 1 - launch.context.plan.gpus[op.gpu].semaphores[semaphore]
            if op.name == "sem_release":
                yield from self.settled()
                yield self.rank.notify(cell, 1)
            elif launch.mode == EXECUTED:
                if (yield self.rank.fetch_add(cell, -1, order="relaxed")) < free:
                    yield self.rank.wait(cell >= free - 1)
            elif launch.pairing.users("semaphore", op.gpu, semaphore) > 1:
                yield self.rank.wait(cell >= free, then=_ADD(-1))
            else:  # one thread acquires: counting upwards is the same, and one run decides
                yield self.rank.wait(cell >= free + launch.next("semaphore", semaphore) - 1)

    # Port channels.

    def _port_put(self, op: Operation) -> Steps:
        launch = self.launch
        if op.name == "rppkt":
            for piece in launch.layout.pieces(op, self.lane, self.lanes, None):
                yield from self._arrivals(op.sources[0], piece)
            if self.lanes > 1:
                yield from self.settled()
                yield self.rank.sync(launch.nops[op.block])
        for number in self._mine(len(op.targets)):
            yield from self._push(Entry("put", op.channels[number], op, launch, number, self.unit))
            if "s" in op.row.does:
                yield from self._push(Entry("signal", op.channels[number], op, launch))
            if "f" in op.row.does:
                yield from self._flushed(op, op.channels[number])

    def _push(self, entry: Entry) -> Steps:
        """Push an entry; where several threads push to a channel, their order is what the head of the FIFO gave."""
        launch = self.launch
        cell = launch.signal("fifo")[entry.channel]
        if launch.pairing.users("push", entry.op.gpu, entry.channel) > 1:
            yield self.rank.fetch_add(cell, 1)
        else:
            yield self.rank.notify(cell, 1)
        launch.state.queues[launch.context.suffix, entry.channel].append(entry)

    def proxy(self, entry: Entry) -> Steps:
        """Yield the steps of the proxy for an entry; this thread is the proxy's."""
        launch, op = self.launch, entry.op
        if entry.kind == "flush":
            yield from self.settled()
            yield self.rank.notify(launch.signal("flushed")[entry.channel], 1)
        elif entry.kind == "signal":
            if partner := launch.pairing.partner(op.gpu, PORT, entry.channel):
                yield self.rank.notify(launch.signal(PORT).at(partner[0])[partner[1]], 1)
        else:
            source, target = op.sources[min(entry.part, len(op.sources) - 1)], op.targets[entry.part]
            for piece in launch.layout.pieces(op, 0, 1, entry.unit):
                if op.is_packets:
                    values = yield self.rank.load(self._region(source, PACKETS, piece))
                    yield from self._sent(target, piece, values, target.rank)
                else:
                    yield self.rank.put(self._region(target, "", piece), self._region(source, "", piece))

    # Data.

    def _data(self, op: Operation) -> Steps:
        """Read, combine and write: all at once in a reduction, a source and its target after the other otherwise."""
        all_ = list(op.accesses())
        sources, targets = all_[: len(op.sources)], all_[len(op.sources) :]
        if op.row.folds:
            yield from self._reduced(op, sources, targets)
            return
        for number in range(max(len(sources), len(targets))):
            (source, held, _), (target, kind, _) = (side[min(number, len(side) - 1)] for side in (sources, targets))
            if self.launch.mode == EXECUTED:
                source, target = as_executed(op, source, target)
            yield from self._reduced(op, [(source, held, False)], [(target, kind, True)])

    def _reduced(
        self, op: Operation, sources: list[tuple[Span, str, bool]], targets: list[tuple[Span, str, bool]]
    ) -> Steps:
        """Read all sources, combine them, and write to all targets, piece by piece."""
        fold = FOLD["sum" if self.launch.mode == EXECUTED else op.reduce]
        for piece in self.launch.layout.pieces(op, self.lane, self.lanes, self.unit):
            total: Any = None
            for span, kind, _ in sources:
                if kind == PACKETS:
                    yield from self._arrivals(span, piece)
                for rank in span.ranks:
                    values = yield self.rank.load(self._region(span, kind, piece, rank))
                    total = values if total is None else fold(total, values)
            for span, kind, _ in targets if op.path not in self.launch.omitted else ():
                for rank in span.ranks:
                    if op.name == "gstorepkt" and (rank, span.index) == (op.gpu, sources[0][0].index):
                        continue  # the same packets over themselves: what others see stays as it is
                    if kind == PACKETS:
                        yield from self._sent(span, piece, total, rank)
                    else:
                        yield self.rank.store(self._region(span, kind, piece, rank), total)

    def _arrivals(self, span: Span, piece: Piece) -> Steps:
        """Wait until the packets of a piece have the flag of this launch."""
        launch = self.launch
        name, first = launch.start(span, span.ranks[0])
        cells = launch.state.memory[name.replace("scratch", "flags")]
        for cell, *_ in launch.layout.flags(first, piece):
            yield self.rank.wait(cells[cell] >= launch.flag)

    def _sent(self, span: Span, piece: Piece, values: Any, rank: int) -> Steps:  # noqa: ANN401 - an array
        """Write packets, each with its flag."""
        launch = self.launch
        name, first = launch.start(span, rank)
        cells = launch.state.memory[name.replace("scratch", "flags")].at(rank)
        packets = launch.state.memory[name.replace("scratch", "packets")].at(rank)
        top, column = first + piece.start, piece.columns[0]
        for cell, low, high, (left, right) in launch.layout.flags(first, piece):
            place = packets[top + low : top + high, column + left : column + right]
            part = np.ascontiguousarray(values[low:high, left:right])
            yield self.rank.put_signal(place, part, cells[cell], launch.flag, MAX)

    def _region(self, span: Span, kind: str, piece: Piece, rank: int | None = None) -> Any:  # noqa: ANN401 - a region
        owner = span.rank if rank is None else rank
        name, first = self.launch.start(span, owner)
        name = name.replace("scratch", "packets") if kind == PACKETS else name
        view = self.launch.state.memory[name].at(owner)
        return view[first + piece.start : first + piece.stop : piece.step, slice(*piece.columns)]
