"""Certificates: what is proved has one that the checker takes, nothing else has; how large they are, and how quick.

The oracle is brute force over all interleavings.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import law
import programs
import pytest
import runs
import trio
from brute import explore
from campaign import MEMORIES, shown
from forging import accepts, forced

from asyncsim import Case, Fifo, KernelError, MisuseError, simulate
from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.certificate import certificate
from asyncsim.certify import certify
from asyncsim.checking.record.locate import all_kernels
from asyncsim.checking.verdict.check import check
from asyncsim.trace.event import COMPLETE
from kernels import reduce_scatter

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.trace.event import Trace

# What is proved has a certificate, and nothing else.


ON_WORDS = ("gpu.", *(f"field.f{number}_" for number in (35, 36, 47, 48, 49, 50)))
"""Words have no certificate yet: see test_words."""


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", [name for name in all_kernels() if not name.startswith(ON_WORDS)])
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


@pytest.mark.law
def test_random_programs_under_sc(
    programs_of: Callable[[int, int], int], pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: Counter[str] = Counter()

    async def campaign() -> None:
        for number in range(programs_of(1_000, 20_000)):
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
