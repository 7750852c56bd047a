"""Siblings: other kernels of a file that a change of it reaches, too. A repair must leave them as good as before.

A sibling shares the program, or its fair run visits a function that is changed. It is judged as the repaired kernel is,
on the same ranks: in the file as it stands, once, and in the changed one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asyncsim.checking.verdict.check import check
from asyncsim.study.source import UnreadableError, visited
from asyncsim.trace.errors import AsyncsimError
from asyncsim.trace.finding import VERDICTS

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from asyncsim.machine.case import Case
    from asyncsim.machine.kernel import Kernel
    from asyncsim.study.source import Change, Source

MOST_CHECKS = 32
"""So many checks of siblings are made for one kernel; those that are left are named, and not judged."""


class Siblings:
    """The other kernels of a file.

    Args:
        source: the file of the kernel that is repaired.
        case: what is judged of that kernel.
        models: the memory models under which it is.

    """

    def __init__(self, source: Source, case: Case, models: Sequence[str]) -> None:
        self._source = source
        self._case = case
        self._models = models
        self._checks = 0
        self._visits: dict[str, frozenset[ast.AsyncFunctionDef]] = {}
        self._before: dict[tuple[str, str], int | None] = {}

    async def after(self, changes: Sequence[Change]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Judge the siblings that some changes reach.

        Returns:
            The names of those that are as good as before, and of those that were not judged; None: one is not as good.

        """
        good, unjudged = [], []
        for name, kernel in self._source.others.items():
            if not await self._reached(name, kernel, changes):
                continue
            needed = sum(1 + ((name, model) not in self._before) for model in self._models)
            if self._checks + needed > MOST_CHECKS:
                unjudged.append(name)
                continue
            if not await self._as_good(name, kernel, changes):
                return None
            good.append(name)
        return tuple(good), tuple(unjudged)

    async def _reached(self, name: str, kernel: Kernel, changes: Sequence[Change]) -> bool:
        if kernel.program is self._source.kernel.program:
            return True
        if name not in self._visits:
            try:
                seen = await visited(self._source, replace(self._case, kernel=kernel))
                self._visits[name] = frozenset(seen.functions)
            except AsyncsimError:  # it is not made for so many ranks, or fails as it stands
                self._visits[name] = frozenset()
        return not self._visits[name].isdisjoint(map(self._source.function_of, changes))

    async def _as_good(self, name: str, kernel: Kernel, changes: Sequence[Change]) -> bool:
        for model in self._models:
            if (name, model) not in self._before:
                self._before[name, model] = await self._place(kernel, model)
            before = self._before[name, model]
            try:
                after = await self._place(self._source.load(changes, name), model)
            except UnreadableError:
                after = None
            if before is not None and (after is None or after > before):
                return False
        return True

    async def _place(self, kernel: Kernel, model: str) -> int | None:
        """Return how weak the verdict on a kernel is; None: it cannot be judged."""
        case = self._case
        self._checks += 1
        try:
            report = await check.aio(
                kernel, ranks=case.ranks, calls=case.calls, memory=model, seed=case.seed,
                max_steps=case.max_steps, budget=0, samples=1,
            )  # fmt: skip
        except AsyncsimError:
            return None
        if report.interrupted:
            raise KeyboardInterrupt
        return VERDICTS.index(report.verdict)
