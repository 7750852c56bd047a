"""What tests of audits share: memory to write kernels with, an audit's rows in short, and its witnesses replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from asyncsim import KernelError, Signal, Window
from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.machine.case import Case
from asyncsim.trace.finding import REFUTED
from asyncsim.trace.token import decode

box = Window("box", (1,), np.float32, initialised=True)
cell = Signal("cell", (1,), self_cleaning=True)


def numbers(P, call, rng):
    return [rng.standard_normal(1, np.float32) for _ in range(P)]


def guards(row):
    """Return what a part guards, in short."""
    return [(guard.what, guard.when, guard.calls, guard.pairs) for guard in row.guards]


def verdicts(row):
    """Return the verdicts without a part: over one call, over all calls."""
    return [report.verdict for report in row.reports]


def source(row):
    """Return the kernel's line that a part stands in."""
    file, _, number = row.part.site[0].rpartition(":")
    return (Path(__file__).parents[2] / file).read_text("utf-8").splitlines()[int(number) - 1].strip()


def tokens_of(audited):
    """Return (the token, whether it shows a failure) of every line that an audit prints."""
    for row in audited.rows:
        for guard in row.guards:
            yield guard.finding.token, True
        for report, token in zip(row.reports, row.tokens, strict=True):
            yield token, None if report.verdict == REFUTED else False


def check_witnesses(audited):
    """Every line of an audit is backed by a run that replays, and shows what the line says."""
    kernel = audited.report.case.kernel
    for text, fails in tokens_of(audited):
        token = decode(text)
        case = Case(kernel, token.ranks, token.calls, token.memory, token.seed, edits=token.edits)
        try:
            again = replay(token, kernel)
        except KernelError:
            assert fails in (True, None)
            continue
        assert token.edits
        assert again.run.unapplied == ()
        if fails is not None:
            assert bool(Symptoms(case).findings(again.run)) == fails
