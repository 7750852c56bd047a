"""Plans as a kernel: every launch of them in one run, so that counters, scratch and proxies live from call to call.

A rank's main task is the caller: it writes the input, launches, and reads the output when the launch has ended.
Thread blocks are streams of the launch; the proxy of each port channel is a stream that outlives it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import count
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mscclpp.layout import Context, Layout
from asyncsim.frontends.mscclpp.msccl import FifoThread
from asyncsim.frontends.mscclpp.operations import FOLD, Launch, State, Thread
from asyncsim.frontends.mscclpp.pairing import MEANT, Pairing, check_plan, check_size
from asyncsim.frontends.mscclpp.plan import INPUT, OUTPUT, PORT, flat
from asyncsim.machine.kernel import Kernel
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from asyncsim.frontends.mscclpp.operations import Steps
    from asyncsim.frontends.mscclpp.plan import Gpu, Operation, Plan
    from asyncsim.machine.rank import Rank

_SOURCE = """
async def at(steps):
    given = None
    try:
        while True:
            given = await steps.send(given)
    except StopIteration:
        pass
"""


@cache
def _code() -> Any:  # noqa: ANN401 - a code object
    """Return the code that awaits steps, all of it on one line, whose number can then be any."""
    tree = ast.parse(_SOURCE)
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = 1  # type: ignore[attr-defined]
    space: dict[str, Any] = {}
    exec(compile(tree, "plan", "exec"), space)  # noqa: S102 - the text above
    return space["at"].__code__


@lru_cache(maxsize=4096)
def standing(place: str, number: int) -> Callable[[Steps], Coroutine[Any, Any, None]]:
    """Return a function that awaits steps, and that reports find at ``place:number``: an operation of the plan.

    Args:
        place: what stands for the file: ``plan.json:tb1``.
        number: what stands for the line: which operation.

    """
    return FunctionType(_code().replace(co_filename=place, co_firstlineno=number), {"__name__": "plan"}, "at")


def _site(context: Context, op: Operation) -> Callable[[Steps], Coroutine[Any, Any, None]]:
    if op.inside >= 0:
        return standing(f"{context.plan.file}:tb{op.block}.{op.index}", op.inside)
    return standing(f"{context.plan.file}:tb{op.block}", op.index)


@dataclass(frozen=True, slots=True, eq=False)
class Launches:
    """Plans that are launched in turn on the same gpus.

    Args:
        plans: one a launch.
        mode: "meant" or "executed".
        pairs: how many pairs of buffers the caller has for each plan, used in turn.
        size: of the input in bytes; None: it is not said.
        late: whether threads complete what they wrote before they meet: for memory models where a meeting does not.
        omitted: the paths of operations that read, but store nothing.

    """

    plans: tuple[Plan, ...]
    mode: str = MEANT
    pairs: int = 1
    size: int | None = None
    late: bool = False
    omitted: frozenset[str] = frozenset()

    def context(self, plan: Plan, suffix: str = "") -> Context:
        """Return what is set up for a plan.

        Args:
            plan: one of these.
            suffix: of the names of its memory.

        """
        return Context(plan, suffix, None if self.size is None else check_size(plan, self.size))

    def rounds(self, plan: Plan) -> dict[str, int]:
        """Return how many rounds of each pipeline of a plan are run, by its path."""
        context = self.context(plan)
        return {op.path: context.rounds(op) for op in plan.operations(pipelines=True) if op.body}

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
        name = "".join(letter if letter.isalnum() or letter in "_-." else "_" for letter in first.name) or "plan"
        return Kernel(
            program, memory=tuple(running.layout.declarations()), inputs=running.inputs,
            golden=running.golden if running.has_golden else None, separate_streams=running.is_separate,
            given_name=name, about=", ".join(plan.file for plan in self.plans),
        )  # fmt: skip


async def _PROGRAM(rank: Any, x: Any, *memory: Any, running: Any) -> Any:  # noqa: ANN401, N802 - its code alone is used
    return await running.run(rank, x, memory)


class _Running:
    """What all ranks of a kernel of launches know."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches
        made: dict[tuple[str, int], Context] = {}
        self.contexts: list[Context] = []
        for number, plan in enumerate(launches.plans):
            key = plan.name, sum(other.name == plan.name for other in launches.plans[:number]) % launches.pairs
            if key not in made:
                made[key] = launches.context(plan, str(len(made)) if made else "")
            if made[key].plan is not plan:
                raise MisuseError(
                    f"{plan.file} and {made[key].plan.file} are both named {plan.name!r}; the executor "
                    "keeps what it set up by name, so one would run on the other's"
                )
            self.contexts.append(made[key])
        self.layout = Layout(list(made.values()))
        self.pairings = {id(context): Pairing(context.plan, self.layout) for context in made.values()}

    # The caller's data.

    def inputs(self, ranks: int, _call: int, rng: np.random.Generator) -> list[list[Any]]:
        """Return the inputs: of each rank a list with one array a launch, (rows, 2) of int32."""
        gpus = self.contexts[0].plan.ranks
        if ranks != gpus:
            raise MisuseError(f"the plan is for {gpus} gpus, not {ranks}")
        sizes = [[c.plan.gpus[rank].chunks[INPUT] * self.layout.rows for c in self.contexts] for rank in range(ranks)]
        return [[rng.integers(1, 1000, (size, 2), np.int32) for size in of_rank] for of_rank in sizes]

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
            fold = FOLD[_fold(context.plan)] if self.launches.mode == MEANT else np.add
            each.append([] if right is None else right([x[number] for x in xs], fold))
        return [[outputs[rank] for outputs in each] for rank in range(len(xs))]

    def returned(self, context: Context, gpu: Gpu) -> list[tuple[int, int]]:
        """Return the chunks of its output that the caller reads: all, or those that the plan writes."""
        chunks = gpu.chunks[OUTPUT]
        if self.has_golden:
            return [(0, chunks)] if chunks else []
        written = {
            chunk for op in context.plan.operations() for span in op.targets
            if span.buffer == OUTPUT and gpu.id in span.ranks for chunk in range(span.index, span.index + span.size)
        }  # fmt: skip
        starts = sorted(chunk for chunk in written if chunk - 1 not in written)
        return [(low, next(end for end in count(low) if end not in written)) for low in starts]

    # A rank.

    async def run(self, rank: Rank, x: Sequence[Any], memory: Sequence[Any]) -> list[Any]:
        """Launch each plan on one rank, and return what the caller read after each launch."""
        if rank.call:
            raise RefusedError("all launches of a plan are one call of its kernel: give more launches, and calls=1")
        state = State(dict(zip([declared.name for declared in self.layout.declarations()], memory, strict=True)))
        place, outputs = f"{self.contexts[0].plan.file}:caller", []
        await standing(place, 0)(self._start_proxies(rank, state))
        for number, context in enumerate(self.contexts):
            nth, pairing = self.contexts[:number].count(context), self.pairings[id(context)]
            launch = Launch(
                context, self.layout, pairing, state, number, self.launches.mode, nth, self.launches.omitted
            )
            read: list[Any] = []
            with rank.phase(f"launch {number + 1}, the caller writes the input"):
                await standing(place, 1)(self._write(rank, launch, x[number]))
            with rank.phase(f"launch {number + 1}"):
                await standing(place, 2)(self._launched(rank, launch))
            with rank.phase(f"launch {number + 1} has ended, the caller reads the output"):
                await standing(place, 3)(self._read(rank, launch, read))
            outputs.append(np.concatenate(read) if read else np.empty((0, 2), np.int32))
        return outputs

    def _start_proxies(self, rank: Rank, state: State) -> Steps:
        for context in self.layout.contexts:
            for channel in range(len(context.plan.gpus[rank.id].peers[PORT])):
                if self.pairings[id(context)].users("push", rank.id, channel):
                    name = f"proxy{context.suffix}_{channel}" if context.suffix else f"proxy{channel}"
                    yield rank.start(self._proxy, state, context, channel, block=name, name=name, lasting=True)

    def _write(self, rank: Rank, launch: Launch, x: Any) -> Steps:  # noqa: ANN401 - an array
        if len(x):
            name, first = self.layout.start(launch.context, rank.id, INPUT, 0, 0)
            yield rank.store(launch.state.memory[name][first : first + len(x), :], x)

    def _read(self, rank: Rank, launch: Launch, read: list[Any]) -> Steps:
        for low, high in self.returned(launch.context, launch.context.plan.gpus[rank.id]):
            name, first = self.layout.start(launch.context, rank.id, OUTPUT, low, 0)
            rows = (high - low) * self.layout.rows
            read.append((yield rank.load(launch.state.memory[name][first : first + rows, :])))

    def _launched(self, rank: Rank, launch: Launch) -> Steps:
        """Start all threads of a launch, and wait until they have ended."""
        plan = launch.context.plan
        gpu = plan.gpus[rank.id]
        lanes = {number: self.layout.lanes[plan.file, gpu.id, number] for number in gpu.blocks}
        comers: dict[int, tuple[int, set[int]]] = {}
        for op in (op for listed in gpu.blocks.values() for op in flat(listed) if op.name == "barrier"):
            comers.setdefault(op.number, (op.parties, set()))[1].add(op.block)
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
        context = launch.context
        thread = (Thread if context.plan.fifos is None else FifoThread)(rank, launch, lane, lanes, self.launches.late)
        for op, thread.unit in self._rounds(context, listed):
            with rank.phase(f"{op.where}: {op.name}"):
                await _site(context, op)(thread.steps(op))
        if listed:
            await standing(f"{context.plan.file}:end", listed[0].block)(thread.settled())

    def _rounds(
        self, context: Context, listed: Sequence[Operation]
    ) -> Iterator[tuple[Operation, tuple[int, int] | None]]:
        """Yield the operations of a thread block in the order in which they run, with the round of their pipeline."""
        for op in listed:
            rounds = context.rounds(op) if op.name == "pipeline" else 0
            if not rounds:
                yield op, None
            for number in range(rounds):
                for inner in op.body:
                    yield inner, (-(-op.chunks * self.layout.rows // rounds), number)

    async def _proxy(self, rank: Rank, state: State, context: Context, channel: int) -> None:
        """Take the entries of a port channel out of the FIFO, one after the other, of all launches."""
        cell = state.memory[f"fifo{context.suffix}"][channel]
        for number in count():
            with rank.phase(f"the proxy of gpu {rank.id}"):
                await standing(f"{context.plan.file}:proxy", channel)(only(rank.wait(cell >= number + 1)))
            entry = state.queues[context.suffix, channel][number]
            thread = Thread(rank, entry.launch, 0, 1, self.launches.late)
            label = f"launch {entry.launch.number + 1}, the proxy for {entry.op.where}: {entry.op.name}, {entry.kind}"
            with rank.phase(label):
                await _site(context, entry.op)(thread.proxy(entry))


def only(step: Coroutine[Any, Any, Any]) -> Steps:
    """Yield one step."""
    yield step


def _fold(plan: Plan) -> str:
    names = {op.reduce for op in plan.operations() if plan.fifos is None and (op.row.folds or op.name == "glres")}
    return names.pop() if len(names) == 1 else "sum"


def _golden_of(plan: Plan) -> Callable[[Sequence[Any], Any], list[Any]] | None:
    """Return what gives the outputs of a collective for the inputs; None: it is not known."""
    return _GOLDENS.get("shift" if plan.collective == "sendrecv" and plan.ranks == 2 else plan.collective)  # noqa: PLR2004 - a pair


_GOLDENS: dict[str, Callable[[Sequence[Any], Any], list[Any]]] = {
    "allreduce": lambda xs, fold: [fold.reduce(np.stack(xs))] * len(xs),
    "allgather": lambda xs, _: [np.concatenate(xs)] * len(xs),
    "reducescatter": lambda xs, fold: np.split(fold.reduce(np.stack(xs)), len(xs)),
    "alltoall": lambda xs, _: [np.concatenate([np.split(x, len(xs))[r] for x in xs]) for r in range(len(xs))],
    "shift": lambda xs, _: [*xs[::-1]],
}
