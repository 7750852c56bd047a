"""Where witnesses are saved that no test asks for: the pytest plugin sets it for each test, the assertions obey it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from asyncsim.checking.search.witness_writer import WitnessWriter
from asyncsim.checking.verdict.check import check
from asyncsim.machine.simulate import Blocking

if TYPE_CHECKING:
    from pathlib import Path

    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.finding import Finding

FOLDER: ContextVar[Path | None] = ContextVar("asyncsim_save", default=None)
"""The folder; None: nothing is saved unless a test says so. It decides nothing but that."""


def check_and_save(kernel: Kernel, **how: Any) -> Report:  # noqa: ANN401
    """Check a kernel, and save its witnesses to the folder; one that cannot be written costs no report.

    Args:
        kernel: the kernel to judge.
        how: the further arguments of `asyncsim.check`; with a `save` of its own the folder is not used.

    """
    folder = FOLDER.get()
    if folder is None or "save" in how:
        return check(kernel, **how)
    try:
        return check(kernel, **how, save=folder)
    except OSError as error:
        return _noted(check(kernel, **how), error)


async def check_and_save_aio(kernel: Kernel, **how: Any) -> Report:  # noqa: ANN401
    """Do the same within a running trio loop.

    Args:
        kernel: the kernel to judge.
        how: as for `check_and_save`.

    """
    folder = FOLDER.get()
    if folder is None or "save" in how:
        return await check.aio(kernel, **how)
    try:
        return await check.aio(kernel, **how, save=folder)
    except OSError as error:
        return _noted(await check.aio(kernel, **how), error)


def _noted(report: Report, error: OSError) -> Report:
    """Say in a report why no witness was saved."""
    report.notes.append(f"no witness was saved: {error}")
    return report


def keep(finding: Finding, run: Run) -> tuple[Finding, list[str]]:
    """Return a finding with its token, and its file if there is a folder; and what is to be noted.

    Args:
        finding: what was found.
        run: the run that shows it.

    """
    try:
        return _kept(finding, run, FOLDER.get()), []
    except OSError as error:
        return _kept(finding, run, None), [f"no witness was saved: {error}"]


def _kept(finding: Finding, run: Run, folder: Path | None) -> Finding:
    return Blocking(WitnessWriter(run.case, folder).write_witness)(finding, run.choices, ending=run.ending)
