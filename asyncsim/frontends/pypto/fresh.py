"""What a dispatch gives on fresh windows: the golden of further ones, on windows that are used again.

A script keeps its own golden to itself. But where every schedule of one dispatch gives the same result, that is the
result which the same inputs must give whatever an earlier dispatch has left behind. So a program that adds to what it
finds in a window is wrong the second time, though it has no race.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.analyse import analyse
from asyncsim.frontends.pypto.values import OtherUseError
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.pypto.host import Array
    from asyncsim.machine.kernel import Kernel

    Inputs = Sequence[tuple[Array, ...]]

MOST = 16
"""So many dispatches are made, at most, to say of a wrong result what else it is: "rank 1's of the previous call"."""


def with_golden(kernel: Kernel, case: Case) -> tuple[Kernel, Fresh]:
    """Return the kernel of a case with a golden: what each of its calls gives on fresh windows.

    Args:
        kernel: of the case.
        case: its ranks, calls, memory model and inputs.

    Returns:
        The kernel itself if that is not known: if some call's inputs hang, fail, or race on fresh windows too. And
        what makes the runs for it, which counts them.

    Raises:
        KernelError: by an `OtherUseError`: a window is used as nobody has used it before.

    """
    fresh = Fresh(kernel, case.memory)
    if case.calls > 1 and all(fresh.is_certain(xs) for xs in case.inputs):
        return replace(kernel, golden=fresh.golden, rtol=0.0, atol=0.0), fresh
    return kernel, fresh


class Fresh:
    """Dispatches on fresh windows, each made once.

    Args:
        kernel: what is dispatched.
        memory: the memory model by name.

    Attributes:
        made: how many were made.

    """

    def __init__(self, kernel: Kernel, memory: str) -> None:
        self.made = 0
        self._kernel = kernel
        self._memory = memory
        self._given: dict[tuple[bytes, ...], Any] = {}
        self._left = MOST

    def is_certain(self, xs: Inputs) -> bool:
        """Say whether every schedule gives the same for these inputs; keep what it is."""
        self.made += 1
        try:
            run = drive(self._case(xs), Fifo(), record=str(Fifo()))
        except KernelError as error:
            if isinstance(error.__cause__, OtherUseError):
                raise
            return False
        self._given[_key(xs)] = run.outputs[0]
        return run.trace is not None and run.ending == COMPLETE and analyse(run.trace).clean

    def golden(self, xs: Inputs) -> Any:  # noqa: ANN401 - outputs by rank
        """Return what these inputs give; others than those of the case were changed to explain a wrong result."""
        key = _key(xs)
        if key not in self._given:
            if not self._left:
                raise MisuseError(f"more than {MOST} other inputs are not tried")
            self._left -= 1
            self.made += 1
            run = drive(self._case(xs), Fifo())
            if run.ending != COMPLETE:
                raise MisuseError("these inputs hang")
            self._given[key] = run.outputs[0]
        return self._given[key]

    def _case(self, xs: Inputs) -> Case:
        kernel = replace(self._kernel, inputs=lambda *_: xs)
        return Case(kernel, ranks=len(xs), calls=1, memory=self._memory)


def _key(xs: Inputs) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for arrays in xs for array in arrays)
