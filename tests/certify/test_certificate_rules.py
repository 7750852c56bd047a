"""Every rule of the checker of certificates is needed.

With it taken out, a certificate of a program that races, hangs or has two results is accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from forging import accepts, truth_of, written
from late_toy import parse

import asyncsim.certify
from asyncsim.certify import conditions, coverage, events, proof
from asyncsim.certify.events import ALL, OWN, PEERS, READ

if TYPE_CHECKING:
    from types import ModuleType


def yes(*_: Any) -> bool:
    """Stand in for a rule that lets all pass."""
    return True


def no(*_: Any) -> bool:
    """Stand in for a rule that never applies."""
    return False


def nothing(*_: Any) -> None:
    """Stand in for a rule that finds nothing."""


def enough(found: Any, wait: Any) -> int:
    """Stand in for the value of a cell in the replay."""
    return wait.amount


def by_rank(one: Any, other: Any) -> bool:
    """Stand in for who meets a local store, where "its own rank" leaves out what lands late for that rank."""
    (x, a), (y, b) = one, other
    if a.eyes == ALL or x.rank != y.rank:
        return a.eyes in (ALL, PEERS)
    return a.eyes == OWN and (b.mode == READ or b.eyes != ALL)


def await_all(walk: Any, quiet: Any) -> None:
    """Stand in for a quiet that leaves copies pending with one that leaves none."""
    walk.program.need(quiet, walk.landings)


def executes(found: Any, taken: Any, wait: Any) -> bool:
    """Stand in for S2 with "the wait executes" where it must say "the wait is reached"."""
    return found.before(taken, wait) or found.before(wait, taken)


FLAWS = {
    "a cut must be closed": (
        proof, "escapes", nothing, "st x || ld x", "sc",
        [{"run": [[0, 1], [1, 1]]}, {"hold": [[0, 0]], "cut": [0, 0]}],
    ),
    "an actor is stopped only by a wait that is false": (
        proof, "is_open", no, "c += 1; st x || wait c >= 1; ld x", "sc",
        [{"run": [[0, 2], [1, 2]]}, {"hold": [[0, 1]], "cut": [1, 0]}],
    ),
    "waits of the run are true": (
        proof, "seen", enough, "wait c >= 1; d += 1 || wait d >= 1; c += 1", "sc", [{"run": [[0, 2], [1, 2]]}],
    ),
    "the run keeps to the edges": (
        proof, "is_due", yes, "join 1; start 1 | ld x", "sc", [{"run": [[0, 2], [1, 1]]}],
    ),
    "a quiet leaves the last copies": (
        events._Walk, "_await", await_all, "put x; quiet 1; relaxed c += 1 || wait c >= 1; ld x", "nic",
        [{"run": [[0, 1], [2, 1], [0, 2], [3, 1], [1, 2]]}, {"hold": [[2, 0]], "cut": [1, 0]}],
    ),
    "S1": (conditions, "sets_are_ordered", None, "c := 1 || c += 1", "sc", [{"run": [[0, 1], [1, 1]]}]),
    "S2": (
        conditions, "threats_are_ordered", None, "c += 2; c -= 2 || wait c >= 1; ld x", "sc",
        [{"run": [[0, 1], [1, 2], [0, 1]]}],
    ),
    "S2, the wait is reached": (
        conditions, "strictly_ordered", executes, "c += 1; st x; c -= 1; c += 1 || wait c >= 1; ld x", "sc",
        [{"run": [[0, 4], [1, 2]]}, {"hold": [[0, 2]], "cut": [2, 0]}],
    ),
    "S3, overshot": (
        conditions, "overshoots", no, "wait c == 1 || c += 1; c += 1", "sc", [{"run": [[1, 1], [0, 1], [1, 1]]}],
    ),
    "S3, undone": (
        conditions, "is_undone", no, "wait c >= 1 || c := 1; c := 0", "sc",
        [{"run": [[1, 1], [0, 1], [1, 1]]}, {"wait": [0, 0], "epochs": [1]}],
    ),
    "S3, in another epoch": (
        conditions, "may_pass", yes, "wait c >= 1; st x || c := 1; ld x; c := 2", "sc",
        [{"run": [[1, 3], [0, 2]]}, {"wait": [0, 0], "epochs": [2]}, {"hold": [[1, 1]], "cut": [0, 1]}],
    ),
    "S4": (conditions, "answers_are_constant", None, "test c >= 1 || c += 1", "sc", [{"run": [[0, 1], [1, 1]]}]),
    "coverage": (coverage, "accesses_are_ordered", None, "st x || ld x", "sc", [{"run": [[0, 1], [1, 1]]}]),
    "a copy under way is not forwarded": (
        coverage, "shines_through", no, "x <~ y; st x; ld x || ld y", "ldst",
        [{"run": [[0, 2], [2, 2], [3, 1], [0, 1], [1, 1]]}],
    ),
    "a landing does not stand for the issue": (
        coverage, "stands_for", yes, "start 1; ld x; ld x; join 1 | st x; ld x; ld x", "ldst",
        [
            {"run": [[0, 1], [1, 1], [2, 1], [0, 2], [1, 2], [0, 1]]},
            {"hold": [[1, 2]], "cut": [3, 2]}, {"hold": [[2, 0]], "cut": [4, 3]},
        ],
    ),
    "what lands late for its own rank meets its local stores": (
        coverage, "meets", by_rank, "ad x; st x", "nic", [{"run": [[0, 2], [1, 1], [2, 1]]}],
    ),
    "a network adapter keeps no order": (
        events, "MODELS", {"nic": (True, False, True)}, "relaxed c := 1; relaxed c := 2 || wait c >= 2", "nic",
        [{"run": [[0, 2], [2, 1], [3, 1], [1, 1]]}, {"wait": [1, 0], "epochs": [2]}],
    ),
}  # fmt: skip
"""By what must hold: where it is seen, what stands in for it (None: it is taken out), and what passes then."""


@pytest.mark.parametrize("what", FLAWS)
def test_each_rule_is_needed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, rule, instead, text, memory, rest = FLAWS[what]
    program = parse(text, elements=(1, 0) if "<~" in text else None)  # a copy goes to a peer
    truth = truth_of(str(program), program, memory)
    assert len(truth.finals) > 1 or truth.races or truth.deadlocks
    lines = [*written(program, memory), *rest]
    assert not accepts(lines)
    take_out(monkeypatch, place, rule, instead)
    assert accepts(lines)


def take_out(monkeypatch: pytest.MonkeyPatch, place: ModuleType, rule: str, instead: Any) -> None:
    """Put something else in the place of a rule; None: leave it out of the checks."""
    if instead is not None:
        monkeypatch.setattr(place, rule, instead)
        return
    left = tuple(one for one in asyncsim.certify.CHECKS if one is not getattr(place, rule))
    assert len(left) == len(asyncsim.certify.CHECKS) - 1
    monkeypatch.setattr(asyncsim.certify, "CHECKS", left)


@pytest.mark.parametrize(
    ("text", "run", "ends"),
    [
        ("st x; start 1; join 1 | ad x", [[0, 2], [1, 1], [0, 1]], [[2, 1], [3, 1]]),
        ("start 1; join 1; quiet rank | ad x", [[0, 1], [1, 1], [0, 1]], [[2, 1], [0, 1]]),
    ],
    ids=["an add after a store", "a quiet of the rank"],
)
def test_what_a_rank_issued_earlier_comes_first_whichever_actor_did(
    text: str, run: list[list[int]], ends: list[list[int]]
) -> None:
    program = written(parse(text), "nic")
    assert accepts([*program, {"run": run + ends}])
    assert not accepts([*program, {"run": run + ends[::-1]}])


def test_the_range_of_cells_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        *written(parse("c += 1; wait d >= 1 || d += 1; c += 2", cells=(0, 0)), "sc"),
        {"run": [[1, 1], [0, 2], [1, 1]]},
    ]
    lines[0]["cells"][0] = [0, 125, -128, 127]
    assert not accepts(lines)
    take_out(monkeypatch, conditions, "cells_keep_to_their_range", None)
    assert accepts(lines)


def test_a_tight_range_can_be_proved_downwards() -> None:
    program = parse("c += 1; d += 1; wait e >= 1 || wait d >= 1; c -= 1; e += 1")
    honest = [{"run": [[0, 2], [1, 3], [0, 1]]}, {"hold": [[0, 0]], "cut": [0, 0]}, {"hold": [[1, 1]], "cut": [2, 1]}]
    lines = [*written(program, "sc"), *honest]
    lines[0]["cells"][0] = [0, -128, -128, 127]
    assert accepts(lines)
    assert not accepts(lines[:-2])


def test_a_tight_range_can_be_proved() -> None:
    program = parse("c -= 1; d += 1; wait e >= 1 || wait d >= 1; c += 1; e += 1")
    honest = [{"run": [[0, 2], [1, 3], [0, 1]]}, {"hold": [[0, 0]], "cut": [0, 0]}, {"hold": [[1, 1]], "cut": [2, 1]}]
    lines = [*written(program, "sc"), *honest]
    lines[0]["cells"][0] = [0, 127, -128, 127]
    assert accepts(lines)
    assert not accepts(lines[:-2])  # without cuts all credits count
