"""Toy programs with late memory and streams on the real machine."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from late_brute import COMPARE, Final
from late_rules import FETCH, FORWARDED, LAND, LDST, NIC, ORDERED, SC, SIGNAL, STEP
from late_toy import (
    ADD,
    COMPARING,
    COPIES,
    FENCE,
    JOIN,
    LATE_COPY,
    LOAD,
    NOTIFY,
    POLL,
    QUIET,
    RANK_QUIET,
    SET,
    START,
    STORE,
    SYNC,
    TEST,
    WAIT,
    WRITING,
)  # fmt: skip

from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.late import MODELS, Model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from late_rules import Step
    from late_toy import Op, Program

    from asyncsim.machine.rank import Rank
    from asyncsim.machine.stream import StreamBarrier
    from asyncsim.trace.event import Trace
    from asyncsim.trace.op import Op as Operation
    from asyncsim.trace.world import Actor, SignalView, WindowView

MEMORIES = {"sc": SC, "ldst": LDST, "nic": NIC, "forwarded": FORWARDED, "ordered": ORDERED}
"""The memory models by name; the last two are not offered by asyncsim, but say what each switch is for."""
HALF_MODELS = {
    "forwarded": Model("forwarded", late=True, forwarding=True, place_order=False),
    "ordered": Model("ordered", late=True, forwarding=False, place_order=True),
}


def all_models() -> Mapping[str, Model]:
    """Return what `asyncsim.trace.late.MODELS` must hold for all of `MEMORIES`."""
    return {**MODELS, **HALF_MODELS}


def kernel_of(program: Program, log: dict[tuple[int, int], int]) -> Kernel:
    """Make a kernel of a program: operation i of a stream is step i of that actor.

    What the loads and tests of actor a give is kept in `log`, by actor and index.
    """
    data = Window("data", (len(program.elements),), np.int64, initialised=True)
    cells = (Signal(f"cell{number}", (1,), start=start) for number, start in enumerate(program.starts))
    return Kernel(_run_rank, memory=(data, *cells), params={"program": program, "log": log})


async def _run_rank(rank: Rank, *memory: Any, program: Program, log: dict[tuple[int, int], int]) -> None:
    streams = len(program.ranks[rank.id])
    barrier = rank.stream_barrier(streams) if _meets(program, rank.id) else None
    await _run_stream(rank, _Runner(program, log, memory, barrier, 0))


async def _run_stream(rank: Rank, runner: _Runner) -> None:
    """Do what the program says of this stream."""
    number = runner.program.actors.index((rank.id, runner.stream))
    streams: dict[int, Any] = {}
    for index, op in enumerate(runner.program.streams[number]):
        if op.on_data:
            loaded = await runner.touch(rank, op, runner.program, (number, index))
            if op.kind in (LOAD, POLL):
                runner.log[number, index] = int(loaded)
        elif op.kind == START:
            child = _Runner(runner.program, runner.log, runner.memory, runner.barrier, op.place)
            streams[op.place] = await rank.start(_run_stream, child)
        elif op.kind == JOIN:
            await rank.join(streams[op.place])
        elif op.kind == TEST:
            runner.log[number, index] = int(await rank.test(runner.condition(rank, op)))
        else:
            await runner.order(rank, op)


@dataclass(frozen=True, slots=True)
class _Runner:
    """One stream's view of a program under way."""

    program: Program
    log: dict[tuple[int, int], int]
    memory: tuple[Any, ...]
    barrier: StreamBarrier | None
    stream: int

    async def touch(self, rank: Rank, op: Op, program: Program, at: tuple[int, int]) -> Any:
        """Load, store, add or copy, with a signal or without."""
        data: WindowView = self.memory[0]
        place = data.at(program.elements[op.place])[op.place]
        if op.kind == LOAD:
            return await rank.load(place)
        if op.kind == POLL:
            return await rank.poll(place, lambda x: COMPARE[op.how](program.writer(int(x)), op.value))
        nbi = op.kind == LATE_COPY
        source: Any = data.at(program.elements[op.source])[op.source] if op.kind in COPIES else program.writes(*at)
        if op.change is not None:
            how = "Set" if op.change.how == SET else "AtomicAdd"
            await rank.put_signal(place, source, self.cell(op.change.cell), op.change.value, how, nbi=nbi)
        elif op.kind in (STORE, ADD) and not op.put:
            await rank.store(place, source, atomic="add" if op.kind == ADD else None)
        elif program.elements[op.place] == rank.id and not op.put:
            await rank.get(place, source, nbi=nbi)
        else:
            await rank.put(place, source, nbi=nbi)
        return None

    async def order(self, rank: Rank, op: Op) -> None:
        """Notify, wait, fence, quiet or meet."""
        if op.kind == NOTIFY:
            assert op.change is not None
            how = "Set" if op.change.how == SET else "AtomicAdd"
            order = "relaxed" if op.relaxed else "stores" if op.stores else "release"
            await rank.notify(self.cell(op.change.cell), op.change.value, how, order=order)  # type: ignore[arg-type]
        elif op.kind in COMPARING:
            await rank.wait(self.condition(rank, op), consume=op.kind != WAIT)
        elif op.kind == FENCE:
            await rank.fence()
        elif op.kind in (QUIET, RANK_QUIET):
            await rank.quiet(scope="rank" if op.kind == RANK_QUIET else "stream", pending=op.value)
        else:
            assert op.kind == SYNC
            assert self.barrier is not None
            await rank.sync(self.barrier)

    def cell(self, number: int) -> Any:
        """Return a cell where it belongs."""
        signal: SignalView = self.memory[1 + number]
        return signal.at(self.program.cells[number])[0]

    def condition(self, rank: Rank, op: Op) -> Any:
        """Return what a wait or test asks of an own cell."""
        return COMPARE[op.how](self.cell(op.place), op.value)


def _meets(program: Program, rank: int) -> bool:
    return any(op.kind == SYNC for ops in program.ranks[rank] for op in ops)


# Schedules.


class Dice:
    """Chooses among the ready operations, landings more or less often than steps.

    Args:
        seed: the same choices for the same seed.
        landings: how much more often a landing is chosen than a step; 0: only when there is nothing else.

    """

    def __init__(self, seed: int, landings: float = 1.0) -> None:
        """Load the dice."""
        self._seed = seed
        self._rng = random.Random(seed)  # noqa: S311 - dice, no secret
        self._landings = landings

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start over."""
        self._rng.seed(self._seed)

    def choose(self, ready: Sequence[Operation]) -> Operation:
        """Return one of them."""
        weights = [self._landings if op.actor.wire else 1.0 for op in ready]
        return self._rng.choices(ready, weights)[0] if any(weights) else self._rng.choice(ready)


class Follow:
    """Does exactly what it is told, step by step; the machine must be able to.

    Args:
        names: of actors and wires.

    """

    def __init__(self, names: Sequence[str]) -> None:
        """Take the names."""
        self._names = names
        self._step = 0

    def begin(self, actors: Sequence[Actor]) -> None:
        """Begin with the first."""
        self._step = 0

    def choose(self, ready: Sequence[Operation]) -> Operation:
        """Return the one whose turn it is."""
        name = self._names[self._step]
        self._step += 1
        for op in ready:
            if op.actor.name == name:
                return op
        raise AssertionError(f"step {self._step}: {name} cannot go, only {[op.actor.name for op in ready]}")


# Runs.


@dataclass(frozen=True, slots=True)
class Ran:
    """A run of the machine, and the state it ended in."""

    trace: Trace
    final: Final
    case: Case


async def run_once(program: Program, memory: str, scheduler: Any) -> Ran:
    """Run a program on the machine."""
    log: dict[tuple[int, int], int] = {}
    case = Case(kernel_of(program, log), ranks=len(program.ranks), calls=1, memory=memory)
    run = await simulate.aio(case, scheduler, record="dice")
    assert run.trace is not None
    positions, counters = _followed(program, run.trace)
    size = len(program.ranks)
    values = [int(run.windows[owner][number]) for number, owner in enumerate(program.elements)]
    assert len(run.windows) == size
    loaded = tuple(
        tuple(log.get((actor, index)) for index, op in enumerate(ops) if op.kind in (LOAD, POLL, TEST))
        for actor, ops in enumerate(program.streams)
    )
    final = Final(positions, tuple(values), counters, loaded)
    done = positions == tuple(map(len, program.streams))
    assert run.ending == ("complete" if done else "deadlock"), f"the run ended with {run.ending}: {program}"
    return Ran(run.trace, final, case)


def _followed(program: Program, trace: Trace) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return how far each actor came, and what the cells hold at the end."""
    names = Names(program)
    positions = [0] * len(program.streams)
    counters = list(program.starts)
    for event in trace.events:
        op = event.op
        if not op.actor.wire:
            positions[names.step(op.actor.name, 0)[0]] += 1
        if op.cell is None or op.deferred or op.kind == "test" or (op.kind == "wait" and not op.consume):
            continue
        number = int(op.cell.signal.removeprefix("cell"))
        change = -op.amount if op.consume else op.amount
        counters[number] = change if op.how == "Set" else counters[number] + change
        # A change says what it made of the cell; a consuming wait what it saw before, own pending changes included.
        assert op.consume or event.have == counters[number]
    return tuple(positions), tuple(counters)


class Names:
    """What the machine calls the actors and landings of a program."""

    def __init__(self, program: Program) -> None:
        """Number them as the machine does."""
        self._program = program
        self._actors = {
            f"{rank}.{stream}" if stream else str(rank): number for number, (rank, stream) in enumerate(program.actors)
        }

    def step(self, name: str, index: int) -> Step:
        """Return the transition that is operation `index` of an actor or wire of this name."""
        actor, wire, at = name.partition(">")
        number = self._actors[actor]
        if not wire:
            return number, index, STEP
        if at.endswith("s"):
            return number, int(at.removesuffix("s")), SIGNAL
        op = self._program.streams[number][int(at)]
        assert op.kind in WRITING or op.kind == NOTIFY
        landing = SIGNAL if op.kind == NOTIFY else LAND
        return number, int(at), FETCH if op.kind == LATE_COPY and index == 0 else landing

    def way(self, steps: Sequence[Step]) -> list[str]:
        """Return the names of the actors and wires that do these transitions."""
        names = {number: name for name, number in self._actors.items()}
        way = []
        for actor, index, what in steps:
            puts = what == SIGNAL and self._program.streams[actor][index].kind != NOTIFY
            way.append(names[actor] if what == STEP else f"{names[actor]}>{index}{'s' if puts else ''}")
        return way
