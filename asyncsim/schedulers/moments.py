"""Moments: a few steps of a run, drawn by chance, at which a scheduler does something else.

How long a run is has to be known for that. It is learned: the longest run so far is the estimate
for the next one, and the first run guesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.trace.world import Actor

_STEPS_AN_ACTOR = 32
"""What the first run guesses."""


class Moments:
    """At most `number` different steps of each run.

    Args:
        number: how many.
        seed: of the dice; runs differ.
        steps: how long a run is; None to learn it from run to run.

    Attributes:
        dice: of the present run, for whatever else is left to chance.
        given: the number of steps that was given.

    """

    __slots__ = ("_at", "_longest", "_number", "_runs", "_seed", "_step", "dice", "given")

    def __init__(self, number: int, seed: int, steps: int | None) -> None:
        self.given = steps
        self.dice: Callable[[], float] = generator(seed, 0).random
        self._number = number
        self._seed = seed
        self._runs = 0
        self._longest = 0
        self._step = 0
        self._at: list[int] = []

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run with moments of its own. Some runs have fewer: two may fall together."""
        self._longest = max(self._longest, self._step)
        self._step = 0
        self.dice = generator(self._seed, self._runs).random
        self._runs += 1
        steps = self.given or self._longest or _STEPS_AN_ACTOR * len(actors)
        self._at = sorted({int(self.dice() * steps) for _ in range(self._number)}, reverse=True)

    def tick(self) -> bool:
        """Take a step; say whether a moment has come. One that finds nothing to do is given back by `wait`."""
        self._step += 1
        if self._at and self._at[-1] < self._step:
            self._at.pop()
            return True
        return False

    def wait(self) -> None:
        """Let the moment that has just come be the next step instead."""
        self._at.append(self._step)


def checked_bound(scheduler: str, k: int, seed: int, steps: int | None) -> Moments:
    """Return the moments of a scheduler with these arguments, if they can be right.

    Args:
        scheduler: its name, for the message.
        k: how many moments to draw, at least 0.
        seed: of the random numbers, at least 0.
        steps: how long the runs are expected to be, in steps, at least 1; None: as long as the longest run so far.

    Raises:
        MisuseError: one of them is no such integer.

    """
    given = None if steps is None else checked(scheduler, "steps", steps, low=1)
    return Moments(checked(scheduler, "k", k), checked(scheduler, "seed", seed), given)
