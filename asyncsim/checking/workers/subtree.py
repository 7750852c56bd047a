"""Searching below a prefix: as a batch for whoever runs it, and what it showed as a part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.checking.search.exhaust import NAME, Exhausting
from asyncsim.checking.search.prefixes import Learnt, Prefix
from asyncsim.checking.search.shard import Failure, Part
from asyncsim.checking.workers.batch import Batch, prepared, told_to_stop
from asyncsim.machine.simulate import Blocking
from asyncsim.trace.errors import AsyncsimError, DivergenceError, MisuseError
from asyncsim.trace.event import STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import Met, Pair
    from asyncsim.checking.search.tally import Progress
    from asyncsim.machine.case import Run
    from asyncsim.machine.simulate import Engine


@dataclass(frozen=True, slots=True)
class Below(Batch):
    """A part of an exhaustive exploration; `start` is its place among the others of its round.

    Args:
        prefix: where it lies.
        budget: how many executions at most.

    """

    prefix: Prefix
    budget: int

    def deadly(self) -> Searched:
        """Return what is said of a part with an execution that ends its process, each time."""
        died = super(Below, self).deadly().first["dies"]
        choices = tuple(step.chosen for step in self.prefix.fixed)
        shown = f"below the prefix {','.join(choices)}" if choices else ""
        failure = Failure(died.finding.with_(shown=shown), choices, NAME, "")
        return Searched(self.start, 1, first={"dies": failure}, limited=True)


@dataclass(slots=True)
class Searched(Part):
    """What a search below a prefix showed: a part whose failures go by their kind.

    Args:
        numbers, ends, contents, results, races: the behaviours, ends, contents, results and races of
            `asyncsim.checking.search.exhaust.Exhausted`.
        limited: something was not seen to its end.
        endless: how many executions were cut short.
        rest: what is left; None if nothing is.
        estimate: how many executions there are, those included that were made.
        learnt: what the prefix does not know; then nothing but what was found counts.
        diverged: how the same choices led to something else; then there is no tree to search.

    """

    numbers: frozenset[int] = frozenset()
    ends: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    races: Mapping[Pair, Met] = field(default_factory=dict)
    limited: bool = False
    endless: int = 0
    rest: Prefix | None = None
    estimate: int = 0
    learnt: Learnt = field(default_factory=Learnt)
    diverged: tuple[str, int] | None = None


def run_below(batch: Batch) -> Part:
    """Search a part of the case that the batch names.

    Raises:
        MisuseError: the kernel cannot be found here, or has another source.

    """
    try:
        return search(prepared(batch.work), batch)
    except AsyncsimError as error:
        raise MisuseError(str(error)) from None  # the others do not survive the way back


def search(judge: Judge, batch: Batch, *, on_run: Callable[[Run], None] | None = None) -> Searched:
    """Search a part here, with a judge that is here; a shorter one if the pool was told to stop.

    Args:
        judge: of the case.
        batch: a part of an exhaustive exploration.
        on_run: called after each execution.

    Raises:
        TypeError: it is a part of something else.

    """
    if not isinstance(batch, Below):
        raise TypeError(f"{type(batch).__name__} is no part of an exhaustive exploration")
    try:
        return _search(judge, batch, on_run, engine="direct")
    except DivergenceError as error:
        return Searched(batch.start, 1, limited=True, diverged=(error.reason, error.step))


@Blocking
async def _search(
    judge: Judge,
    batch: Below,
    on_run: Callable[[Run], None] | None,
    *,
    engine: Engine,  # noqa: ARG001 - who calls this plainly says that no loop is needed
) -> Searched:
    exploring = Exhausting(judge.case, judge, on_run, _stop_if_told, batch.prefix)
    found = await exploring.run(batch.budget)
    return Searched(
        batch.start,
        found.executions,
        first={kind_of(failure): failure for failure in found.failures},
        numbers=found.behaviours,
        ends=found.ends,
        contents=found.contents,
        results=found.results,
        races=found.races,
        limited=exploring.limited,
        endless=exploring.endless,
        rest=exploring.rest,
        estimate=found.estimate,
        learnt=exploring.learnt,
    )


def _stop_if_told(_: Progress) -> None:
    if told_to_stop():
        raise KeyboardInterrupt


def kind_of(failure: Failure) -> str:
    """Return what failures are told apart by."""
    return "raises" if failure.ending == STOPPED else failure.finding.kind
