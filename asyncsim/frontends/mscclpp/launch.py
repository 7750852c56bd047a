"""Plans as a kernel: every launch of them in one run, so that counters, scratch and proxies live from call to call.

A rank's main task is the caller: it writes the input, launches, and reads the output when the launch has ended.
Thread blocks are streams of the launch; the proxy of each port channel is a stream that outlives it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mscclpp.layout import Context, Layout
from asyncsim.frontends.mscclpp.msccl import FifoThread
from asyncsim.frontends.mscclpp.operations import Entry, Launch, State, Thread
from asyncsim.frontends.mscclpp.pairing import MEANT, Pairing, check_plan, check_size
from asyncsim.frontends.mscclpp.plan import INPUT, OUTPUT, PORT, REDUCTIONS, flat
from asyncsim.machine.kernel import Kernel
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from asyncsim.frontends.mscclpp.operations import Steps
    from asyncsim.frontends.mscclpp.plan import Gpu, Operation, Plan
    from asyncsim.machine.rank import Rank

_SOURCE = "async def at(steps):\n    for step in steps:\n        steps.given = await step\n"


@dataclass(slots=True)
class _Given:
    """Steps, each of which is sent what the one before returned."""

    steps: Steps
    given: Any = None

    def __iter__(self) -> _Given:
        return self

    def __next__(self) -> Coroutine[Any, Any, Any]:
        return self.steps.send(self.given)


@cache
def _code() -> Any:  # noqa: ANN401 - a code object
    """Return the code that awaits steps, all of it on one line, whose number can then be any."""
    tree = ast.parse(_SOURCE)
    for node in ast.walk(tree):
        for name in ("lineno", "end_lineno"):
            if hasattr(node, name):
                setattr(node, name, 1)
    space: dict[str, Any] = {}
    exec(compile(tree, "plan", "exec"), space)  # noqa: S102 - the text above
    return space["at"].__code__


@lru_cache(maxsize=4096)
def standing(place: str, number: int) -> Callable[[_Given], Coroutine[Any, Any, None]]:
    """Return a function that awaits steps, and that reports find at ``place:number``: an operation of the plan.

    Args:
        place: what stands for the file: ``plan.json:tb1``.
        number: what stands for the line: which operation.

    """
    code = _code().replace(co_filename=place, co_firstlineno=number)
    return FunctionType(code, {"__name__": "plan"}, "at")


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """Plans that are launched in turn on the same gpus.

    Args:
        plans: one a launch.
        mode: "meant" or "executed".
        pairs: how many pairs of buffers the caller has for each plan, used in turn.
        size: of the input in bytes; None: it is not said.
        late: whether threads complete what they wrote before they meet: for memory models where a meeting does not.

    """

    plans: tuple[Plan, ...]
    mode: str = MEANT
    pairs: int = 1
    size: int | None = None
    late: bool = False

    def rounds(self, plan: Plan) -> dict[str, int]:
        """Return how many rounds of each pipeline of a plan are run, by its path."""
        context = Context(plan, "", None if self.size is None else check_size(plan, self.size))
        return {op.path: context.rounds(op) for op in plan.operations() if op.body}

    def kernel(self) -> Kernel:
        """Return the kernel of these launches.

        Raises:
            MisuseError: the plans cannot be launched on the same gpus, or one of them not at all.

        """
        first = self.plans[0]
        for plan in dict.fromkeys(self.plans):
            check_plan(plan, self.mode)
            if plan.ranks != first.ranks:
                raise MisuseError(f"{plan.file} is for {plan.ranks} gpus, {first.file} for {first.ranks}")
        running = _Running(self)
        code = _PROGRAM.__code__.replace(co_filename=first.file)  # whose digest a token has
        program = FunctionType(code, {"__name__": "plan", "__asyncsim_path__": first.file}, first.name)
        program.__kwdefaults__ = {"running": running}
        return Kernel(
            program, memory=tuple(running.layout.declarations()), inputs=running.inputs,
            golden=running.golden if running.has_golden else None, separate_streams=running.is_separate,
            given_name=_identifier(first.name),
            about=f"{', '.join(plan.file for plan in self.plans)}",
        )  # fmt: skip


async def _PROGRAM(rank: Any, x: Any, *memory: Any, running: Any) -> Any:  # noqa: ANN401, N802 - its code alone is used
    return await running.run(rank, x, memory)


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in name) or "plan"


class _Running:
    """What all ranks of a kernel of launches know."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        made: dict[tuple[str, int], Context] = {}
        self.contexts: list[Context] = []
        for number, plan in enumerate(launches.plans):
            key = plan.name, sum(other.name == plan.name for other in launches.plans[:number]) % launches.pairs
            if key not in made:
                size = None if launches.size is None else check_size(plan, launches.size)
                made[key] = Context(plan, str(len(made)) if made else "", size)
            if made[key].plan is not plan:
                raise MisuseError(
                    f"{plan.file} and {made[key].plan.file} are both named {plan.name!r}; the executor "
                    "keeps what it set up by name, so one would run on the other's"
                )
            self.contexts.append(made[key])
        self.layout = Layout(list(made.values()))
        self.pairings = {id(context): Pairing(context.plan, self.layout) for context in made.values()}
        self.rounds = {id(context): launches.rounds(context.plan) for context in made.values()}

    # The caller's data.

    def inputs(self, ranks: int, _call: int, rng: np.random.Generator) -> list[list[Any]]:
        """Return the inputs: of each rank a list with one array a launch, (rows, 2) of int32.

        Args:
            ranks: P, as the plans have it.
            rng: draws them.

        Raises:
            MisuseError: the plans are for another number of gpus.

        """
        if ranks != self.contexts[0].plan.ranks:
            raise MisuseError(f"the plan is for {self.contexts[0].plan.ranks} gpus, not {ranks}")
        return [
            [
                rng.integers(1, 1000, (context.plan.gpus[rank].chunks[INPUT] * self.layout.rows, 2), np.int32)
                for context in self.contexts
            ]
            for rank in range(ranks)
        ]

    @property
    def is_separate(self) -> bool:
        """Whether what a stream does depends on no count that another one keeps."""
        return not any(pairing.is_shared for pairing in self.pairings.values())

    @cached_property
    def has_golden(self) -> bool:
        """Whether it is known what every plan computes."""
        return all(_golden_of(context.plan) is not None for context in self.contexts)

    def golden(self, xs: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the outputs of each rank, one a launch."""
        each = []
        for number, context in enumerate(self.contexts):
            right = _golden_of(context.plan)
            each.append(
                [] if right is None else right([x[number] for x in xs], _fold(context.plan, self.launches.mode))
            )
        return [[outputs[rank] for outputs in each] for rank in range(len(xs))]

    def returned(self, context: Context, gpu: Gpu) -> list[tuple[int, int]]:
        """Return the chunks of its output that the caller reads: all, or those that the plan writes.

        Args:
            context: of the plan.
            gpu: whose output.

        """
        chunks = gpu.chunks[OUTPUT]
        if self.has_golden:
            return [(0, chunks)] if chunks else []
        written = {
            chunk for op in context.plan.operations(pipelines=False) for span in op.targets
            if span.buffer == OUTPUT and gpu.id in (span.group or (span.rank,))
            for chunk in range(span.index, span.index + span.size)
        }  # fmt: skip
        starts = sorted(chunk for chunk in written if chunk - 1 not in written)
        return [(low, min(end for end in range(low, chunks + 1) if end not in written)) for low in starts]

    # A rank.

    async def run(self, rank: Rank, x: Sequence[Any], memory: Sequence[Any]) -> list[Any]:
        """Launch each plan on one rank, and return what the caller read after each launch.

        Args:
            rank: the caller's task on it.
            x: the inputs, one a launch.
            memory: the views of the windows and signals.

        """
        if rank.call:
            raise RefusedError("all launches of a plan are one call of its kernel: give more launches, and calls=1")
        names = [declared.name for declared in self.layout.declarations()]
        state = State(dict(zip(names, memory, strict=True)))
        place = f"{self.contexts[0].plan.file}:caller"
        proxies: list[Any] = []
        outputs: list[Any] = []

        def start_proxies() -> Steps:
            for context in self.layout.contexts:
                for channel in range(len(context.plan.gpus[rank.id].peers[PORT])):
                    entries = self._entries(context, rank.id, channel)
                    if entries:
                        proxies.append(
                            (yield rank.start(self._proxy, state, context, channel, entries, block=f"proxy{channel}"))
                        )

        await standing(place, 0)(_Given(start_proxies()))
        for number, context in enumerate(self.contexts):
            gpu = context.plan.gpus[rank.id]
            launch = Launch(
                context,
                self.layout,
                self.pairings[id(context)],
                state,
                number,
                self.launches.mode,
                self.contexts[:number].count(context),
            )
            with rank.phase(f"launch {number + 1}, the caller writes the input"):
                await standing(place, 1)(_Given(self._write(rank, launch, x[number])))
            with rank.phase(f"launch {number + 1}"):
                await standing(place, 2)(_Given(self._launched(rank, launch, gpu)))
            read: list[Any] = []
            with rank.phase(f"launch {number + 1} has ended, the caller reads the output"):
                await standing(place, 3)(_Given(self._read(rank, launch, gpu, read)))
            outputs.append(np.concatenate(read) if read else np.empty((0, 2), np.int32))
        await standing(place, 4)(_Given(rank.join(stream) for stream in proxies))
        return outputs

    def _write(self, rank: Rank, launch: Launch, x: Any) -> Steps:  # noqa: ANN401 - an array
        if len(x):
            name, first = self.layout.start(launch.context, rank.id, INPUT, 0, 0)
            yield rank.store(launch.state.memory[name][first : first + len(x), :], x)

    def _read(self, rank: Rank, launch: Launch, gpu: Gpu, read: list[Any]) -> Steps:
        for low, high in self.returned(launch.context, gpu):
            name, first = self.layout.start(launch.context, rank.id, OUTPUT, low, 0)
            rows = (high - low) * self.layout.rows
            read.append((yield rank.load(launch.state.memory[name][first : first + rows, :])))

    def _launched(self, rank: Rank, launch: Launch, gpu: Gpu) -> Steps:
        """Start all threads of a launch, and wait until they have ended."""
        plan = launch.context.plan
        lanes = {number: self.layout.lanes[plan.file, gpu.id, number] for number in gpu.blocks}
        comers: dict[int, tuple[int, set[int]]] = {}
        for number, listed in gpu.blocks.items():
            for op in flat(listed):
                if op.name == "barrier":
                    comers.setdefault(op.number, (op.parties, set()))[1].add(number)
        for number, (parties, blocks) in comers.items():
            missing = parties - len(blocks)
            launch.barriers[number] = rank.stream_barrier(sum(lanes[block] for block in blocks) + missing)
        streams = []
        for number, listed in gpu.blocks.items():
            if lanes[number] > 1:
                launch.nops[number] = rank.stream_barrier(lanes[number])
            for lane in range(lanes[number]):
                program = self._thread, launch, listed, lane, lanes[number]
                streams.append((yield rank.start(*program, block=f"tb{number}")))
        for stream in streams:
            yield rank.join(stream)

    async def _thread(self, rank: Rank, launch: Launch, listed: Sequence[Operation], lane: int, lanes: int) -> None:
        kind = Thread if launch.context.plan.fifos is None else FifoThread
        thread = kind(rank, launch, lane, lanes, self.launches.late)
        for op, unit in self._rounds(launch.context, listed):
            thread.unit = unit
            with rank.phase(f"{op.where}: {op.name}"):
                await _site(launch.context, op)(_Given(thread.steps(op)))
        if self.launches.late:
            await standing(f"{launch.context.plan.file}:end", listed[0].block)(_Given(only(rank.quiet())))

    def _rounds(
        self, context: Context, listed: Sequence[Operation]
    ) -> Iterator[tuple[Operation, tuple[int, int] | None]]:
        """Yield the operations of a thread block in the order in which they run, with the round of their pipeline."""
        for op in listed:
            if not op.body:
                yield op, None
                continue
            rounds = context.rounds(op)
            for number in range(rounds):
                for inner in op.body:
                    yield inner, (-(-op.chunks * self.layout.rows // rounds), number)

    def _entries(self, context: Context, rank: int, channel: int) -> int:
        a_launch = self.pairings[id(context)].entries(rank, channel, self.rounds[id(context)])
        return a_launch * sum(other is context for other in self.contexts)

    async def _proxy(self, rank: Rank, state: State, context: Context, channel: int, entries: int) -> None:
        """Take the entries of a port channel out of the FIFO, one after the other, of all launches."""
        cell = state.memory[f"fifo{context.suffix}"][channel]
        queue = state.queues.setdefault((context.suffix, channel), [])
        for number in range(entries):
            with rank.phase(f"the proxy of gpu {rank.id}"):
                await standing(f"{context.plan.file}:proxy", channel)(_Given(only(rank.wait(cell >= number + 1))))
            entry: Entry = queue[number]
            thread = Thread(rank, entry.launch, 0, 1, self.launches.late)
            label = f"launch {entry.launch.number + 1}, the proxy for {entry.op.where}: {entry.op.name}, {entry.kind}"
            with rank.phase(label):
                await _site(context, entry.op)(_Given(thread.proxy(entry)))


def only(step: Coroutine[Any, Any, Any]) -> Steps:
    """Yield one step."""
    yield step


def _site(context: Context, op: Operation) -> Callable[[_Given], Coroutine[Any, Any, None]]:
    if op.inside >= 0:
        return standing(f"{context.plan.file}:tb{op.block}.{op.index}", op.inside)
    return standing(f"{context.plan.file}:tb{op.block}", op.index)


def _fold(plan: Plan, mode: str) -> Any:  # noqa: ANN401 - a ufunc
    names = {op.reduce for op in plan.operations(pipelines=False) if op.name in REDUCTIONS or op.name == "glres"}
    return {"min": np.minimum, "max": np.maximum}.get("".join(names), np.add) if mode == MEANT else np.add


def _golden_of(plan: Plan) -> Callable[[Sequence[Any], Any], list[Any]] | None:
    """Return what gives the outputs of a collective for the inputs; None: it is not known."""
    return _GOLDENS.get("shift" if plan.collective == "sendrecv" and plan.ranks == 2 else plan.collective)  # noqa: PLR2004 - a pair


def _blocks(x: Any, ranks: int) -> list[Any]:  # noqa: ANN401 - an array
    return np.split(x, ranks)


_GOLDENS: dict[str, Callable[[Sequence[Any], Any], list[Any]]] = {
    "allreduce": lambda xs, fold: [fold.reduce(np.stack(xs))] * len(xs),
    "allgather": lambda xs, _: [np.concatenate(xs)] * len(xs),
    "reducescatter": lambda xs, fold: _blocks(fold.reduce(np.stack(xs)), len(xs)),
    "alltoall": lambda xs, _: [np.concatenate([_blocks(x, len(xs))[r] for x in xs]) for r in range(len(xs))],
    "shift": lambda xs, _: [*xs[::-1]],
}
