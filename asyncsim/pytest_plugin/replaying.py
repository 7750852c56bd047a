"""``--asyncsim-replay``: instead of judging, do one recorded run again in the test that it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.checking.verdict.models import AUTO
from asyncsim.machine.case import Case
from asyncsim.pytest_plugin.collecting import judged_of
from asyncsim.pytest_plugin.naming import name_by_file
from asyncsim.trace.errors import DivergenceError, KernelError, MisuseError, TraceError
from asyncsim.trace.token import read_record
from asyncsim.views.report import case_text
from asyncsim.views.run import run_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.checking.record.replay import Replayed
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Trace
    from asyncsim.trace.token import Token

_RECORD = pytest.StashKey["Token | Trace"]()
JUDGE = "judge"
"""A test with this fixture may judge any kernel."""


def load(config: pytest.Config) -> None:
    """Read the recorded run that the option names.

    Raises:
        pytest.UsageError: it cannot be read.

    """
    try:
        config.stash[_RECORD] = read_record(config.getoption("asyncsim_replay"), config.invocation_params.dir)
    except (MisuseError, TraceError) as error:
        raise pytest.UsageError(f"--asyncsim-replay: {error}") from None


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that the recorded run can be of.

    Args:
        config: holds the record, and is told of the tests that are left out.
        items: all tests that were collected; changed in place.

    """
    kept = [item for item in items if _can_be_of(item, config)]
    left_out = [item for item in items if item not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def record_of(config: pytest.Config, kernel: Kernel, ranks: int, how: Mapping[str, Any]) -> Token | Trace | None:
    """Return the recorded run, if there is one and it is of this kernel in this case.

    Args:
        config: holds the record, if pytest was started with one.
        kernel: the one that the test judges.
        ranks: P.
        how: the further arguments that the test gives to `check`.

    """
    record = config.stash.get(_RECORD, None)
    if record is None or not _same_case(record, ranks, how) or not _same_kernel(record, kernel):
        return None
    return record


def follow(record: Token | Trace, kernel: Kernel) -> None:
    """Do the run again, and fail the test if the run shows a failure, or is not the recorded one.

    Args:
        record: of a run of this kernel.
        kernel: the one that the test judges.

    Raises:
        pytest.fail.Exception: the run fails, or goes another way.

    """
    __tracebackhide__ = True
    try:
        again = replay(record, kernel)
    except DivergenceError as error:
        told = (
            f"this is not the recorded run any more: {error}\n"
            "the kernel does something else now; judge it again, without --asyncsim-replay"
        )
    except KernelError as error:
        told = f"replayed {len(error.trace.events)} steps; the kernel raises: {error}"
    else:
        told = _failure(again, kernel)
    if told:
        pytest.fail(told, pytrace=False)


def _failure(again: Replayed, kernel: Kernel) -> str:
    """Say what fails in a run that was done again; nothing: empty."""
    run = again.run
    case = run.case
    # Without the limit of steps that a replay has.
    symptoms = Symptoms(Case(kernel, case.ranks, case.calls, case.memory, case.seed, edits=case.edits))
    findings = again.failures(symptoms.findings(run))
    if not findings:
        return ""
    return f"replayed {again.steps} steps of {case_text(case)}\n{run_text(run, findings, symptoms.differences(run))}"


def may_replay(item: pytest.Item) -> bool:
    """Say whether a test can do a recorded run again: it carries the mark, or has the fixture."""
    return JUDGE in getattr(item, "fixturenames", ()) or judged_of(item) is not None


def _can_be_of(item: pytest.Item, config: pytest.Config) -> bool:
    judged = judged_of(item)
    if judged is None:
        return may_replay(item)
    record = config.stash[_RECORD]
    if judged.kernel is not None:
        name_by_file(judged.kernel, config)
    same = _same_case(record, judged.ranks, {"memory": judged.memory, **judged.marked.how})
    return same and (judged.kernel is None or _same_kernel(record, judged.kernel))


def _same_kernel(record: Token | Trace, kernel: Kernel) -> bool:
    """Compare names; a kernel whose file was named from another folder is known by the file's content."""
    ref = record.header.kernel
    same_name = ref.rpartition(":")[2] == kernel.ref.rpartition(":")[2]
    return ref == kernel.ref or (same_name and record.header.source == kernel.source)


def _same_case(record: Token | Trace, ranks: int, how: Mapping[str, Any]) -> bool:
    was = record.header
    memory = how.get("memory", AUTO)
    asked = (ranks, how.get("calls", 2), was.memory if memory == AUTO else memory, how.get("seed", 0))
    return (was.ranks, was.calls, was.memory, was.seed) == asked
