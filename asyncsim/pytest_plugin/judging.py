"""Judging within a test: the fixture ``judge``, and the kernel that a marked test returns."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from asyncsim.machine.kernel import Kernel
from asyncsim.pytest_plugin import replaying
from asyncsim.pytest_plugin.collecting import judged_of
from asyncsim.pytest_plugin.marks import MARK, unwrapped
from asyncsim.pytest_plugin.naming import name_by_file
from asyncsim.testing.asserting import require
from asyncsim.testing.requirement import Requirement, VerdictError
from asyncsim.testing.saving import check_and_save, check_and_save_aio
from asyncsim.trace.errors import KernelError, MisuseError

if TYPE_CHECKING:
    from asyncsim.checking.verdict.report import Report
    from asyncsim.testing.requirement import Finds

RANKS = 4


class Judge:
    """Judges kernels for one test, with the options of the test run.

    Args:
        item: the test.

    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(
        self, kernel: Kernel, *, ranks: int = RANKS, require: str | None = None, finds: Finds | None = None, **how: Any  # noqa: ANN401
    ) -> Report:  # fmt: skip
        """Judge a kernel at one P.

        Args:
            kernel: what is judged.
            ranks: P.
            require: "proved", "exhausted", "survived" or "refuted"; None: what the kernel declares that it
                gives (`finds`), or else "proved".
            finds: of "refuted", the findings that there must be: "WAR, next call", "deadlock", …
            how: further arguments of `asyncsim.check`: calls, memory, seed, …

        Returns:
            The report.

        Raises:
            VerdictError: it is not what is required. With ``--asyncsim-replay`` the test fails if the
                recorded run is of this kernel at this P, and shows a failure.

        """
        __tracebackhide__ = True
        requirement = _requirement(require, finds, kernel)
        how = self._options(kernel, how)
        record = replaying.record_of(self._item.config, kernel, ranks, how)
        if record is not None:
            replaying.follow(record, kernel)
        return _required(check_and_save(kernel, ranks=ranks, **how), requirement)

    async def aio(
        self, kernel: Kernel, *, ranks: int = RANKS, require: str | None = None, finds: Finds | None = None, **how: Any  # noqa: ANN401
    ) -> Report:  # fmt: skip
        """Do the same within a running trio loop, which goes on meanwhile.

        Args:
            kernel: the kernel to judge.
            ranks: P.
            require: the verdict that it must have, see `Requirement.of`; None with `finds` None: what the kernel
                declares.
            finds: the findings that it must have, and no others.
            how: the further arguments of `asyncsim.check`.

        Raises:
            VerdictError: the kernel is not judged so.

        """
        __tracebackhide__ = True
        requirement = _requirement(require, finds, kernel)
        how = self._options(kernel, how)
        record = replaying.record_of(self._item.config, kernel, ranks, how)
        if record is not None:
            replaying.follow(record, kernel)
        return _required(await check_and_save_aio(kernel, ranks=ranks, **how), requirement)

    def _options(self, kernel: Kernel, how: dict[str, Any]) -> dict[str, Any]:
        """Add what the options of the test run say."""
        config = self._item.config
        if not isinstance(kernel, Kernel):
            raise MisuseError(f"{kernel!r} is no kernel; a kernel is an async function under @asyncsim.kernel(...)")
        name_by_file(kernel, config)
        runs = config.getoption("asyncsim_runs")
        if runs is not None:
            how = {**how, "samples": runs}
        return how


def judge_item(item: pytest.Function) -> None:
    """Judge the kernel that a marked test returns; the test fails if it is not what the mark requires."""
    judged = judged_of(item)
    assert judged is not None  # noqa: S101 - for the type checker: collection gives every marked test one
    taken = inspect.signature(item.obj).parameters
    returned = item.obj(**{name: value for name, value in item.funcargs.items() if name in taken})
    kernel, _ = unwrapped(returned)
    if kernel is None:
        pytest.fail(
            f"{item.nodeid} returned {returned!r}, which is no kernel; a test marked {MARK} returns one", pytrace=False
        )
    asked = judged.marked.requirement
    level, finds = (None, None) if asked is None else (asked.level, asked.finds or None)
    how = {"memory": judged.memory, **judged.marked.how}
    if item.config.getoption("asyncsim_replay"):
        name_by_file(kernel, item.config)
        record = replaying.record_of(item.config, kernel, judged.ranks, how)
        if record is None:
            pytest.skip("the recorded run is of another kernel or another case")
        replaying.follow(record, kernel)
        return
    try:
        Judge(item)(kernel, ranks=judged.ranks, require=level, finds=finds, **how)
    except VerdictError as error:
        error.brief = True
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    except (KernelError, MisuseError) as error:
        raise pytest.fail.Exception(f"{type(error).__name__}: {error}", pytrace=False) from None


def _requirement(level: str | None, finds: Finds | None, kernel: Kernel) -> Requirement:
    if level is None and finds is None and isinstance(kernel, Kernel):
        return Requirement.declared_by(kernel)
    return Requirement.of(level, finds)


def _required(report: Report, requirement: Requirement) -> Report:
    __tracebackhide__ = True
    try:
        require(report, requirement)
    except VerdictError as error:
        error.replays_here = True
        raise
    return report
