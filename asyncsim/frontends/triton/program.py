"""A function that launches Triton kernels, as a kernel of asyncsim: every rank runs it, as its own process would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import asyncsim.checking.verdict.check as checking
from asyncsim.checking.verdict.report import count_benign_races
from asyncsim.frontends.triton.host import Host
from asyncsim.frontends.triton.launch import enter_host, install
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.memory import Memory
from asyncsim.frontends.triton.tensors import to_numpy
from asyncsim.guest.host import hosted
from asyncsim.guest.program import GuestProgram
from asyncsim.machine.case import Case
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.finding import RACE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from asyncsim.checking.search.tally import Progress
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.rank import Rank

MODEL = "gpu"
"""The memory model of GPUs, which Triton kernels are judged under."""
SHRINK_STEPS = 3_000
BUDGET = 400
_MOST_TRIES = 200


class _Deterministic:
    """While some rank's program runs, what ``torch.empty`` holds is the same in every run."""

    def __init__(self) -> None:
        self._inside = 0
        self._before: tuple[bool, bool] = (False, False)

    def __enter__(self) -> None:
        if not self._inside:
            warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
            self._before = (torch.are_deterministic_algorithms_enabled(), warn_only)
            torch.use_deterministic_algorithms(mode=True, warn_only=True)
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        if not self._inside:
            torch.use_deterministic_algorithms(self._before[0], warn_only=self._before[1])


_DETERMINISTIC = _Deterministic()


class Program(GuestProgram):
    """What a kernel of asyncsim has for its program.

    Args:
        function: the author's; takes a `Host` and, if there are inputs, its input.
        memory: what is declared.
        inputs: whether there are inputs.

    """

    def __init__(self, function: Callable[..., Any], memory: Memory, *, inputs: bool) -> None:
        super().__init__(function, Host, inputs=inputs)
        self.__globals__ = getattr(function, "author_globals", self.__globals__)
        self._memory = memory

    async def __call__(self, rank: Rank, *given: Any, **params: Any) -> Any:
        """Host the function on one rank."""
        own = given[: int(self._inputs)]
        host = Host(rank, self._memory, given[len(own) :])

        def program() -> Any:
            enter_host(host)
            with _DETERMINISTIC:
                return _plain(self._function(host, *own, **params))

        return await hosted(program)


def kernel_of(
    function: Callable[..., Any],
    *,
    ranks: int,
    calls: int = 2,
    memory: str = MODEL,
    seed: int = 0,
    before_run: Callable[[], None] | None = None,
    **fields: Any,
) -> Kernel:
    """Return a function that launches Triton kernels as a kernel of asyncsim, for so many ranks.

    It is run first, as often as it comes to memory that is not declared yet.

    Args:
        function: blocking; takes a `Host` and, if there are inputs, its input.
        ranks: P.
        calls: back to back.
        memory: the memory model.
        seed: of the inputs.
        before_run: is called before each of these runs.
        fields: of `asyncsim.Kernel`: inputs, golden, rtol, …

    Raises:
        KernelError: it raised.

    """
    install()
    found = Memory()
    inputs = fields.get("inputs") is not None
    for _ in range(_MOST_TRIES):
        if before_run is not None:
            before_run()
        kernel = Kernel(Program(function, found, inputs=inputs), memory=found.declare(), **fields)
        try:
            simulate(Case(kernel, ranks, calls, memory, seed), Fifo())
        except KernelError:
            if not found.incomplete:
                raise
        if not found.incomplete:
            found.open = False
            return kernel
    raise MisuseError(f"{function.__name__}: its memory is not found out after {_MOST_TRIES} runs")


def judge(
    function: Callable[..., Any],
    *,
    ranks: int = 2,
    calls: int = 2,
    memory: str = MODEL,
    seed: int = 0,
    shrinking: int = SHRINK_STEPS,
    budget: int = BUDGET,
    races: str = "all",
    progress: Callable[[Progress], None] | None = None,
    save: Path | None = None,
    **fields: Any,
) -> Report:
    """Judge a function that launches Triton kernels.

    Args:
        function: as for `kernel_of`.
        ranks: P.
        calls: back to back on the same memory.
        memory: the memory model.
        seed: of the inputs.
        shrinking: how many steps it may cost to shrink one witness; steps of a kernel that is interpreted are slow.
        budget: how many executions an exhaustive exploration may take, if one run does not decide.
        races: as for `counted`.
        progress: likewise.
        save: likewise.
        fields: as for `kernel_of`.

    """
    kernel = kernel_of(function, ranks=ranks, calls=calls, memory=memory, seed=seed, **fields)
    report = checking.check(
        kernel, ranks=ranks, calls=calls, memory=memory, seed=seed, shrinking=shrinking, budget=budget,
        progress=progress, save=save,
    )  # fmt: skip
    return counted(report, races)


def counted(report: Report, races: str) -> Report:
    """Return a report in which data races refute also where no run shows their harm: PTX defines the result of none.

    Args:
        report: what `asyncsim.check` says.
        races: "all"; or "harmful": only those count that are shown to be so.

    """
    data = [finding for finding in report.findings if finding.kind == RACE]
    judged = count_benign_races(replace(report, findings=data), races)
    return replace(judged, findings=report.findings)


def _plain(value: Any) -> Any:
    """Return arrays for tensors."""
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return to_numpy(value.clone()) if isinstance(value, torch.Tensor) else value
