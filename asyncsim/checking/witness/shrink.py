"""Shrinking: from a schedule that fails to one that a person can follow.

The target is a pair: fewest task switches first, then fewest steps. The means are Hypothesis': a
list of named passes, each of which proposes simpler schedules; whatever still fails and has a
smaller target is the new schedule, and the passes go on until none of them helps.

A schedule is a list of segments (`asyncsim.schedulers.lenient`), which fits any run as far as it
fits. So a pass may cut and join as it likes, and what is kept is never the proposal but the
schedule that was executed.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from asyncsim.machine.simulate import Blocking, simulate
from asyncsim.schedulers.lenient import UNTIL_BLOCKED, Lenient
from asyncsim.trace.errors import KernelError, MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.machine.case import Case, Run
    from asyncsim.schedulers.lenient import Segment

    Segments = list[Segment]

BUDGET = 2000
"""How many runs a shrink may take."""


@Blocking
async def shrink(
    case: Case, choices: Sequence[str], fails: Callable[[Run], bool], *, budget: int = BUDGET
) -> list[str]:
    """Return the choices of a run that fails too, with as few task switches, then steps, as was found.

    Args:
        case: what is run.
        choices: a schedule that fails: actors by name; may be only its beginning.
        fails: says whether a run fails in the way that matters. A run whose kernel raises has no
            result, so it counts as one that does not.
        budget: how many runs may be made.

    Raises:
        MisuseError: the schedule that was given does not fail.

    """
    search = _Search(case, fails, budget)
    if not await search.accepts(segments_of(choices)):
        raise MisuseError(f"shrink: the schedule of {len(choices)} choices does not fail; give one that does")
    improved = True
    while improved:
        improved = False
        for propose in PASSES:
            while await search.try_all(propose):
                improved = True
    return search.best


def segments_of(choices: Sequence[str]) -> Segments:
    """Return a schedule, run-length coded."""
    return [(name, sum(1 for _ in same)) for name, same in groupby(choices)]


class _Search:
    """The best schedule so far, and what is left of the budget."""

    def __init__(self, case: Case, fails: Callable[[Run], bool], budget: int) -> None:
        self.best: list[str] = []
        self._case = case
        self._fails = fails
        self._left = budget
        self._target: tuple[int, int] | None = None
        self._tried: set[tuple[Segment, ...]] = set()

    async def accepts(self, segments: Segments) -> bool:
        """Run a proposal; keep what was executed if it fails and is simpler."""
        key = tuple(segments)
        if key in self._tried or self._left <= 0:
            return False
        self._tried.add(key)
        self._left -= 1
        try:
            run = await simulate.aio(self._case, Lenient(segments), engine="direct", notice=False)
        except KernelError:
            return False
        target = (len(segments_of(run.choices)), len(run.choices))
        if self._target is not None and target >= self._target:
            return False
        if not self._fails(run):
            return False
        self._target = target
        self.best = run.choices
        return True

    async def try_all(self, propose: Callable[[Segments], Iterator[Segments]]) -> bool:
        """Try one pass on the best schedule, up to the first success, from which it starts again."""
        for segments in propose(segments_of(self.best)):
            if await self.accepts(segments):
                return True
        return False


def drop(segments: Segments) -> Iterator[Segments]:
    """Leave out pieces: all, halves, quarters, down to single segments (ddmin, Zeller and Hildebrandt 2002)."""
    size = len(segments)
    while size:
        for start in range(0, len(segments), size):
            yield segments[:start] + segments[start + size :]
        size //= 2


def cut(segments: Segments) -> Iterator[Segments]:
    """Leave out the end: the rest runs to block."""
    for end in range(1, len(segments)):
        yield segments[:end]


def extend(segments: Segments) -> Iterator[Segments]:
    """Let a segment go on until its actor blocks."""
    for i, (name, _) in enumerate(segments):
        yield [*segments[:i], (name, UNTIL_BLOCKED), *segments[i + 1 :]]


def merge(segments: Segments) -> Iterator[Segments]:
    """Join a segment with the previous one, or the next one, of the same actor."""
    for i, (name, count) in enumerate(segments):
        for j in range(i + 1, len(segments)):
            if segments[j][0] == name:
                both = (name, count + segments[j][1])
                yield [*segments[:i], both, *segments[i + 1 : j], *segments[j + 1 :]]
                yield [*segments[:i], *segments[i + 1 : j], both, *segments[j + 1 :]]
                break


def move(segments: Segments) -> Iterator[Segments]:
    """Put a segment to another place: to the front, or past its neighbour."""
    for i in range(1, len(segments)):
        yield [segments[i], *segments[:i], *segments[i + 1 :]]
        yield [*segments[: i - 1], segments[i], segments[i - 1], *segments[i + 1 :]]


def shorten(segments: Segments) -> Iterator[Segments]:
    """Take operations off a segment: all but one, half, one; alone, or with everything after it."""
    for i, (name, count) in enumerate(segments):
        for fewer in dict.fromkeys((1, count // 2, count - 1)):
            if 0 < fewer < count:
                yield [*segments[:i], (name, fewer), *segments[i + 1 :]]
                yield [*segments[:i], (name, fewer)]


PASSES: tuple[Callable[[Segments], Iterator[Segments]], ...] = (drop, cut, extend, merge, move, shorten)
"""In this order: what makes the largest steps comes first."""
