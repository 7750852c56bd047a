"""PCT, probabilistic concurrency testing: random priorities that change at few random steps.

Source: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized scheduler with probabilistic
guarantees of finding bugs", ASPLOS 2010. A bug of depth d (d orderings must come out wrong) among
n actors and k steps is found by one run with a probability of at least 1 / (n k^(d-1)).

How this differs: k is learned. The longest run so far is the estimate for the next one, and the
first run guesses. A step is one operation at the gate, and a rank that waits is simply not ready.
Streams, and the wires on which things land late, get a priority when they first turn up; each of
them counts among the n.
The bound holds where k is not smaller than the run is long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor

_STEPS_AN_ACTOR = 32
"""What the first run guesses."""


MOST_DEPTH = 1000


class Pct:
    """The ready actor of the highest priority, but for `depth` - 1 moments at which it loses it.

    Args:
        depth: how many orderings a bug needs; at least 1.
        seed: of the dice; runs of one scheduler differ.
        steps: k, how long a run is; None to learn it from run to run.

    """

    __slots__ = ("_depth", "_dice", "_given", "_longest", "_priorities", "_runs", "_seed", "_step", "_sudden")

    def __init__(self, depth: int = 3, seed: int = 0, steps: int | None = None) -> None:
        self._depth = checked("pct", "depth", depth, low=1)
        if depth > MOST_DEPTH:
            raise MisuseError(f"pct: depth={depth}; at most {MOST_DEPTH}: no known bug needs even ten")
        self._seed = checked("pct", "seed", seed)
        self._given = None if steps is None else checked("pct", "steps", steps, low=1)
        self._runs = 0
        self._longest = 0
        self._step = 0
        self._dice: Callable[[], float] = generator(seed, 0).random
        self._priorities: dict[int, float] = {}
        self._sudden: dict[int, int] = {}

    def __str__(self) -> str:
        steps = "" if self._given is None else f",steps={self._given}"
        return f"pct:depth={self._depth},seed={self._seed}{steps}"

    @property
    def steps(self) -> int | None:
        """What k is now: given, or the longest run so far; None before the first run has ended."""
        return self._given or self._longest or None

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run: new priorities, new moments."""
        self._longest = max(self._longest, self._step)
        self._step = 0
        dice = self._dice = generator(self._seed, self._runs).random
        self._runs += 1
        # From 1 upwards at the start, below 1 after a change: a changed one is below all others,
        # and the later the change in this list, the higher, as in the paper.
        self._priorities = {actor.order: 1.0 + dice() for actor in actors}
        k = self.steps or _STEPS_AN_ACTOR * len(actors)
        self._sudden = {1 + int(dice() * k): number for number in range(self._depth - 1)}

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation of the highest priority; at a moment of change, lower it afterwards."""
        priorities = self._priorities
        best = ready[0]
        highest = -1.0
        for op in ready:
            order = op.actor.order
            priority = priorities.get(order)
            if priority is None:  # an actor that was started since
                priority = priorities[order] = 1.0 + self._dice()
            if priority > highest:
                best, highest = op, priority
        self._step += 1
        number = self._sudden.get(self._step)
        if number is not None:
            priorities[best.actor.order] = number / self._depth
        return best
