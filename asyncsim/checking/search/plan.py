"""Plans: which scheduler each of many schedules has, as texts that name them exactly."""

from __future__ import annotations

import inspect
from itertools import count
from typing import TYPE_CHECKING

from asyncsim.schedulers.table import SCHEDULERS, make

if TYPE_CHECKING:
    from collections.abc import Iterator

PCT_DEPTH = 3


def mixed_plan(ranks: int, seed: int, steps: int) -> Iterator[str]:
    """Yield scheduler texts without end: every rank starved once, then PCT, POS and random in turn.

    Args:
        ranks: P.
        seed: of the first of each; the next has the next.
        steps: how long a run is, which PCT needs to place its priority changes.

    """
    yield from (f"starve:rank={rank}" for rank in range(ranks))
    for n in count(seed):
        yield from (f"pct:depth={PCT_DEPTH},steps={steps},seed={n}", f"pos:seed={n}", f"random:seed={n}")


def seeded_plan(scheduler: str, seed: int, steps: int) -> Iterator[str]:
    """Yield one scheduler with one seed after another; the same text each time if it takes none.

    Args:
        scheduler: as text, with or without arguments: "pct:k=3".
        seed: of the first; each further one has the next.
        steps: how long a run is, for schedulers that take it.

    Raises:
        MisuseError: there is no such scheduler.

    """
    make(scheduler, seed=seed)  # says what is wrong with the text before anything runs
    takes = inspect.signature(SCHEDULERS[scheduler.partition(":")[0].strip()]).parameters
    for n in count(seed):
        extra = [
            f"{key}={value}"
            for key, value in (("steps", steps), ("seed", n))
            if key in takes and f"{key}=" not in scheduler.replace(" ", "")
        ]
        joint = ("," if ":" in scheduler else ":") if extra else ""
        yield f"{scheduler}{joint}{','.join(extra)}"
