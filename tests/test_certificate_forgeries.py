"""Forged certificates: the checker takes those of what is clean, and no others, however they are made.

The oracle is brute force over all interleavings.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import command
from campaign import MEMORIES, shown
import late_programs
import late_runs
import law
import programs
import pytest
import runs
import trio
from brute import explore
from forging import Forgery, accepts, forced, is_clean, truth_of, written
from late_brute import TooManyStatesError
from late_toy import parse

import asyncsim.certify
from asyncsim import Case, Fifo, KernelError, MisuseError, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.certify import RejectedError, UnreadableError, certify, conditions, coverage, events, proof
from asyncsim.certify.events import ALL, OWN, PEERS
from asyncsim.checking.check import check
from asyncsim.checking.locate import all_kernels
from asyncsim.trace.event import COMPLETE
from kernels import reduce_scatter

if TYPE_CHECKING:
    from types import ModuleType

    from asyncsim.trace.event import Trace

ORDINARY, THOROUGH = 10_000, 300_000
EACH = 40
"""Forgeries of one program."""
FAMILIES = tuple(late_programs.FAMILIES)


        return is_clean(program, memory), Forgery.of(program, memory, trace)
    except TooManyStatesError:
        return None


def test_no_forgery_is_accepted(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> None:
    """A forgery of anything but a program that is clean: cuts moved, operations changed, hangs completed, and so on."""
    total = THOROUGH if pytestconfig.getoption("--thorough") else ORDINARY
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
