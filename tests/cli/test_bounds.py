"""Sizes, counts and digits that cannot be meant: a message at once, and nothing that does not end."""

import itertools
import json

import numpy as np
import pytest
from command import GOOD, run

from asyncsim import Case, Fifo, MisuseError, Signal, Window, check, explore, kernel, simulate
from asyncsim.certify import RejectedError, certify
from asyncsim.cli.options import whole, whole_list
from asyncsim.machine import free
from asyncsim.machine.case import MOST_CALLS
from asyncsim.machine.free import check_room, size_text
from asyncsim.trace.late import model_of


def of(*memory):
    """Return a kernel with this memory, which it does not use."""

    @kernel(memory=list(memory))
    async def unused(rank, *memory):
        pass

    return unused


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (Window("w", (1 << 50,), np.float32), r"window 'w' of shape \(1125899906842624,\) on 4 ranks takes 22\.5 PB"),
        (Window("w", (1 << 62, 1 << 62), np.int8, initialised=True), r"takes over 10\^37 bytes of memory"),
        (Signal("s", (1 << 40,)), r"signal 's' of shape \(1099511627776,\) on 4 ranks takes 35\.2 TB"),
        (Signal("s", (1 << 62, 1 << 62)), "signal 's'"),
        (Window("w", (lambda P: P << 40,)), r"window 'w' of shape \(4398046511104,\)"),
    ],
)
def test_memory_that_no_machine_has_is_refused_by_name(declared, words):
    for judge in (check, explore):
        with pytest.raises(MisuseError, match=words):
            judge(of(declared))


def test_where_nobody_says_what_is_free_the_limit_is_what_can_be_addressed(monkeypatch):
    monkeypatch.setattr(free, "available", lambda: None)
    check_room("this", 1 << 46)
    with pytest.raises(MisuseError, match=r"^this takes 281\.5 TB of memory; judge it smaller"):
        check_room("this", 1 << 48)


def test_what_is_small_asks_nobody(monkeypatch):
    monkeypatch.setattr(free, "available", lambda: 0)
    check_room("this", 1 << 20)
    with pytest.raises(MisuseError, match=r"this takes 1\.1 GB of memory, and 0 MB are free"):
        check_room("this", 1 << 30)


def test_sizes_are_told_in_units_that_people_read():
    assert [size_text(10**n) for n in (6, 9, 12, 15, 18)] == ["1 MB", "1.0 GB", "1.0 TB", "1.0 PB", "1.0 EB"]
    assert size_text(10**30) == "over 10^30 bytes"


def test_inputs_that_do_not_fit_are_refused_after_the_first_call(monkeypatch):
    made = []

    def inputs(P, call, rng):
        made.append(call)
        return [np.zeros(1000, np.int64)] * P

    judged = of(Window("w", (1,), initialised=True)).variant(inputs=lambda P, call, rng: (inputs(P, call, rng), 1))
    monkeypatch.setattr(free, "available", lambda: 1 << 30)
    with pytest.raises(MisuseError, match=r"what inputs\(P=2\) gives for 1000000 calls takes 16\.0 GB of memory"):
        simulate(Case(judged, 2, MOST_CALLS), Fifo())
    assert made == [0]


@pytest.mark.parametrize("calls", [MOST_CALLS + 1, 10**30])
def test_so_many_calls_are_not_simulated(calls):
    with pytest.raises(MisuseError, match=f"calls={calls}; at most 1000000 are simulated"):
        Case(of(), 2, calls)


def test_counts_from_python_are_bounded_too():
    with pytest.raises(MisuseError, match=r"runs=10{26}; explore at least one schedule, and at most 1000000000"):
        explore(of(), runs=10**26)
    with pytest.raises(MisuseError, match="jobs=100000; give how many processes"):
        explore(of(), jobs=100_000)


HUGE = "9" * 23
REFUSED = [
    ("check", GOOD, "--calls", HUGE),
    ("check", GOOD, "-P", HUGE),
    ("check", GOOD, "-P", "9" * 5000),
    ("check", GOOD, "--seed", "9" * 5000),
    ("check", GOOD, "--memory", f"ldst:atom={HUGE}"),
    ("audit", GOOD, "--calls", HUGE),
    ("explore", GOOD, "--runs", HUGE),
    ("explore", GOOD, "--runs", "9" * 5000),
    ("explore", GOOD, "--exhaustive", "--budget", HUGE),
    ("explore", GOOD, "--jobs", HUGE),
    ("explore", GOOD, "--scheduler", f"script:hold rank {HUGE} before its load until rank 1 has stored"),
    ("table", "all_reduce", "--size", "99999999999"),
    ("table", "all_gather", "--ranks", HUGE),
    ("cost", GOOD, "-P", HUGE),
    ("cost", "--table", "all_reduce", "--bytes", "99999999999999"),
    ("lower", GOOD, "-P", HUGE),
    ("torchrun", "-n", "999999", "nothing.py"),
    ("show", "nothing.jsonl", "--from", "9" * 5000),
]
FULL_WIDTH = [
    ("check", GOOD, "-P", "\uff12"),
    ("check", GOOD, "-d", "\uff10,\uff11"),
    ("check", GOOD, "--calls", "\uff12"),
    ("check", GOOD, "--seed", "\u0662"),
    ("check", GOOD, "--memory", "ldst:atom=\uff12"),
    ("check", GOOD, "--memory", "ldst:atom=02"),
    ("explore", GOOD, "--runs", "\uff12"),
    ("explore", GOOD, "--jobs", "\uff12"),
    ("explore", GOOD, "--scheduler", "pct:depth=\uff12"),
    ("table", "all_reduce", "--set", "\uff11,0=5"),
    ("table", "all_reduce", "--set", "1,0=\uff15"),
    ("cost", GOOD, "-P", "\uff12"),
    ("cost", GOOD, "--alpha", "\uff12"),
    ("show", "nothing.jsonl", "--ranks", "\uff10"),
    ("show", "nothing.jsonl", "--ranks", "0-"),
    ("show", "nothing.jsonl", "--ranks", "+1"),
]


@pytest.mark.parametrize("words", [*REFUSED, *FULL_WIDTH], ids=lambda words: " ".join(words)[:60])
def test_numbers_that_cannot_be_meant_are_refused(words):
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.strip()
    assert result.stdout == ""


def test_a_model_is_written_in_one_way():
    assert model_of("ldst:atom=2").atom == 2
    for text in ("ldst:atom=\uff12", "ldst:atom=02", "ldst:atom=0", "ldst:atom=+2", "ldst:atom= 2", "sc:atom=2"):
        with pytest.raises(MisuseError):
            model_of(text)


def test_whole_numbers_are_read_from_ascii_digits():
    assert [whole(text) for text in ("7", " -7 ", "+7", "7_0", "\u0667", "", "9" * 41)] == [7, -7, 7, *[None] * 4]
    assert (whole_list("2,3, 4"), whole_list("2,"), whole_list(None)) == ((2, 3, 4), (), ())


def test_too_little_memory_is_no_bug_of_ours(monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("asyncsim.cli.check.check", full)
    result = run("check", GOOD)
    assert result.exit_code == 2
    assert "asyncsim: there is too little memory for this" in result.stderr


# A certificate of nothing.


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """Return the lines of a certificate."""
    file = tmp_path_factory.mktemp("certified") / "c.jsonl"
    assert run("check", GOOD, "-P", "2", "--calls", "1", "--certificate", str(file)).exit_code == 0
    return file.read_text("utf-8").splitlines()


def test_a_header_alone_certifies_nothing(lines, tmp_path):
    with pytest.raises(RejectedError, match="there is no operation in it"):
        certify(lines[:1])
    (tmp_path / "header.jsonl").write_text(lines[0] + "\n", "utf-8")
    result = run("certify", str(tmp_path / "header.jsonl"))
    assert result.exit_code == 1
    assert result.stdout.startswith("REJECTED")


@pytest.mark.parametrize("change", [{"ranks": 0}, {"ranks": -1}, {"ranks": 3}, {"ranks": 10**18}, {"calls": 0}])
def test_a_header_that_speaks_of_others_is_rejected(lines, change):
    with pytest.raises(RejectedError):
        certify([json.dumps({**json.loads(lines[0]), **change}), *lines[1:]])


def test_a_certificate_that_leaves_out_a_rank_is_rejected(lines):
    assert certify(lines).ranks == 2
    actors = [number for number, line in enumerate(lines) if "actor" in json.loads(line)]
    for left_out in itertools.chain.from_iterable(itertools.combinations(actors, n) for n in (1, 2)):
        with pytest.raises(RejectedError):
            certify([line for number, line in enumerate(lines) if number not in left_out])


def test_a_kernel_that_does_nothing_gets_no_certificate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "idle.py").write_text(
        "from asyncsim import kernel\n@kernel(memory=[])\nasync def idle(rank):\n    return 1\n", "utf-8"
    )
    result = run("check", "idle.py", "--certificate", "c.jsonl")
    assert result.stdout.startswith("PROVED")
    assert "no certificate" in result.stderr
    assert not (tmp_path / "c.jsonl").exists()
