"""An execution plan of MSCCL++ as data, and the table of its operations.

Source: MSCCL++ 0.9, the plans that its DSL prints and its executor loads.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INPUT, OUTPUT, SCRATCH = "i", "o", "s"
TYPES = {"i": INPUT, "input": INPUT, "o": OUTPUT, "output": OUTPUT, "s": SCRATCH, "scratch": SCRATCH}
MEMORY, PORT, SWITCH = "memory", "port", "switch"
PLAIN, PACKETS = "d", "p"
CHUNKS = {INPUT: "input_chunks", OUTPUT: "output_chunks", SCRATCH: "scratch_chunks"}
COLLECTIVES = (
    "allgather", "allreduce", "reducescatter", "alltoall", "sendrecv", "broadcast", "reduce", "test", "custom",
)  # fmt: skip
MOST = {"operations": 64, "channels": 16, "remote buffers": 16, "of an operation": 8, "buffers": 10, "barriers": 16}
"""What the executor has room for; it checks the first alone."""


@dataclass(frozen=True, slots=True)
class Row:
    """What an operation does.

    Args:
        reads, writes: what its sources and targets hold, a letter each, `PLAIN` or `PACKETS`; the last for all further.
        far: it may write to other gpus.
        folds: it combines its sources; otherwise the n-th source goes to the n-th target.
        does: signal (s), wait (w), flush (f), acquire (a) or release (r) a semaphore, meet (m).

    """

    reads: str = ""
    writes: str = ""
    far: bool = False
    folds: bool = False
    does: str = ""


TABLE = {
    "put": Row("d", "d", far=True), "pws": Row("d", "d", far=True, does="s"),
    "pwsf": Row("d", "d", far=True, does="sf"),
    "get": Row("d", "d"), "copy": Row("d", "d"), "cpkt": Row("d", "p"), "upkt": Row("p", "d"),
    "ppkt": Row("d", "p", far=True), "rppkt": Row("p", "p", far=True), "gstore": Row("d", "d"),
    "gstorepkt": Row("p", "p"), "glres": Row("d", "d"),
    "re": Row("d", "d", folds=True), "res": Row("d", "d", far=True, folds=True),
    "rre": Row("d", "d", folds=True), "rres": Row("d", "d", far=True, folds=True),
    "repkt": Row("dp", "d", folds=True), "respkt": Row("dp", "dp", far=True, folds=True),
    "recpkt": Row("dp", "dp", folds=True), "recspkt": Row("dp", "dp", far=True, folds=True),
    "signal": Row(does="s"), "wait": Row(does="w"), "rlxsignal": Row(does="s"), "rlxwait": Row(does="w"),
    "flush": Row(does="f"), "sem_acquire": Row(does="a"), "sem_release": Row(does="r"),
    "nop": Row(does="m"), "barrier": Row(does="m"), "pipeline": Row(),
}  # fmt: skip
NAMES = tuple(TABLE)


@dataclass(frozen=True, slots=True)
class Span:
    """Chunks of a buffer: `size` from `index`, of a rank, or of all ranks in the `group` of a switch channel."""

    rank: int
    buffer: str
    index: int
    size: int
    group: tuple[int, ...] = ()

    @property
    def ranks(self) -> tuple[int, ...]:
        """Whose it is."""
        return self.group or (self.rank,)

    def __str__(self) -> str:
        """Return it as a report shows it: ``scratch[2:4] of gpu 1``."""
        owner = f"gpus {list(self.group)}" if self.group else f"gpu {self.rank}"
        return f"{CHUNKS[self.buffer].partition('_')[0]}[{self.index}:{self.index + self.size}] of {owner}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a thread block.

    Args:
        name: as the plan has it.
        gpu, block, index: where it stands; of an operation in a pipeline `index` counts the pipeline's.
        inside: its number in the pipeline `index`; -1: it is in none.
        path, line: its place in the JSON, and the line of the file where it begins.
        sources, targets: what it reads and writes.
        channel, channels: the type of its channels, and the rank's channels of that type, by number.
        slice_of: (number, of how many) slices of every chunk.
        number, parties: of its barrier, and how many thread blocks meet there.
        semaphores: by number.
        reduce: "sum", "min" or "max".
        unit, chunks, body: of a pipeline: bytes a round, how many chunks it goes over, its operations.

    """

    name: str
    gpu: int
    block: int
    index: int
    inside: int
    path: str
    line: int
    sources: tuple[Span, ...] = ()
    targets: tuple[Span, ...] = ()
    channel: str = MEMORY
    channels: tuple[int, ...] = ()
    slice_of: tuple[int, int] = (0, 1)
    number: int = 0
    parties: int = 0
    semaphores: tuple[int, ...] = ()
    reduce: str = "sum"
    unit: int = 0
    chunks: int = 0
    body: tuple[Operation, ...] = ()

    @property
    def row(self) -> Row:
        """What it does."""
        return TABLE[self.name]

    @property
    def is_packets(self) -> bool:
        """Whether its threads go by packets, 8 bytes each, and not by words of 16."""
        return PACKETS in self.row.reads + self.row.writes

    @property
    def is_data(self) -> bool:
        """Whether all threads of the block move data; entries of a port channel are pushed by single threads."""
        return bool(self.row.reads) and self.channel != PORT

    def accesses(self) -> Iterator[tuple[Span, str, bool]]:
        """Yield its sources and targets, what each holds, and whether it is written."""
        reads = PACKETS if self.name == "ppkt" and self.channel == PORT else self.row.reads
        for spans, held, written in ((self.sources, reads, False), (self.targets, self.row.writes, True)):
            for number, span in enumerate(spans):
                yield span, held[min(number, len(held) - 1)], written

    @property
    def here(self) -> str:
        """Where it stands on each gpu, in words."""
        return f"thread block {self.block}, op {self.index}" + (f".{self.inside}" if self.inside >= 0 else "")

    @property
    def where(self) -> str:
        """Where it stands, as a report says it."""
        return f"gpu {self.gpu}, {self.here}"

    def __str__(self) -> str:
        """Return it in a line: ``put input[0:1] of gpu 0 -> scratch[0:1] of gpu 1``."""
        if self.name == "barrier":
            return f"barrier {self.number} of {self.parties} thread blocks"
        if self.name == "pipeline":
            return f"pipeline of {len(self.body)} operations over {self.chunks} chunks"
        parts = [self.name]
        if self.sources:
            parts += [" + ".join(map(str, self.sources)), "->"]
        parts += [", ".join(map(str, self.targets))] if self.targets else []
        parts += [f"on {self.channel} channel {', '.join(map(str, self.channels))}"] if self.channels else []
        parts += [f"of semaphore {', '.join(map(str, self.semaphores))}"] if self.semaphores else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Gpu:
    """One rank of a plan.

    Args:
        id: the rank.
        chunks: of its input, output and scratch, by `INPUT`, `OUTPUT`, `SCRATCH`.
        peers: by channel type: the peer of each channel.
        switches: the ranks of each switch channel, and whose buffer it is over.
        semaphores: the initial value of each.
        blocks: the operations of each thread block, by its number.

    """

    id: int
    chunks: dict[str, int]
    peers: dict[str, tuple[int, ...]] = field(default_factory=lambda: {MEMORY: (), PORT: ()})
    switches: tuple[tuple[tuple[int, ...], str], ...] = ()
    semaphores: tuple[int, ...] = ()
    blocks: dict[int, tuple[Operation, ...]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Fifos:
    """The connections of an algorithm of MSCCL, and what its steps wait for besides.

    Args:
        channels, slots, most: connections between two gpus, slots of one, chunks that a slot has room for.
        ends: by gpu and thread block: the gpu it sends to, the one it receives from (-1: none), the channel.
        needs: by gpu, thread block and step: the thread blocks and steps that have to be done before.
        posts: by gpu and thread block: the steps that say when they are done.

    """

    channels: int
    slots: int = 4
    most: int = 1
    ends: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    needs: dict[tuple[int, int, int], tuple[tuple[int, int], ...]] = field(default_factory=dict)
    posts: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """An execution plan: `reuse`: its scratch is shared; `double`: it has two halves, used in turn.

    `gpus` are by rank; `tree` is the JSON, for edits; `align` in bytes; `fifos`: it is an algorithm of MSCCL.
    """

    file: str
    name: str
    collective: str
    in_place: bool
    gpus: tuple[Gpu, ...]
    reuse: bool = False
    double: bool = False
    align: int = 16
    tree: dict[str, Any] = field(default_factory=dict)
    fifos: Fifos | None = None

    @property
    def ranks(self) -> int:
        """P."""
        return len(self.gpus)

    def operations(self, *, pipelines: bool = False) -> Iterator[Operation]:
        """Yield the operations of all gpus, those in pipelines in their place; `pipelines`: and the pipelines."""
        for gpu in self.gpus:
            for listed in gpu.blocks.values():
                yield from flat(listed, pipelines=pipelines)

    def same(self, op: Operation) -> Iterator[Operation]:
        """Yield an operation as it stands on every gpu that has one of this name there."""
        for gpu in self.gpus:
            for other in flat(gpu.blocks.get(op.block, ())):
                if (other.index, other.inside, other.name) == (op.index, op.inside, op.name):
                    yield other


def flat(operations: Sequence[Operation], *, pipelines: bool = False) -> Iterator[Operation]:
    """Yield operations, and those in pipelines in their place.

    Args:
        operations: of a thread block.
        pipelines: yield the pipelines themselves, too, before what is in them.

    """
    for operation in operations:
        if pipelines or not operation.body:
            yield operation
        yield from operation.body
