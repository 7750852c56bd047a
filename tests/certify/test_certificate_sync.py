"""Certificates of any synchronising operations: honest ones of what is clean are taken, and no others, however made."""

from __future__ import annotations

import random
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from sync_forging import Forgery, accepts, is_clean
from sync_programs import FAMILIES, program_number

import asyncsim.certify as checker
import asyncsim.certify.conditions
import asyncsim.certify.proof
from asyncsim import MisuseError, Set, Signal, check, kernel
from asyncsim.analysis.certificate import certificate
from asyncsim.certify import RejectedError, certify

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

EACH = 12
"""Forgeries of one program."""


@pytest.mark.law
def test_honest_certificates_are_taken_and_no_forgery_is(programs_of: Callable[[int, int], int]) -> None:
    total = programs_of(500, 100_000)
    rng = random.Random(3)  # noqa: S311 - dice, no secret
    counts: Counter[str] = Counter()
    for number in range(total):
        program = program_number(FAMILIES[number % len(FAMILIES)], number)
        if not any(program.actors):
            continue
        base, clean = Forgery.of(program, number), is_clean(program)
        taken = accepts(base.lines)
        assert clean or not taken, program
        counts.update({"clean": clean, "taken": taken})
        for _ in range(EACH):
            forgery = base
            for _ in range(rng.choice((1, 1, 2, 3))):
                forgery = forgery.changed(rng)
            counts["forgeries"] += 1
            if accepts(forgery.lines):
                counts["taken, though changed"] += 1
                assert is_clean(forgery.program), forgery
    assert counts["taken"] >= 0.7 * counts["clean"], counts
    assert counts["taken, though changed"] >= 0.05 * counts["forgeries"], counts


def nothing(*_: Any, **__: Any) -> None:
    """Stand in for a condition that refuses nothing."""


def never(*_: Any) -> bool:
    """Stand in for a rule that says no."""
    return False


def always(*_: Any) -> bool:
    """Stand in for a rule that says yes."""
    return True


@pytest.mark.parametrize(
    ("place", "rule", "instead"),
    [
        (checker, "sets_are_ordered", nothing),
        (checker, "kinds_are_ordered", nothing),
        (checker, "threats_are_ordered", nothing),
        (checker, "waits_are_stable", nothing),
        (checker, "answers_are_constant", nothing),
        (checker, "accesses_are_ordered", nothing),
        (asyncsim.certify.conditions, "value_is_constant", nothing),
        (asyncsim.certify.conditions, "can_fail_again", never),
        (asyncsim.certify.conditions, "is_undone", never),
        (asyncsim.certify.conditions, "strictly_ordered", always),
        (asyncsim.certify.proof, "can_pass", never),
    ],
)
def test_without_a_rule_wrong_certificates_are_taken(
    monkeypatch: pytest.MonkeyPatch, place: ModuleType, rule: str, instead: Any
) -> None:
    if place is checker:
        checks = tuple(instead if check.__name__ == rule else check for check in checker.CHECKS)
        monkeypatch.setattr(checker, "CHECKS", checks)
    else:
        monkeypatch.setattr(place, rule, instead)
    rng = random.Random(5)  # noqa: S311 - dice, no secret
    for number in count():
        assert number < 4_000, "nobody would miss it"
        program = program_number(FAMILIES[number % len(FAMILIES)], number)
        if not any(program.actors):
            continue
        base = Forgery.of(program, number)
        for forgery in (base, *(base.changed(rng) for _ in range(4))):
            if accepts(forgery.lines) and not is_clean(forgery.program):
                return


lock, turn = Signal("lock", (1,)), Signal("turn", (1,))


@kernel(memory=[lock, turn])
async def handed_on(rank, lock, turn):
    """Rank 0 takes a lock at rank 1, and gives it to rank 1."""
    if rank.id == 0:
        await rank.wait(lock.at(1)[0] == 0, then=Set(1))
        seen = await rank.fetch_add(turn.at(1)[0], 2)
        await rank.notify(lock.at(1)[0], 2, Set)
        return seen
    await rank.wait(lock[0] == 2, then=Set(0))
    return await rank.read(turn[0])


def test_what_is_proved_is_certified_and_a_result_that_is_changed_is_not() -> None:
    report = check(handed_on, ranks=2, calls=1)
    assert report.proof is not None
    lines = certificate(*report.proof)
    assert certify(lines).steps == 5
    # Without the Set that hands the lock on, nothing says that the read comes later.
    with pytest.raises(RejectedError):
        certify([line.replace('"amount":2,', '"amount":1,') for line in lines])


def test_an_operation_that_the_checker_does_not_know_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asyncsim.analysis.certificate._KNOWN", frozenset())
    report = check(handed_on, ranks=2, calls=1)
    assert report.proof is not None
    with pytest.raises(MisuseError, match="knows no 'atomic'"):
        certificate(*report.proof)


def test_they_are_certified_under_sc_alone() -> None:
    report = check(handed_on, ranks=2, calls=1)
    assert report.proof is not None
    lines = certificate(*report.proof)
    with pytest.raises(RejectedError, match="under sc alone"):
        certify([lines[0].replace('"memory":"sc"', '"memory":"ldst"'), *lines[1:]])
