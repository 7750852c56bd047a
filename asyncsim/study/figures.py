"""What asyncsim costs, as ratios within one run: the figures of ``asyncsim bench``.

Absolute times mean nothing on shared machines, and what others take is not ours: so every figure is a ratio of two
processor times that were taken in turn, and the median of the rounds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.machine.handover import HANDOVERS, handover
from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from asyncsim.machine.simulate import Engine

    Clock = Callable[[], float]
    Measure = Callable[[], Sequence["Figure"]]

STEP_KERNEL = CHECK_KERNEL = "reduce_scatter:builtin"
ENGINE_KERNEL = "reduce_scatter:hand"
SMALL = 64
"""From this P on a check is large enough for the bound on what it costs over its reference run."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Args:
        what: the two things, "a ÷ b".
        where: of which kernel, at which P.
        ratio: the figure.
        detail: what it was made of, for a reader; absolute, so not for comparison.
        at_most: what it should not exceed; None: nothing is set.
        at_least: what it should reach; None: nothing is set.

    """

    what: str
    where: str
    ratio: float
    detail: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def wanted(self) -> str:
        """The bound, in signs; empty if none is set."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"

    @property
    def met(self) -> bool:
        """Whether it keeps its bound."""
        over = self.at_most is not None and self.ratio > self.at_most
        return not over and (self.at_least is None or self.ratio >= self.at_least)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Args:
        rounds: of each comparison but those of whole checks.
        runs: schedules in a round.
        handovers: hand-overs in a round.
        checked: at which P a check is compared with its reference run, and in how many rounds.
        grown: the P of the growth; each is twice the one before.

    """

    rounds: int
    runs: int
    handovers: int
    checked: Sequence[tuple[int, int]]
    grown: Sequence[int]


FULL = Sizes(rounds=9, runs=12, handovers=HANDOVERS, checked=((64, 3), (256, 1)), grown=(32, 64, 128))
QUICK = Sizes(rounds=3, runs=5, handovers=5_000, checked=((16, 1), (32, 1)), grown=(8, 16, 32))


def questions(sizes: Sizes, *, clock: Clock = time.process_time) -> list[tuple[str, Measure]]:
    """Return what can be asked: each question, and the function that answers it with figures.

    Args:
        sizes: how much is measured.
        clock: gives seconds.

    """
    asked: list[tuple[str, Measure]] = [
        ("what a scheduled step costs", partial(step_figures, sizes, clock=clock)),
        ("what the direct engine saves", partial(engine_figures, sizes, clock=clock)),
    ]
    asked += [
        (f"what a check costs at P = {ranks}", partial(check_figures, ranks, rounds=rounds, clock=clock))
        for ranks, rounds in sizes.checked
    ]
    return [*asked, ("how the cost of a check grows", partial(growth_figures, sizes.grown, clock=clock))]


@Blocking
async def step_figures(sizes: Sizes, *, clock: Clock = time.process_time) -> Sequence[Figure]:
    """Compare a scheduled step on trio with a bare hand-over of trio's: while exploring, and with events kept.

    Args:
        sizes: how many runs and rounds.
        clock: gives seconds.

    """
    case = Case(locate(STEP_KERNEL), ranks=8)
    steps = len((await simulate.aio(case, Random(seed=1), engine="direct", notice=False)).choices)

    async def step(record: str | None) -> float:
        return await _spent(case, "trio", sizes.runs, clock, record) / steps

    rounds = await _in_turn(
        sizes.rounds,
        partial(handover, times=sizes.handovers, clock=clock),
        partial(step, None),
        partial(step, "random:seed=1"),
    )
    where = f"{STEP_KERNEL}, P = 8"
    return [
        _figure(name, where, rounds, (place, 0), bound, f"{_micro(rounds, place)} ÷ {_micro(rounds, 0)}")
        for name, place, bound in (
            ("scheduled step, exploring ÷ bare trio hand-over", 1, 2.0),
            ("scheduled step, events kept ÷ bare trio hand-over", 2, 2.8),
        )
    ]


@Blocking
async def engine_figures(sizes: Sizes, *, clock: Clock = time.process_time) -> Sequence[Figure]:
    """Compare the schedules a second of the two engines.

    Args:
        sizes: how many runs and rounds.
        clock: gives seconds.

    """
    case = Case(locate(ENGINE_KERNEL), ranks=4)
    rounds = await _in_turn(
        sizes.rounds,
        partial(_spent, case, "trio", sizes.runs, clock, None),
        partial(_spent, case, "direct", sizes.runs, clock, None),
    )
    slow, fast = (1 / _middle(rounds, place) for place in (0, 1))
    return [
        Figure(
            "schedules a second, direct engine ÷ trio",
            f"{ENGINE_KERNEL}, P = 4",
            _ratio(rounds, 0, 1),
            f"{fast:.0f} ÷ {slow:.0f} a second",
            at_least=2.5,
        )
    ]


@Blocking
async def check_figures(ranks: int, *, rounds: int = 1, clock: Clock = time.process_time) -> Sequence[Figure]:
    """Compare a whole check with its own reference run, which is recorded, on either engine.

    A check runs twice, the second time on the direct engine. Small ones have other costs, so their ratio has no bound.

    Args:
        ranks: P.
        rounds: how often it is measured.
        clock: gives seconds.

    """
    bound = 2.0 if ranks >= SMALL else None
    figures: list[Figure] = []
    engines: tuple[Engine, ...] = ("trio", "direct")
    for engine in engines:
        taken = await _in_turn(
            rounds,
            partial(_reference, ranks, engine, clock),
            partial(_check, ranks, engine, clock),
        )
        detail = f"{_middle(taken, 1):.2f} s ÷ {_middle(taken, 0):.2f} s"
        name = f"check ÷ its reference run, {engine} engine"
        figures.append(_figure(name, f"{CHECK_KERNEL}, P = {ranks}", taken, (1, 0), bound, detail))
    return figures


@Blocking
async def growth_figures(grown: Sequence[int], *, clock: Clock = time.process_time) -> Sequence[Figure]:
    """Compare a check of 2P ranks with one of P, beside how the operations grow.

    Args:
        grown: numbers of ranks, each twice the one before it.
        clock: gives seconds.

    """
    seconds, steps = [], []
    for ranks in grown:
        seconds.append(await _check(ranks, "trio", clock))
        steps.append(
            len((await simulate.aio(Case(locate(CHECK_KERNEL), ranks), Fifo(), engine="direct", notice=False)).choices)
        )
    return [
        Figure(
            f"check at P = {grown[place]} ÷ at P = {grown[place - 1]}",
            CHECK_KERNEL,
            _quotient(seconds[place], seconds[place - 1]),
            f"{seconds[place]:.2f} s ÷ {seconds[place - 1]:.2f} s; operations: {steps[place] / steps[place - 1]:.2f}",
        )
        for place in range(1, len(grown))
    ]


async def _spent(case: Case, engine: Engine, runs: int, clock: Clock, record: str | None) -> float:
    scheduler = Random(seed=1)
    started = clock()
    for _ in range(runs):
        await simulate.aio(case, scheduler, record=record, engine=engine, notice=False)
    return (clock() - started) / runs


async def _reference(ranks: int, engine: Engine, clock: Clock) -> float:
    """Return the seconds of a reference run, of a case that was not run before, as a check's is."""
    case = Case(locate(CHECK_KERNEL), ranks)
    started = clock()
    await simulate.aio(case, Fifo(), record="fifo", engine=engine)
    return clock() - started


async def _check(ranks: int, engine: Engine, clock: Clock) -> float:
    kernel = locate(CHECK_KERNEL)
    started = clock()
    await check.aio(kernel, ranks=ranks, engine=engine)
    return clock() - started


async def _in_turn(rounds: int, *measures: Callable[[], Awaitable[float]]) -> list[list[float]]:
    """Run each measure once a round, so that whatever disturbs the machine disturbs all alike."""
    return [[await measure() for measure in measures] for _ in range(rounds)]


def _figure(  # noqa: PLR0913, PLR0917 - the parts of a figure
    what: str,
    where: str,
    rounds: Sequence[Sequence[float]],
    places: tuple[int, int],
    at_most: float | None,
    detail: str,
) -> Figure:
    return Figure(what, where, _ratio(rounds, *places), detail, at_most=at_most)


def _ratio(rounds: Sequence[Sequence[float]], above: int, below: int) -> float:
    """Return the median over the rounds of the one measure ÷ the other."""
    return median(_quotient(taken[above], taken[below]) for taken in rounds)


def _quotient(above: float, below: float) -> float:
    """Return the quotient; infinite where the clock is too coarse to see the divisor."""
    return above / below if below else float("inf")


def _middle(rounds: Sequence[Sequence[float]], place: int) -> float:
    return median(taken[place] for taken in rounds)


def _micro(rounds: Sequence[Sequence[float]], place: int) -> str:
    return f"{_middle(rounds, place) * 1e6:.1f} µs"
