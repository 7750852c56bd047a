"""Certificates as files: whatever stands in one, the answer is a rejection; and the command line."""

from __future__ import annotations

import json
import random
from typing import Any

import command
import late_runs
import pytest
import trio
from forging import Forgery, accepts, written
from late_toy import parse

from asyncsim import Fifo
from asyncsim.certify import RejectedError, UnreadableError, certify, proof

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


@pytest.fixture(scope="module")
def of_builtin(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a certificate of the kernel that is right, for two ranks."""
    file = tmp_path_factory.mktemp("certificates") / "builtin.jsonl"
    assert command.run("check", command.GOOD, "-P", "2", "--certificate", str(file)).exit_code == 0
    return file


def claiming(file: Any, tmp_path: Any, **claims: Any) -> str:
    """Return a copy of a certificate with another header."""
    head, *rest = file.read_text("utf-8").splitlines(keepends=True)
    copy = tmp_path / "copy.jsonl"
    copy.write_text("".join([json.dumps(json.loads(head) | claims) + "\n", *rest]), "utf-8")
    return str(copy)


def test_a_name_that_was_not_checked_is_said_to_be_a_claim(of_builtin: Any, tmp_path: Any) -> None:
    for name in (f"kernels.{command.GOOD}", f"kernels.{command.BAD}"):
        said = command.run("certify", claiming(of_builtin, tmp_path, kernel=name))
        assert said.exit_code == 0
        assert name not in said.stdout.splitlines()[0]
        assert said.stdout.splitlines()[-1].startswith(f"it says that they are those of {name} ")
        assert "that was not checked" in said.stdout


def test_a_kernel_that_issues_the_operations_is_vouched_for(of_builtin: Any) -> None:
    said = command.run("certify", str(of_builtin), "--kernel", command.GOOD)
    assert said.exit_code == 0
    assert f"kernels.{command.GOOD} was run once, and issues them" in said.stdout
    assert "not checked" not in said.stdout


@pytest.mark.parametrize(
    ("kernel", "claims", "reason"),
    [
        (command.BAD, {}, "which is not kernels.reduce_scatter:no_post_barrier"),
        (command.BAD, {"kernel": f"kernels.{command.BAD}"}, "operation 6 of actor 0 is a notify, and"),
        (command.GOOD, {"kernel": f"kernels.{command.BAD}"}, "which is not kernels.reduce_scatter:builtin"),
        (command.GOOD, {"source": "0" * 16}, "the source of kernels.reduce_scatter:builtin is 0000000000000000"),
        (command.GOOD, {"calls": 1}, "operations of actor 0"),
        (command.GOOD, {"calls": 3}, "goes on after the 44 steps of the certificate"),
        (command.GOOD, {"ranks": 3}, "it is of 3 ranks, and has the operations of 2"),
    ],
)
def test_what_is_of_another_kernel_or_case_is_rejected(
    of_builtin: Any, tmp_path: Any, kernel: str, claims: dict[str, Any], reason: str
) -> None:
    said = command.run("certify", claiming(of_builtin, tmp_path, **claims), "--kernel", kernel)
    assert said.exit_code == 1
    assert said.stdout.startswith("REJECTED")
    assert reason in said.stdout


@pytest.mark.parametrize(("claims", "reason"), [({"calls": 1 << 40}, "at most"), ({"calls": 0}, "at least once")])
def test_a_case_that_cannot_be_run_is_bad_input(
    of_builtin: Any, tmp_path: Any, claims: dict[str, Any], reason: str
) -> None:
    said = command.run("certify", claiming(of_builtin, tmp_path, **claims), "--kernel", command.GOOD)
    assert said.exit_code == 2
    assert reason in said.stderr


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"{}\n", b"ordinary text\n"])
def test_what_is_unreadable_leaves_with_2(tmp_path: Any, content: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    said = command.run("certify", str(file))
    assert said.exit_code == 2
    assert "is not a certificate" in said.stderr
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
