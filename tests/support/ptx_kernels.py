"""Litmus tests of GPU order and scope as kernels, whose result says whether an outcome was seen."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from asyncsim import AtomicAdd, Kernel, Set, Signal, Window, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ptx import Litmus, Step

    Values = dict[tuple[int, str], int]
    """What a register of a thread, or a word (thread -1), holds at the end."""
    Home = tuple[int, int]

REGISTERS = 8
"""A thread fills fewer."""
_UPDATES = {
    "add": "fetch_add", "sub": "fetch_add", "exch": "exchange", "and": "fetch_and", "or": "fetch_or",
    "xor": "fetch_xor", "min": "fetch_min", "max": "fetch_max",
}  # fmt: skip
_TERM = re.compile(r"(?:P?(?P<thread>\d+):)?(?P<name>\w+)(?P<compare>[=≠])(?:P(?P<other>\d+):)?(?P<right>\w+)")


def seen(condition: str) -> Callable[[Values], bool]:
    """Return what says whether the outcome of a condition was seen; of one that begins with ∀, whether it was broken.

    Args:
        condition: ``P1:r1=1 ∧ x=0``, or a disjunction of such.

    """
    text = condition.replace(" ", "")
    parts = [[_TERM.fullmatch(term) for term in part.split("∧")] for part in text.lstrip("∀").split("\N{LOGICAL OR}")]

    def holds(term: Any, values: Values) -> bool:
        left = values.get((-1 if term["thread"] is None else int(term["thread"]), term["name"]), 0)
        right = int(term["right"]) if term["other"] is None else values.get((int(term["other"]), term["right"]), 0)
        return (left == right) == (term["compare"] == "=")

    def outcome(values: Values) -> bool:
        return any(all(holds(term, values) for term in part) for part in parts) != text.startswith("∀")

    return outcome


def kernel_of(test: Litmus, condition: str) -> Kernel:
    """Return a litmus test as a kernel: each thread a stream of its GPU, in its block; words lie at rank 0.

    Rank 0 stores the start values, lets the others begin, and returns 1 if the outcome was seen; the golden is 0.

    Args:
        test: the litmus test.
        condition: its outcome, as `seen` takes it.

    """
    places = {name: number for number, name in enumerate(test.places)}
    size = (max(len(places), 1),)
    barriers = _barriers(test)
    filled = [sorted({step.to for step in thread if step.to}) for thread in test.threads]
    outcome = seen(condition)
    memory = [
        Window("m", size, "int64"), Window("registers", (len(test.threads), REGISTERS), "int64"),
        Signal("bars", (max(len(barriers), 1),)), Signal("begin", (1,)), Signal("end", (1,)),
    ]  # fmt: skip

    async def threads(rank: Any, m: Any, registers: Any, bars: Any) -> None:
        started = []
        for number, (thread, (block, gpu)) in enumerate(zip(test.threads, test.homes, strict=True)):
            if gpu == rank.id:
                met = {name: (bars[at], count) for at, ((home, name), count) in enumerate(barriers.items())
                       if home == (block, gpu)}  # fmt: skip
                program = Thread(thread, m.at(0), places, met)
                started.append((number, await rank.start(program.run, block=f"b{block}")))
        for number, stream in started:
            values = await rank.join(stream)
            for at, name in enumerate(filled[number]):
                await rank.store(registers.at(0)[number, at], values.get(name, 0))

    @kernel(memory=memory, inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [0] * len(xs))
    async def litmus(rank: Any, _: int, *views: Any) -> int:
        m, registers, bars, begin, end = views
        if rank.id:
            await rank.wait(begin[0] >= 1)
            await threads(rank, m, registers, bars)
            await rank.notify(end.at(0)[0])
            return 0
        for name, at in places.items():
            await rank.store(m[at], test.start.get(name, 0))
        await rank.notify_all(begin.at(peer)[0] for peer in rank.peers)
        await threads(rank, m, registers, bars)
        await rank.wait(end[0] >= rank.size - 1)
        values = {(-1, name): int(await rank.load(m[at])) for name, at in places.items()}
        for number, names in enumerate(filled):
            values |= {(number, name): int(await rank.load(registers[number, at])) for at, name in enumerate(names)}
        return int(outcome(values))

    return litmus


def _barriers(test: Litmus) -> dict[tuple[Home, str], int]:
    """Return how many threads have to come to each barrier of each block before one goes on.

    A barrier has a number, or, where two are given, the second of them; a third is how many threads have to come.
    Without it all threads of the block that name the barrier have to.
    """
    found: dict[tuple[Home, str], int] = defaultdict(int)
    for thread, home in zip(test.threads, test.homes, strict=True):
        for name, args in {_barrier_name(step): step.args for step in thread if step.kind == "barrier"}.items():
            found[home, name] = int(args[2]) if len(args) > 2 else found[home, name] + 1
    return found


def _barrier_name(step: Step) -> str:
    """Return the name of a barrier; a register is taken to be 0."""
    name = step.args[min(len(step.args) - 1, 1)]
    return name if name.isdigit() else "0"


class Thread:
    """One thread of a litmus test, as the program of a stream.

    Args:
        steps: what it does.
        m: the window of the words, at rank 0.
        places: where each word lies in it.
        barriers: of the block: by name the cell that counts who came, and how many have to.

    """

    def __init__(
        self, steps: tuple[Step, ...], m: Any, places: dict[str, int], barriers: dict[str, tuple[Any, int]]
    ) -> None:
        self._steps = steps
        self._m = m
        self._places = places
        self._barriers = barriers
        self._registers: dict[str, int] = {}

    async def run(self, rank: Any) -> dict[str, int]:
        """Do all steps, and return the registers."""
        self._registers = {}
        at = 0
        while at < len(self._steps):
            step = self._steps[at]
            at += 1
            if step.kind == "goto" or (step.kind == "branch" and self._branches(step)):
                at = step.label
            elif step.kind not in ("goto", "branch"):
                result = await getattr(self, f"_{step.kind}")(rank, step)
                if step.to:
                    self._registers[step.to] = int(result)
        return self._registers

    def _value(self, text: str) -> int:
        return int(text) if text.isdigit() else self._registers.get(text, 0)

    def _branches(self, step: Step) -> bool:
        left, right = map(self._value, step.args)
        return (left == right) == (step.what == "Eq")

    def _word(self, step: Step) -> Any:
        return self._m.word[self._places[step.place]]

    async def _write(self, rank: Any, step: Step) -> None:
        value = self._value(step.args[0])
        if step.order:
            await rank.notify(self._word(step), value, Set, order=step.order, scope=step.scope)
        else:
            await rank.store(self._m[self._places[step.place]], value)

    async def _read(self, rank: Any, step: Step) -> int:
        if step.order:
            return await rank.read(self._word(step), order=step.order, scope=step.scope)
        return await rank.load(self._m[self._places[step.place]])

    async def _wait(self, rank: Any, step: Step) -> int:
        bound, *then = map(self._value, step.args)
        condition = self._word(step) == bound if step.what == "Eq" else self._word(step) != bound
        change = {"then": Set(then[0])} if then else {}
        return await rank.wait_value(condition, order=step.order, scope=step.scope, **change)

    async def _atomic(self, rank: Any, step: Step) -> int | None:
        values = [self._value(each) for each in step.args]
        strong = {"order": step.order, "scope": step.scope}
        if step.what == "cas":
            return await rank.compare_exchange(self._word(step), *values, **strong)
        change = -values[0] if step.what == "sub" else values[0]
        if step.to:
            return await getattr(rank, _UPDATES[step.what])(self._word(step), change, **strong)
        return await rank.notify(self._word(step), change, AtomicAdd, **strong)

    async def _fence(self, rank: Any, step: Step) -> None:
        await rank.fence(order=step.order, scope=step.scope)

    async def _barrier(self, rank: Any, step: Step) -> None:
        cell, count = self._barriers[_barrier_name(step)]
        await rank.notify(cell, scope="block")
        if step.what == "sync":
            await rank.wait(cell >= count, scope="block")

    async def _move(self, rank: Any, step: Step) -> int:
        return self._value(step.args[0])

    async def _add(self, rank: Any, step: Step) -> int:
        return sum(map(self._value, step.args))
