"""Keeping witnesses: a token for every failing schedule, and a file as soon as it is found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.symptoms import describe_hang
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.replay import Replay
from asyncsim.trace.errors import KernelError
from asyncsim.trace.finding import REFUTED
from asyncsim.trace.jsonl import write_trace
from asyncsim.trace.token import Token, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.trace.finding import Finding

SCHEDULER = "witness"
"""What the header of a witness names as its scheduler: the analysis chose."""


class WitnessWriter:
    """Writes the witness of findings: always as a token, and as a file where there is a directory.

    Args:
        case: what is judged.
        save: the directory, made if it is missing; None: nothing is written.

    """

    def __init__(self, case: Case, save: Path | str | None) -> None:
        """Make the directory now, so that a bad one is noticed before the work."""
        self.case = case
        self.folder = None if save is None else Path(save)
        self._names: dict[str, int] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    async def write_witness(
        self, finding: Finding, choices: Sequence[str], *, ending: str | None = None, memory: str = ""
    ) -> Finding:
        """Return the finding with its token and, where there is a directory, its file, which is on disk by then.

        A hang is described: what waits, where, for what, and why for ever.

        Args:
            finding: what was found.
            choices: the names of the actors, step by step, of a run that shows it.
            ending: how that run ended; None: not known.
            memory: the memory model of that run; empty: that of the case.

        Raises:
            RuntimeError: the run that shows it could not be recorded.

        """
        case = replace(self.case, memory=memory) if memory else self.case
        finding = describe_hang(case, finding, choices)
        header = case.header(SCHEDULER)
        with_token = finding.with_(token=encode(Token.of(header, choices, ending=ending)))
        if self.folder is None:
            return with_token
        try:
            run = await simulate.aio(case, Replay(choices), record=SCHEDULER, engine="direct")
            trace = run.trace
        except KernelError as error:
            trace = error.trace
        if trace is None or trace.footer is None:
            raise RuntimeError("a recorded run has no trace")
        trace.footer.verdict = REFUTED
        trace.footer.findings = [finding.with_(trace=None, token=None).to_json()]
        path = self.folder / self._name(finding)
        write_trace(trace, path)
        return with_token.with_(trace=str(path))

    def _name(self, finding: Finding) -> str:
        """Name a file by what it shows; the same check gives the same names."""
        case = self.case
        module, _, name = case.kernel.ref.rpartition(":")
        stem = f"{Path(module).stem if module.endswith('.py') else module.rpartition('.')[2]}-{name}"
        model = "" if case.memory == "sc" else f"-{case.memory}"
        text = f"{stem}-P{case.ranks}-calls{case.calls}{model}-{finding.title}"
        safe = re.sub(r"[^A-Za-z0-9_.]+", "-", text)
        count = self._names[safe] = self._names.get(safe, 0) + 1
        return f"{safe}{'' if count == 1 else f'-{count}'}.jsonl"
