"""An execution plan of MSCCL++ as data, read from its JSON; what cannot be is told with its place in the JSON.

Source: MSCCL++ 0.9, the plans that its DSL prints and its executor loads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INPUT, OUTPUT, SCRATCH = "i", "o", "s"
TYPES = {"i": INPUT, "input": INPUT, "o": OUTPUT, "output": OUTPUT, "s": SCRATCH, "scratch": SCRATCH}
MEMORY, PORT, SWITCH = "memory", "port", "switch"
COLLECTIVES = (
    "allgather",
    "allreduce",
    "reducescatter",
    "alltoall",
    "sendrecv",
    "broadcast",
    "reduce",
    "test",
    "custom",
)

PLAIN, PACKETS = "plain", "packets"
MOVES = {
    "put": (PLAIN, PLAIN), "pws": (PLAIN, PLAIN), "pwsf": (PLAIN, PLAIN), "get": (PLAIN, PLAIN), "copy": (PLAIN, PLAIN),
    "cpkt": (PLAIN, PACKETS), "ppkt": (PLAIN, PACKETS), "rppkt": (PACKETS, PACKETS), "upkt": (PACKETS, PLAIN),
    "gstore": (PLAIN, PLAIN), "gstorepkt": (PACKETS, PACKETS), "glres": (PLAIN, PLAIN),
}  # fmt: skip
"""What each operation that copies reads and writes."""
REDUCTIONS = {
    "re": (PLAIN, 0, 1), "res": (PLAIN, 0, None), "rre": (PLAIN, None, 1), "rres": (PLAIN, None, None),
    "repkt": (PACKETS, 0, 1), "respkt": (PACKETS, 0, None), "recpkt": (PACKETS, 0, 2), "recspkt": (PACKETS, 0, None),
}  # fmt: skip
"""Of each reduction: what its further sources hold, how many of them may be remote, how many places it writes."""
SYNCS = ("signal", "wait", "rlxsignal", "rlxwait", "flush")
SEMAPHORES = ("sem_acquire", "sem_release")
NAMES = (*MOVES, *REDUCTIONS, *SYNCS, *SEMAPHORES, "nop", "barrier", "pipeline")
MOST = {"operations": 64, "channels": 16, "remote buffers": 16, "of an operation": 8, "buffers": 10, "barriers": 16}
"""What the executor has room for; it checks the first alone."""


@dataclass(frozen=True, slots=True)
class Span:
    """Chunks of a buffer that an operation names.

    Args:
        rank: whose; -1: of all ranks of a switch channel.
        buffer: input, output or scratch.
        index: the first chunk.
        size: how many.
        group: the ranks of the switch channel; empty: it is no switch's.

    """

    rank: int
    buffer: str
    index: int
    size: int
    group: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return it as a report shows it: ``scratch[2:4] of gpu 1``."""
        name = {INPUT: "input", OUTPUT: "output", SCRATCH: "scratch"}[self.buffer]
        owner = f"gpus {list(self.group)}" if self.group else f"gpu {self.rank}"
        return f"{name}[{self.index}:{self.index + self.size}] of {owner}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a thread block.

    Args:
        name: as the plan has it.
        gpu, block, index: where it stands; of an operation in a pipeline `index` counts the pipeline's.
        inside: its number in the pipeline `index`; -1: it is in none.
        path: its place in the JSON.
        line: of the file where it begins.
        sources, targets: what it reads and writes.
        channel: the type of its channels.
        channels: the rank's channels of that type, by number.
        slice_of: (number, of how many) slices of every chunk.
        number: of its barrier; or the thread blocks that meet there.
        parties: how many thread blocks meet at its barrier.
        semaphores: by number.
        reduce: "sum", "min" or "max".
        unit: of a pipeline: bytes a round; `chunks`: how many chunks it goes over; `body`: its operations.

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
    def is_packets(self) -> bool:
        """Whether its threads go by packets, 8 bytes each, and not by words of 16."""
        return PACKETS in MOVES.get(self.name, ()) or self.name in ("repkt", "respkt", "recpkt", "recspkt")

    @property
    def is_data(self) -> bool:
        """Whether all threads of the block move data; entries of a port channel are pushed by single threads."""
        return (self.name in MOVES or self.name in REDUCTIONS) and self.channel != PORT

    def source_kinds(self) -> tuple[str, ...]:
        """Return what each source holds: plain data or packets."""
        if self.name in MOVES:
            kind = PACKETS if self.name == "ppkt" and self.channel == PORT else MOVES[self.name][0]
            return (kind,) * len(self.sources)
        return (PLAIN, *(REDUCTIONS[self.name][0],) * (len(self.sources) - 1)) if self.name in REDUCTIONS else ()

    def target_kinds(self) -> tuple[str, ...]:
        """Return what is written to each target."""
        if self.name in MOVES:
            return (MOVES[self.name][1],) * len(self.targets)
        return (PLAIN, *(REDUCTIONS[self.name][0],) * (len(self.targets) - 1)) if self.name in REDUCTIONS else ()

    @property
    def where(self) -> str:
        """Return where it stands, as a report says it."""
        inside = f".{self.inside}" if self.inside >= 0 else ""
        return f"gpu {self.gpu}, thread block {self.block}, op {self.index}{inside}"

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
    peers: dict[str, tuple[int, ...]]
    switches: tuple[tuple[tuple[int, ...], str], ...]
    semaphores: tuple[int, ...]
    blocks: dict[int, tuple[Operation, ...]]


@dataclass(slots=True, eq=False)
class Fifos:
    """The connections of an algorithm of MSCCL, and what its steps wait for besides.

    Args:
        channels: how many there are between two gpus.
        slots: of a connection.
        most: chunks that a slot has room for.
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
    """An execution plan.

    Args:
        file: its path, as it was given.
        name, collective: as the plan says.
        in_place, reuse, double: the buffers overlap; its scratch is shared; it has two halves, used in turn.
        gpus: by rank.
        tree: the JSON that it was read from, for edits.
        fifos: of an algorithm of MSCCL.

    """

    file: str
    name: str
    collective: str
    in_place: bool
    reuse: bool
    double: bool
    gpus: tuple[Gpu, ...]
    tree: dict[str, Any]
    fifos: Fifos | None = None

    @property
    def ranks(self) -> int:
        """P."""
        return len(self.gpus)

    def operations(self, *, pipelines: bool = True) -> Iterator[Operation]:
        """Yield the operations of all gpus, those in pipelines in their place; `pipelines`: and the pipelines."""
        for gpu in self.gpus:
            for listed in gpu.blocks.values():
                yield from flat(listed, pipelines=pipelines)


def flat(operations: Sequence[Operation], *, pipelines: bool = False) -> Iterator[Operation]:
    """Yield operations, and those in pipelines in their place.

    Args:
        operations: of a thread block.
        pipelines: yield the pipelines themselves, too, before what is in them.

    """
    for operation in operations:
        if operation.body:
            if pipelines:
                yield operation
            yield from operation.body
        else:
            yield operation


class PlacedDict(dict[str, Any]):
    """A JSON object that knows at which character of the text it begins."""

    at = 0


class _Decoder(json.JSONDecoder):
    """Decodes JSON into objects that know where they begin."""

    def __init__(self) -> None:
        super().__init__()
        parse: Any = json.decoder.JSONObject  # type: ignore[attr-defined]

        def placed(s_and_end: tuple[str, int], *rest: Any) -> tuple[PlacedDict, int]:  # noqa: ANN401 - as json has them
            made, end = parse(s_and_end, *rest)
            found = PlacedDict(made)
            found.at = s_and_end[1] - 1
            return found, end

        self.parse_object = placed
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def read_json(text: str, file: str) -> dict[str, Any]:
    """Return the object of a JSON text, each object with its place.

    Args:
        text: of the file.
        file: for messages.

    Raises:
        MisuseError: it is no JSON, or no object.

    """
    try:
        tree = _Decoder().decode(text)
    except (ValueError, RecursionError) as error:
        raise MisuseError(f"{file} is no JSON: {error}") from error
    if not isinstance(tree, dict):
        raise MisuseError(f"{file}: an execution plan is a JSON object, this is a {type(tree).__name__}")
    return tree
