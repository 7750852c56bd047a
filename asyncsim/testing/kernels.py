"""The rules of a kernel, for anybody's: `check_kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.models import AUTO
from asyncsim.checking.verdict.probe import stream_difference
from asyncsim.checking.verdict.suspects import SHRINK_STEPS
from asyncsim.machine.case import MISSING, Case, copied
from asyncsim.machine.direct import drive
from asyncsim.machine.goldens import Predicate
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.fifo import Fifo
from asyncsim.testing.asserting import rank_counts
from asyncsim.testing.requirement import Requirement
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import KernelError, MisuseError, RefusedError
from asyncsim.trace.event import COMPLETE
from asyncsim.views.report import finding_title, report_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Run
    from asyncsim.trace.finding import Expected

RANKS = (1, 2, 3, 4)
REFUSED = "refused"


def check_kernel(
    kernel: Kernel, *, ranks: int | Sequence[int] = RANKS, calls: int = 2, memory: str = AUTO, seed: int = 0
) -> tuple[Report, ...]:
    """Require of a kernel what makes its verdict worth something.

    * it says in a line what it is;
    * its inputs are the same for the same P, call and seed, and others in another call;
    * its golden leaves the inputs alone, and gives each rank a result of the shape that the kernel gives;
    * the same schedule gives the same run again;
    * at every P it is PROVED; or, if it declares what it `finds`, REFUTED by that and by nothing else.
      (With one rank there may be nobody to race with: there PROVED will do.)

    Args:
        kernel: any kernel.
        ranks: P, or several; the odd ones are where kernels break.
        calls: back to back on the same memory.
        memory: the memory model, as of `asyncsim.check`.
        seed: of the inputs.

    Returns:
        The reports, one a P; none of a kernel that must be refused.

    Raises:
        AssertionError: a rule is broken; the message says which, and what would be right.
        KernelError: it raises.
        MisuseError: it cannot be run at all.

    """
    __tracebackhide__ = True
    if not isinstance(kernel, Kernel):
        raise MisuseError(f"{kernel!r} is no kernel; decorate it with @kernel(memory=[...])")
    if not kernel.first_line:
        raise AssertionError(f"{kernel.ref}: what it is: give the program a docstring, or the variant about=...")
    counts = rank_counts(ranks)
    plain = "sc" if memory == AUTO else memory
    for P in counts:
        _check_inputs(Case(kernel, P, calls, plain, seed))
    if any(expected.kind == REFUSED for expected in kernel.finds):
        _check_refused(kernel, counts[-1], plain)
        return ()
    reports = []
    for P in counts:
        case = Case(kernel, P, calls, plain, seed)
        _check_results(case)
        # The witness of what is declared is looked at by nobody here, so it may be long.
        shrinking = 0 if kernel.finds else SHRINK_STEPS
        report = check(kernel, ranks=P, calls=calls, memory=memory, seed=seed, shrinking=shrinking)
        _check_verdict(report)
        reports.append(report)
    return tuple(reports)


def _check_inputs(case: Case) -> None:
    __tracebackhide__ = True
    kernel = case.kernel
    if kernel.inputs is None:
        return
    one, two = (kernel.make_inputs(case.ranks, call, case.seed) for call in (0, 1))
    if digest(one) != digest(kernel.make_inputs(case.ranks, 0, case.seed)):
        raise AssertionError(f"{kernel.ref}: inputs: other values the second time; draw them from rng alone")
    if digest(one) == digest(two):
        raise AssertionError(
            f"{kernel.ref}: inputs: those of call 1 are those of call 0 (P = {case.ranks}), so no schedule can show "
            "a stale read; draw new ones from rng in every call"
        )


def _check_refused(kernel: Kernel, ranks: int, memory: str) -> None:
    __tracebackhide__ = True
    try:
        drive(Case(kernel, ranks, 1, memory), Fifo())
    except KernelError as error:
        if isinstance(error.__cause__, RefusedError):
            return
        raise
    raise AssertionError(f"{kernel.ref}: finds: it declares that it is refused, and it ran to its end")


def _check_results(case: Case) -> None:
    """Look at two fair runs and their goldens."""
    __tracebackhide__ = True
    kernel = case.kernel
    one, two = (drive(case, Fifo(), record="fifo") for _ in range(2))
    assert one.trace is not None  # noqa: S101 - for the type checker: both are recorded
    assert two.trace is not None  # noqa: S101 - as above
    difference = stream_difference(one.trace, two.trace)
    if one.choices != two.choices or digest(one.outputs) != digest(two.outputs) or difference:
        told = difference or "gives other results"
        raise AssertionError(
            f"{kernel.ref}: the same run again: the second one {told} (P = {case.ranks}); "
            "a kernel depends on its inputs and its memory alone: no globals, no dice, no clock"
        )
    if kernel.golden is None:
        if any(output is not None for outputs in one.outputs for output in outputs):
            raise AssertionError(f"{kernel.ref}: golden: it returns results, so give golden=... to compare them with")
        return
    _check_golden(case, one)


def _check_golden(case: Case, run: Run) -> None:
    __tracebackhide__ = True
    kernel = case.kernel
    for call, xs in enumerate(case.inputs):
        lent = [copied(x) for x in xs]
        right = kernel.right_results(lent, call)
        if isinstance(kernel.golden, Predicate) and run.ending == COMPLETE:
            kernel.golden.holds(f"{kernel.ref}: golden, for call {call}", lent, copied(run.outputs[call]))
        if digest(lent) != digest(xs):
            raise AssertionError(f"{kernel.ref}: golden: it changes the inputs; copy before you add")
        for rank, got in enumerate(run.outputs[call]):
            shapes = [_shapes(wants[rank]) for wants in right]
            if run.ending == COMPLETE and shapes and _shapes(got) not in shapes:
                raise AssertionError(
                    f"{kernel.ref}: golden: of rank {rank} it has shape {shapes[0]}, and the result has "
                    f"{_shapes(got)} (P = {case.ranks}); give what each rank must return"
                )


def _check_verdict(report: Report) -> None:
    __tracebackhide__ = True
    case = report.case
    expected = case.kernel.finds
    harmful = [finding for finding in report.findings if finding.harmful]
    undeclared = [finding for finding in harmful if not any(one.matches(finding) for one in expected)]
    if undeclared:
        titles = ", ".join(map(finding_title, undeclared))
        raise AssertionError(
            f"{case.kernel.ref}: verdict: it does not declare {titles}; repair it, or declare finds=...\n\n"
            f"{report_text(report)}"
        )
    alone = case.ranks == 1 and not harmful
    why = Requirement.of(finds=None if alone else _possible(expected, case.ranks) or None).unmet(report)
    if why:
        raise AssertionError(f"{case.kernel.ref}: verdict: {why}\n\n{report_text(report)}")


def _possible(expected: Sequence[Expected], ranks: int) -> list[Expected]:
    """Leave out races that so few ranks have no pair for."""
    return [one for one in expected if one.pairs is None or one.pairs(ranks)]


def digest(value: Any) -> Any:  # noqa: ANN401 - inputs and outputs are arrays, numbers, and lists or tuples of them
    """Return what two values have in common if and only if they have the same bits."""
    if isinstance(value, list | tuple):
        return [digest(part) for part in value]
    return value if value is None or value is MISSING else digest_value(value)


def _shapes(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, list | tuple):
        return [_shapes(part) for part in value]
    return np.shape(value)
