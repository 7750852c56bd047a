"""Certificates: the checker takes those of what is proved, and no others, however they are made.

The oracle is brute force over all interleavings. Every rule of the checker is needed: with it taken out,
a certificate of a program that races, hangs or has two results is accepted.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import command
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
MEMORIES = ("sc", "ldst", "nic")
FAMILIES = tuple(late_programs.FAMILIES)


def shown(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str], text: str) -> None:
    """Print what was asked for with -s."""
    with capsys.disabled():
        if pytestconfig.getoption("capture") == "no":
            print(text)  # noqa: T201 - asked for


# What is proved has a certificate, and nothing else.


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", all_kernels())
def test_what_is_proved_is_certified(name: str, memory: str, pytestconfig: pytest.Config) -> None:
    ranks = (2, 3, 4) if memory == "sc" or pytestconfig.getoption("--thorough") else (2, 3)
    for size in ranks:
        try:
            trace = simulate(Case(all_kernels()[name], ranks=size, memory=memory), Fifo(), record="fifo").trace
        except (KernelError, MisuseError):
            return
        analysis = analyse(trace)
        if analysis.clean and trace.footer.ending == COMPLETE:
            assert certify(certificate(trace, analysis)).steps == len(trace.events)
        else:
            with pytest.raises(MisuseError, match="only a complete run"):
                certificate(trace, analysis)
            assert not accepts(forced(trace))


def test_what_is_certified_is_said() -> None:
    report = check(reduce_scatter.builtin, ranks=3, memory="ldst:atom=16", seed=5)
    found = certify(certificate(*report.proof))
    about = (found.kernel, found.ranks, found.calls, found.memory, found.seed, found.actors)
    assert about == ("kernels.reduce_scatter:builtin", 3, 2, "ldst:atom=16", 5, 3)
    assert found.source == reduce_scatter.builtin.source


def test_what_is_refuted_has_none() -> None:
    assert check(reduce_scatter.hand, ranks=2).proof is None


def test_an_edited_kernel_has_none() -> None:
    trace = simulate(Case(reduce_scatter.builtin, ranks=2), Fifo(), record="fifo").trace
    trace.header.edits = ("skip somewhere",)
    with pytest.raises(MisuseError, match="edited"):
        certificate(trace, analyse(trace))


def test_random_programs_under_sc(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()

    async def campaign() -> None:
        for number in range(20_000 if pytestconfig.getoption("--thorough") else 1_000):
            program = programs.program_number(programs.FAMILIES[number % len(programs.FAMILIES)], number)
            trace = (await runs.run_once(program, number)).trace
            clean = law.judge(trace).proved and trace.footer.ending == COMPLETE
            accepted = accepts(forced(trace))
            counts[f"{'clean' if clean else 'unclean'}, {'accepted' if accepted else 'rejected'}"] += 1
            assert accepted or not clean, program
            if accepted and not clean:
                truth = explore(program)
                assert len(truth.finals) == 1, program
                assert not any((truth.races, truth.leaves, truth.deadlocks)), program

    trio.run(campaign)
    shown(pytestconfig, capsys, f"programs under sc: {dict(counts)}")
    assert counts["clean, accepted"] > 0.3 * counts.total()


# Forgeries.


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


# Each rule of the checker is needed.


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
    """Stand in for who meets a local store, with "its own rank at the issue, peers at the landing" and no more."""
    (x, a), (y, _) = one, other
    return a.eyes in (ALL, OWN if x.rank == y.rank else PEERS)


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
    "S1": (conditions, "sets_are_ordered", None, "c := 1 || c += 1", "sc", [{"run": [[0, 1], [1, 1]]}]),
    "S2": (
        conditions, "subtractions_are_ordered", None, "c += 2; c -= 2 || wait c >= 1; ld x", "sc",
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
    "S4": (conditions, "tests_are_answered", None, "test c >= 1 || c += 1", "sc", [{"run": [[0, 1], [1, 1]]}]),
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
        coverage, "meets", by_rank, "st x; ad x", "nic", [{"run": [[0, 2], [1, 1], [2, 1]]}],
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


def test_the_range_of_cells_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        *written(parse("c += 1; wait d >= 1 || d += 1; c += 2", cells=(0, 0)), "sc"),
        {"run": [[1, 1], [0, 2], [1, 1]]},
    ]
    lines[0]["cells"][0] = [0, 125, -128, 127]
    assert not accepts(lines)
    take_out(monkeypatch, conditions, "cells_keep_to_their_range", None)
    assert accepts(lines)


def test_a_tight_range_can_be_proved() -> None:
    program = parse("c -= 1; d += 1; wait e >= 1 || wait d >= 1; c += 1; e += 1")
    honest = [{"run": [[0, 2], [1, 3], [0, 1]]}, {"hold": [[0, 0]], "cut": [0, 0]}, {"hold": [[1, 1]], "cut": [2, 1]}]
    lines = [*written(program, "sc"), *honest]
    lines[0]["cells"][0] = [0, 127, -128, 127]
    assert accepts(lines)
    assert not accepts(lines[:-2])  # without cuts all credits count


# Whatever stands in a file, the answer is a rejection.


def a_certificate() -> list[str]:
    """Return the certificate of a run with nearly every kind of operation."""
    program = parse(
        "st x, d += 1; start 1; fence; x <~ y; quiet; sync; join 1; c += 1; wait c >= 1; test c >= 1 | st z; sync"
        " || wait d >= 1; take d >= 1; relaxed d := 7; quiet",
        elements=(1, 0, 0),
        cells=(0, 1),
    )
    ran = trio.run(late_runs.run_once, program, "ldst", Fifo())
    return [json.dumps(line) for line in Forgery.of(program, "ldst", ran.trace).lines]


def test_the_certificate_that_is_damaged_below_is_one() -> None:
    assert certify(a_certificate()).holds > 3


def test_damaged_files_are_rejected() -> None:
    lines = a_certificate()
    rng = random.Random(3)  # noqa: S311 - dice, no secret
    values = [
        None,
        True,
        -1,
        0,
        1,
        2,
        7,
        10**9,
        1 << 63,
        1 << 80,
        1.5,
        "",
        "Set",
        "Ge",
        "x\u001b[0m",
        [],
        [[]],
        {},
        [0, 0],
        [5, 1],
    ]
    rejected = 0
    for _ in range(4_000):
        damaged = [json.loads(line) for line in lines]
        for _ in range(rng.choice((1, 1, 2))):
            replace_somewhere(damaged, rng, values)
        try:
            certify(json.dumps(line) for line in damaged)
        except RejectedError:
            rejected += 1
    assert rejected > 2_500  # the rest changes a name, a number that does not matter, or nothing


def replace_somewhere(node: Any, rng: random.Random, values: list[Any]) -> None:
    """Put another value somewhere into a tree of JSON, or take one out."""
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        if rng.random() < 0.2:
            del node[key]
        else:
            node[key] = rng.choice(values)
        return


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (1, "{}"), (1, "[]"), (1, "null"), (1, "["), (1, '{"format": "asyncsim certificate 2"}'),
        (2, "[" * 100_000), (2, "9" * 10_000), (2, '{"run": [[0, NaN]]}'), (2, '{"hold": [[0, 0]]}'), (2, ""),
    ],
)  # fmt: skip
def test_what_is_no_certificate_is_said_with_its_line(line: int, text: str) -> None:
    lines = [*a_certificate()[: line - 1], text]
    with pytest.raises(UnreadableError) as caught:
        certify(lines)
    assert caught.value.line == line


def test_nothing_is_no_certificate() -> None:
    with pytest.raises(UnreadableError, match="nothing"):
        certify([])


@pytest.mark.parametrize(
    "change",
    [
        {"memory": "ldst:atom=1", "windows": [[0, 1, True], [1, 1, True]]},
        {"memory": "nic:atom=0"}, {"memory": "sc:atom=4"}, {"memory": "weak"}, {"ranks": 1}, {"cells": []},
        {"windows": []},
    ],
)  # fmt: skip
def test_another_world_is_rejected(change: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in a_certificate()]
    lines[0] |= change
    assert not accepts(lines)


def test_a_small_file_cannot_ask_for_much() -> None:
    lines = written(parse("st x"), "ldst:atom=1")
    lines[1]["ops"][0]["access"] = [[0, "write", [0, 1 << 62]]]
    with pytest.raises(RejectedError, match="too large"):
        certify(map(json.dumps, lines))
    lines = [*written(parse("ld x"), "sc"), {"run": [[0, 1 << 60]]}]
    with pytest.raises(RejectedError, match="more steps"):
        certify(map(json.dumps, lines))


# The command line.


def test_from_the_command_line(tmp_path: Any) -> None:
    file = tmp_path / "builtin.jsonl"
    made = command.run("check", command.GOOD, "-P", "3", "--certificate", str(file))
    assert made.exit_code == 0
    assert "certifies" in made.stderr
    accepted = command.run("certify", str(file))
    assert accepted.exit_code == 0
    for word in ("ACCEPTED", "kernels.reduce_scatter:builtin", "3 ranks", "2 calls", "memory sc", "seed 0", "9 cuts"):
        assert word in accepted.stdout
    lines = file.read_text("utf-8").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if '"cut"' in line)
    moved = json.loads(lines[at])
    moved["cut"] = [0] * 3
    file.write_text("".join([*lines[:at], json.dumps(moved) + "\n", *lines[at + 1 :]]), "utf-8")
    rejected = command.run("certify", str(file))
    assert rejected.exit_code == 1
    assert f"line {at + 1}: operation 0 of actor" in rejected.stdout
    file.write_text("".join(lines[:at]), "utf-8")
    assert "nothing orders" in command.run("certify", str(file)).stdout


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}\n", b"ordinary text\n"])
def test_what_is_unreadable_leaves_with_2(tmp_path: Any, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    said = command.run("certify", str(file))
    assert said.exit_code == 2
    assert "is no certificate" in said.stderr
    assert command.run("certify", str(tmp_path / "missing")).exit_code == 2


def test_what_is_not_proved_gets_no_file(tmp_path: Any) -> None:
    file = tmp_path / "none.jsonl"
    said = command.run("check", command.BAD, "-P", "2", "--certificate", str(file))
    assert said.exit_code == 1
    assert "no certificate" in said.stderr
    assert "REFUTED" in said.stderr
    assert not file.exists()


def test_a_proof_that_the_checker_does_not_follow_gets_no_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "escapes", lambda _, cut: cut.held)
    file = tmp_path / "none.jsonl"
    said = command.run("check", command.GOOD, "-P", "2", "--certificate", str(file))
    assert said.exit_code == 0
    assert "does not follow" in said.stderr
    assert not file.exists()


def test_a_certificate_is_of_one_kernel(tmp_path: Any) -> None:
    for arguments in (("-P", "2,3"), (command.BAD,)):
        said = command.run("check", command.GOOD, *arguments, "--certificate", str(tmp_path / "file"))
        assert said.exit_code == 2
        assert "one kernel at one P" in said.stderr


# How large, how quick.


def test_checking_is_quicker_than_searching(pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]) -> None:
    text = []
    for memory, ranks in (("sc", 4), ("sc", 16), ("ldst", 4)):
        trace, lines, searched, checked = timed(memory, ranks)
        found = certify(lines)
        assert found.cuts <= 3 * ranks if memory == "sc" else 10 * ranks
        text.append(
            f"reduce_scatter:builtin, {memory}, P = {ranks}: {found.steps} steps; {found.cuts} cuts of "
            f"{found.holds} events, {found.cuts * ranks} integers, {sum(map(len, lines))} bytes; the analysis by "
            f"frontiers takes {searched / checked:.1f} times as long as the check ({checked * 1e3:.1f} ms)"
        )
        assert len(trace.events) == found.steps
    shown(pytestconfig, capsys, "\n".join(text))


def timed(memory: str, ranks: int) -> tuple[Trace, list[str], float, float]:
    """Return a run, its certificate, and how long searching by frontiers and checking took."""
    trace = simulate(Case(reduce_scatter.builtin, ranks=ranks, memory=memory), Fifo(), record="fifo").trace
    start = time.perf_counter()
    analysis = analyse(trace, order="frontiers")
    searched = time.perf_counter() - start
    lines = certificate(trace, analysis)
    start = time.perf_counter()
    certify(lines)
    return trace, lines, searched, time.perf_counter() - start
