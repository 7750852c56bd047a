"""Assertions on a kernel, as plain functions for any test framework."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.search.sampler import mixed_plan
from asyncsim.checking.verdict.report import Report
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.table import make
from asyncsim.testing.requirement import Requirement, VerdictError
from asyncsim.testing.saving import check_and_save, keep
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import REFUTED, SURVIVED
from asyncsim.views.report import count_text

if TYPE_CHECKING:
    from asyncsim.machine.kernel import Kernel
    from asyncsim.testing.requirement import Finds

RANKS = (2, 3, 4)
"""How many ranks a kernel is judged with where a test does not say: the least, an odd and an even number."""
SCHEDULES = 200


def assert_proved(kernel: Kernel, *, ranks: int | Sequence[int] = RANKS, **how: Any) -> tuple[Report, ...]:  # noqa: ANN401
    """Require that a kernel is PROVED.

    Args:
        kernel: what is judged.
        ranks: P, or several.
        how: further arguments of `asyncsim.check`: calls, memory, seed, …

    Returns:
        The reports, one a P.

    Raises:
        VerdictError: another verdict; it holds the report, with the line that replays.

    """
    __tracebackhide__ = True
    return assert_verdict(kernel, Requirement.of("proved"), ranks=ranks, **how)


def assert_refuted(
    kernel: Kernel, *, finds: Finds | None = None, ranks: int | Sequence[int] = RANKS, **how: Any  # noqa: ANN401
) -> tuple[Report, ...]:  # fmt: skip
    """Require that a kernel is REFUTED, by these findings.

    Args:
        kernel: what is judged.
        finds: "WAR", "WAR, next call", "deadlock", an `asyncsim.Expected`, or several; None: any harmful one.
        ranks: P, or several.
        how: further arguments of `asyncsim.check`.

    Returns:
        The reports, one a P.

    Raises:
        VerdictError: another verdict, or other findings.

    """
    __tracebackhide__ = True
    return assert_verdict(kernel, Requirement.of("refuted", finds), ranks=ranks, **how)


def assert_verdict(
    kernel: Kernel, requirement: Requirement, *, ranks: int | Sequence[int], **how: Any  # noqa: ANN401
) -> tuple[Report, ...]:  # fmt: skip
    """Require this of a kernel, at each P.

    Args:
        kernel: the kernel to judge.
        requirement: what its verdict must be.
        ranks: P, or several.
        how: the further arguments of `asyncsim.check`.

    Raises:
        VerdictError: at the first P at which it is something else.

    """
    __tracebackhide__ = True
    reports = []
    for each in rank_counts(ranks):
        report = check_and_save(kernel, ranks=each, **how)
        require(report, requirement)
        reports.append(report)
    return tuple(reports)


def require(report: Report, requirement: Requirement) -> None:
    """Raise a `VerdictError` if the report is not what is required.

    Args:
        report: what `check` found.
        requirement: what it must have found.

    Raises:
        VerdictError: the verdict is another one, or the findings are.

    """
    __tracebackhide__ = True
    why = requirement.unmet(report)
    if why:
        raise VerdictError(report, why)


def assert_same_result(  # noqa: PLR0913 - each is a choice of the user's
    kernel: Kernel,
    *,
    schedules: int = SCHEDULES,
    ranks: int | Sequence[int] = RANKS,
    calls: int = 2,
    memory: str = "sc",
    seed: int = 0,
) -> None:
    """Require that many schedules give the very bits of the fair one, and that nothing hangs.

    It proves nothing; it needs no golden, and looks at bits where a golden has a tolerance.

    Args:
        kernel: what is run.
        schedules: how many a P: every rank starved, then PCT, POS and random in turn.
        ranks: P, or several.
        calls: back to back on the same memory.
        memory: the memory model.
        seed: of the inputs, and of the first schedule.

    Raises:
        VerdictError: a schedule with another result, with the line that replays it.

    """
    __tracebackhide__ = True
    if isinstance(schedules, bool) or not isinstance(schedules, int) or schedules < 1:
        raise MisuseError(f"schedules={schedules!r}; run at least one")
    for each in rank_counts(ranks):
        report = sample(Case(kernel, each, calls, memory, seed), schedules)
        if report.refuted:
            raise VerdictError(
                report, f"the same result is required of {count_text(schedules, 'schedule')}, and one differs"
            )


def sample(case: Case, schedules: int) -> Report:
    """Run schedules until one does not do as the fair one does.

    Args:
        case: the kernel at one P, with its memory model and seed.
        schedules: how many to run at most, beside the fair one; at least 0.

    """
    steps = len(drive(case, make("fifo")).choices)
    symptoms = Symptoms(case)
    for number, text in enumerate(islice(mixed_plan(case.ranks, case.seed, steps), schedules), 1):
        run = drive(case, make(text))
        found = symptoms.findings(run)
        if found:
            shown = found[0].with_(shown=f"in schedule {number} of {schedules}, under {text}")
            first, notes = keep(shown, run)
            scope = f"schedule {number} does not do as the fair one does"
            return Report(case, REFUTED, scope, [first], notes, schedules=number + 1, steps=steps)
    return Report(case, SURVIVED, f"{_counted(schedules)} the same bits", schedules=schedules + 1, steps=steps)


def _counted(schedules: int) -> str:
    return f"{count_text(schedules, 'schedule')} {'gives' if schedules == 1 else 'give'}"


def rank_counts(ranks: object) -> tuple[int, ...]:
    """Return each P.

    Raises:
        MisuseError: these are no numbers of ranks.

    """
    counts = (ranks,) if isinstance(ranks, int) else tuple(ranks) if isinstance(ranks, Sequence | range) else ()
    if not counts or not all(isinstance(P, int) and not isinstance(P, bool) and P >= 1 for P in counts):
        raise MisuseError(f"ranks={ranks!r}; give a number of ranks of at least 1, or a list of them: [2, 3, 4]")
    return counts
