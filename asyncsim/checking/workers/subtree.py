"""Searching below a prefix: as a batch for whoever runs it, and what it showed as a part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from asyncsim.checking.search.exhaust import NAME, ExhaustiveSearch
from asyncsim.checking.search.prefixes import Prefix, Refinement
from asyncsim.checking.search.shard import Failure, Shard
from asyncsim.checking.workers.batch import Batch, judge_of, stop_requested
from asyncsim.machine.simulate import Blocking
from asyncsim.trace.errors import AsyncsimError, DivergenceError, MisuseError
from asyncsim.trace.event import STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from asyncsim.checking.diagnose.outcome import Judge
    from asyncsim.checking.search.coenabled import Coenabled, PairKey
    from asyncsim.checking.search.tally import Progress
    from asyncsim.machine.case import Run
    from asyncsim.machine.simulate import Engine


@dataclass(frozen=True, slots=True)
class Subtree(Batch):
    """A part of an exhaustive exploration; `start` is its place among the others of its round.

    Args:
        prefix: where it lies.
        budget: how many executions at most.

    """

    prefix: Prefix
    budget: int

    def fatal_shard(self) -> SubtreeResult:
        """Return what is said of a part with an execution that ends its process, each time."""
        died = super(Subtree, self).fatal_shard().first["dies"]
        choices = tuple(step.chosen for step in self.prefix.fixed)
        shown = f"below the prefix {','.join(choices)}" if choices else ""
        failure = Failure(died.finding.with_(shown=shown), choices, NAME, "")
        return SubtreeResult(self.start, 1, first={"dies": failure}, limited=True)


@dataclass(slots=True)
class SubtreeResult(Shard):
    """What a search below a prefix showed: a part whose failures go by their kind.

    Args:
        numbers, ends, contents, results, races: the behaviours, ends, contents, results and races of
            `asyncsim.checking.search.exhaust.ExhaustiveResult`.
        limited: something was not seen to its end.
        endless: how many executions were cut short.
        rest: what is left; None if nothing is.
        estimate: how many executions there are, those included that were made.
        refinement: what the prefix does not know; then nothing but what was found counts.
        diverged: how the same choices led to something else; then there is no tree to search.

    """

    numbers: frozenset[int] = frozenset()
    ends: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()
    races: Mapping[PairKey, Coenabled] = field(default_factory=dict)
    limited: bool = False
    endless: int = 0
    rest: Prefix | None = None
    estimate: int = 0
    refinement: Refinement = field(default_factory=Refinement)
    diverged: tuple[str, int] | None = None


def run_subtree(batch: Batch) -> Shard:
    """Search a part of the case that the batch names.

    Raises:
        MisuseError: the kernel cannot be found here, or has another source.

    """
    try:
        return search_subtree(judge_of(batch.spec), batch)
    except AsyncsimError as error:
        raise MisuseError(str(error)) from None  # the others do not survive the way back


def search_subtree(judge: Judge, batch: Batch, *, on_run: Callable[[Run], None] | None = None) -> SubtreeResult:
    """Search a part here, with a judge that is here; a shorter one if the pool was told to stop.

    Args:
        judge: of the case.
        batch: a part of an exhaustive exploration.
        on_run: called after each execution.

    Raises:
        TypeError: it is a part of something else.

    """
    if not isinstance(batch, Subtree):
        raise TypeError(f"{type(batch).__name__} is no part of an exhaustive exploration")
    try:
        return _search(judge, batch, on_run, engine="direct")
    except DivergenceError as error:
        return SubtreeResult(batch.start, 1, limited=True, diverged=(error.reason, error.step))


@Blocking
async def _search(
    judge: Judge,
    batch: Subtree,
    on_run: Callable[[Run], None] | None,
    *,
    engine: Engine,  # noqa: ARG001 - who calls this plainly says that no loop is needed
) -> SubtreeResult:
    exploring = ExhaustiveSearch(judge.case, judge, on_run, _stop_if_told, batch.prefix)
    found = await exploring.run(batch.budget)
    return SubtreeResult(
        batch.start,
        found.executions,
        first={failure_kind(failure): failure for failure in found.failures},
        numbers=found.behaviours,
        ends=found.ends,
        contents=found.contents,
        results=found.results,
        races=found.races,
        limited=exploring.limited,
        endless=exploring.endless,
        rest=exploring.rest,
        estimate=found.estimate,
        refinement=exploring.refinement,
    )


def _stop_if_told(_: Progress) -> None:
    if stop_requested():
        raise KeyboardInterrupt


def failure_kind(failure: Failure) -> str:
    """Return what failures are told apart by."""
    return "raises" if failure.ending == STOPPED else failure.finding.kind
