"""Forged certificates: the checker takes those of what is clean, and no others, however they are made.

The oracle is brute force over all interleavings.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

import late_programs
import late_runs
import pytest
import trio
from campaign import MEMORIES, shown
from forging import Forgery, accepts, is_clean
from late_brute import TooManyStatesError

from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable

ORDINARY, THOROUGH = 10_000, 300_000
EACH = 40
"""Forgeries of one program."""
FAMILIES = tuple(late_programs.FAMILIES)


async def base_number(number: int) -> tuple[bool, Forgery] | None:
    """Return whether a small program is clean, and its certificate by force; None if it does not serve."""
    memory = MEMORIES[(number // len(FAMILIES)) % 3]
    program = late_programs.program_number(FAMILIES[number % len(FAMILIES)], number)
    trace = (await late_runs.run_once(program, memory, late_runs.Dice(number))).trace
    if memory != "sc" and trace.footer.ending != COMPLETE:
        return None  # the wires of what it never came to are missing from it
    try:
        return is_clean(program, memory), Forgery.of(program, memory, trace)
    except TooManyStatesError:
        return None


@pytest.mark.law
def test_no_forgery_is_accepted(
    programs_of: Callable[[int, int], int], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """A forgery of anything but a program that is clean: cuts moved, operations changed, hangs completed, and so on."""
    total = programs_of(ORDINARY, THOROUGH)
    counts: Counter[str] = Counter()
    rng = random.Random(7)  # noqa: S311 - dice, no secret

    async def campaign() -> None:
        for number in count():
            found = await base_number(number)
            if found is None:
                continue
            clean, base = found
            accepted = accepts(base.lines)
            assert clean or not accepted, base
            counts.update({"programs": 1, "honest, accepted": accepted})
            for _ in range(EACH):
                forgery = forge(base, rng)
                counts["forgeries"] += 1
                if accepts(forgery.lines):
                    counts["accepted, of a clean program"] += 1
                    assert is_clean(forgery.program, forgery.memory), forgery
            if counts["forgeries"] >= total:
                return

    trio.run(campaign)
    shown(pytestconfig, capsys, f"forging: {dict(counts)}")
    assert counts["honest, accepted"] > 0.25 * counts["programs"]
    # Of many programs a changed certificate is still one: a checker that rejects all would be no use either.
    assert 0.05 * total < counts["accepted, of a clean program"] < 0.5 * total


def forge(base: Forgery, rng: random.Random) -> Forgery:
    """Change one to three things."""
    forgery = base
    for _ in range(rng.choice((1, 1, 2, 3))):
        try:
            forgery = forgery.changed(rng)
        except TooManyStatesError:  # a program to be moved onto a race must be explored first
            continue
    return forgery
