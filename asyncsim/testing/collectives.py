"""The rules of a collective, for anybody's: `check_collective`."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from asyncsim.checking.diagnose.compare import compare
from asyncsim.checking.verdict.check import check
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import Kernel, kernel
from asyncsim.schedulers.fifo import Fifo
from asyncsim.testing.asserting import rank_counts
from asyncsim.testing.requirement import Requirement
from asyncsim.trace.declare import Group, Window
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE
from asyncsim.views.report import report_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.testing.requirement import Finds
    from asyncsim.trace.declare import Declaration

    Program = Callable[..., Any]

RANKS = (1, 2, 3, 4, 5)
SIZES = (0, 1, 7)
DTYPES: tuple[Any, ...] = (np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8)
SIZE = "SIZE"
"""Stands for the number of elements in the shape of an input."""


def check_collective(  # noqa: PLR0913 - a collective, what it works on, and what it is tried with
    program: Program,
    *,
    memory: Sequence[Declaration],
    shape: Sequence[int | str],
    golden: Callable[..., Sequence[Any]],
    finds: Finds = (),
    ranks: int | Sequence[int] = RANKS,
    sizes: Sequence[int] = SIZES,
    dtypes: Sequence[Any] = DTYPES,
) -> None:
    """Require of a collective that it does what its golden says, wherever it is used.

    * the result has the golden's shape, dtype and bits: at every P, size (also none) and dtype, in two calls;
    * nothing is read that nobody wrote;
    * two calls back to back are PROVED at every P, and so credits are given back of a signal that is
      declared `self_cleaning`; or, with `finds`, they are REFUTED by that;
    * within a group, whose ranks have other numbers, in another order, it does the same.

    Args:
        program: ``async def program(rank, x, *memory)``: stages x, calls the collective, returns the result;
            a kernel's will do.
        memory: of the program; the last extent of every window stands for the size, its dtype for the dtype.
        shape: of one rank's input: "P" stands for the number of ranks, "SIZE" for the size.
        golden: the inputs of all ranks -> the result of each, reduced in the order of the collective.
        finds: the findings of two calls, for one that leaves a barrier to its caller.
        ranks: P, or several.
        sizes: elements.
        dtypes: of windows and inputs.

    Raises:
        AssertionError: a rule is broken; the message says which, and where.
        MisuseError: an argument cannot be right.

    """
    __tracebackhide__ = True
    requirement = Requirement.of(finds=finds if finds or isinstance(finds, str) else None)  # none: it is PROVED
    # How many pairs there are is counted for the world, and some of the runs are of a group.
    requirement = replace(requirement, finds=tuple(replace(one, pairs=None) for one in requirement.finds))
    counts = rank_counts(ranks)
    if not sizes or not dtypes:
        raise MisuseError("check_collective: give at least one size and one dtype")
    collective = _Collective(program, tuple(memory), tuple(shape), golden)
    for P in counts:
        for size, dtype in product(sizes, dtypes):
            _check_results(collective.kernel(size, dtype), P, f"{size} elements of {np.dtype(dtype).name}")
        grouped, world = collective.in_group(P, sizes[-1], dtypes[0])
        _check_results(grouped, world, f"a group of {P} ranks in reverse order")
        for made, size in ((collective.kernel(sizes[-1], dtypes[0]), P), (grouped, world)):
            report = check(made, ranks=size, shrinking=0)
            alone = Requirement() if P == 1 and not report.refuted else requirement
            why = alone.unmet(report)
            if why:
                # The kernel is made here, so no command can name it to replay a token.
                told = replace(report, findings=[found.with_(token=None) for found in report.findings])
                raise AssertionError(f"two calls back to back: {why}\n\n{report_text(told)}")


class _Collective:
    """A collective as a kernel of any size and dtype, in the world or in a group."""

    def __init__(
        self, program: Program, memory: tuple[Declaration, ...], shape: tuple[int | str, ...], golden: Any  # noqa: ANN401
    ) -> None:  # fmt: skip
        if SIZE not in shape:
            raise MisuseError(f"check_collective: shape={shape!r}; write {SIZE!r} where the elements are")
        self.program = program
        self.memory = memory
        self.shape = shape
        self.golden = golden

    def kernel(self, size: int, dtype: Any) -> Kernel:  # noqa: ANN401 - whatever numpy takes
        """Return the kernel of the whole world."""
        return kernel(
            memory=[_sized(item, size, dtype) for item in self.memory],
            inputs=lambda P, call, rng: [self._draw(rng, P, size, dtype) for _ in range(P)],  # noqa: ARG005
            golden=self.golden,
        )(self._wrapped(lambda rank: rank))

    def in_group(self, members: int, size: int, dtype: Any) -> tuple[Kernel, int]:  # noqa: ANN401 - as above
        """Return the kernel of a group of so many ranks, in reverse order, with one rank outside; and P."""
        order = tuple(range(members, 0, -1))
        group = Group("others", order)

        def golden(xs: Sequence[Any]) -> list[Any]:
            results = dict(zip(order, self.golden([xs[rank] for rank in order]), strict=True))
            return [results.get(rank) for rank in range(len(xs))]

        made = kernel(
            memory=[replace(_sized(item, size, dtype), group=group) for item in self.memory],
            inputs=lambda P, call, rng: [self._draw(rng, members, size, dtype) for _ in range(P)],  # noqa: ARG005
            golden=golden,
        )(self._wrapped(lambda rank: rank.within(group) if rank.id in order else None))
        return made, members + 1

    def _wrapped(self, place: Callable[[Any], Any]) -> Program:
        """Return the program as it runs at a place: as a rank of the world, or a member of a group, or not at all."""

        async def program(rank: Any, x: Any, *views: Any) -> Any:  # noqa: ANN401 - a kernel's
            """Stage, do the collective, return the result."""
            own = place(rank)
            return None if own is None else await self.program(own, x, *views)

        return program

    def _draw(self, rng: np.random.Generator, ranks: int, size: int, dtype: Any) -> Any:  # noqa: ANN401
        known: dict[int | str, int | str] = {"P": ranks, SIZE: size}
        shape: Any = [known.get(extent, extent) for extent in self.shape]
        numbers = rng.integers(-100, 101, shape) if np.dtype(dtype).kind in "iu" else rng.standard_normal(shape)
        return numbers.astype(dtype)


def _sized(item: Declaration, size: int, dtype: Any) -> Declaration:  # noqa: ANN401
    return replace(item, shape=(*item.shape[:-1], size), dtype=dtype) if isinstance(item, Window) else item


def _check_results(made: Kernel, ranks: int, what: str) -> None:
    """Compare two calls with their goldens, bit for bit."""
    __tracebackhide__ = True
    case = Case(made, ranks, 2)
    run = drive(case, Fifo())
    where = f"P = {ranks}, {what}"
    if run.ending != COMPLETE:
        raise AssertionError(f"every P, size and dtype: the run ends with {run.ending} ({where})")
    if run.unwritten:
        raise AssertionError(f"what is read was written: nobody wrote {run.unwritten[0]} ({where})")
    for call, wants in enumerate(case.goldens or ()):
        for rank, (got, want) in enumerate(zip(run.outputs[call], wants, strict=True)):
            off = _difference(got, want)
            if off:
                # One rank reduces nothing, so no order can be wrong.
                hint = "; let the golden reduce in the order of the collective" * (ranks > 1)
                raise AssertionError(
                    f"the golden, bit for bit: rank {rank}'s result of call {call}: {off} ({where}){hint}"
                )


def _difference(got: Any, want: Any) -> str:  # noqa: ANN401 - results
    if got is None or want is None:
        return "" if got is want else f"got {got!r}, expected {want!r}"
    a, b = np.asarray(got), np.asarray(want)
    if a.dtype != b.dtype:
        return f"it has dtype {a.dtype}, the golden {b.dtype}"
    if a.shape == b.shape and a.tobytes() == b.tobytes():
        return ""
    off = compare(a, b, rtol=0.0, atol=0.0)
    return "the same numbers in other bits" if off is None else off.text
