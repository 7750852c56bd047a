"""The golden as an oracle, and a wrong result beside it: where it is wrong, and which other numbers it equals.

What the outputs would be if some inputs were others works for every kernel with a golden, whatever it computes,
and assumes nothing about how the kernel does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.machine.case import copied
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from asyncsim.machine.case import Case

    Array = np.ndarray[Any, Any]
    Candidate = tuple[str, "Numbers | None", str]
    """What went wrong; the numbers that this gives; what these are."""

FEWEST, MOST = 16, 128
"""How many changes of one kind are tried, at least and at most."""
ELEMENTS = 1 << 22
"""Between the two, as many as have so many input elements together: a golden of large inputs may be slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An output as plain numbers.

    Args:
        flat: all elements in row-major order: floating ones in double precision, integers as they are.
        shapes: of the arrays it is made of.
        dtype: the arrays' own; None if they differ.

    """

    flat: Array
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any] | None

    @property
    def exact(self) -> bool:
        """Whether they are integers or booleans, which have no tolerance."""
        return self.flat.dtype.kind in "biu"


class Oracle:
    """Says what the golden makes of changed inputs, and remembers it.

    Args:
        case: whose golden is asked.
        number: which of several right results, from 0.

    """

    def __init__(self, case: Case, number: int = 0) -> None:
        self.case = case
        self.number = number
        self.explained: dict[tuple[Any, ...], str | None] = {}
        """What was said of wrong results before."""
        self._answers: dict[tuple[Any, ...], list[Any] | None] = {}
        self._numbers: dict[tuple[Any, ...], Numbers | None] = {}

    @cached_property
    def limit(self) -> int:
        """How many changes of one kind are tried."""
        elements = sum(part.size for x in self.case.inputs[0] for part in leaves(x) or ())
        return min(max(ELEMENTS // max(elements, 1), FEWEST), MOST)

    def golden(self, call: int, rank: int) -> Numbers | None:
        """Return what the output must be; None if there is no golden, or it is no number.

        Args:
            call: from 0.
            rank: from 0.

        """
        return self.given(call, rank, ("golden",), lambda: self.case.inputs[call])

    def results(self, call: int) -> list[Any]:
        """Return the right result of a call, one output a rank; the last one if there are not so many.

        Args:
            call: from 0.

        """
        right = self.case.right_results[call]
        return right[min(self.number, len(right) - 1)]

    def given(
        self, call: int, rank: int, change: tuple[Any, ...], inputs: Callable[[], list[Any] | None]
    ) -> Numbers | None:
        """Return what the output would be; None if the golden does not take such inputs.

        Args:
            call: of which the inputs are changed.
            rank: whose output is asked for.
            change: names the change.
            inputs: makes the changed inputs of all ranks; None: they cannot be changed so.

        """
        key = (call, *change)
        if key not in self._answers:
            self._answers[key] = self._ask(call, inputs())
        answers = self._answers[key]
        if answers is None:
            return None
        place = (rank, *key)
        if place not in self._numbers:
            self._numbers[place] = numbers_of(answers[rank])
        return self._numbers[place]

    def _ask(self, call: int, xs: list[Any] | None) -> list[Any] | None:
        kernel = self.case.kernel
        if xs is None:
            return None
        try:
            with np.errstate(all="ignore"):
                right = kernel.right_results(copied(xs), call)
            return right[self.number] if self.number < len(right) else None
        except MisuseError:
            return None  # a golden need not take inputs that its author did not think of


def leaves(value: Any) -> list[Array] | None:  # noqa: ANN401 - an input or an output
    """Return the arrays that a value is made of; None if it holds anything that is no number."""
    if isinstance(value, list | tuple):
        parts = [leaves(part) for part in value]
        return None if None in parts else [leaf for part in parts for leaf in part or ()]
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return None
    array = np.asarray(value)
    return None if array.dtype.kind in "OUSmM" else [array]


def numbers_of(value: Any) -> Numbers | None:  # noqa: ANN401 - an output
    """Return an output as plain numbers; None if it is none, or empty."""
    arrays = leaves(value)
    if not arrays or not any(array.size for array in arrays):
        return None
    dtypes = {array.dtype for array in arrays}
    kinds = {array.dtype.kind for array in arrays}
    flat = np.concatenate([array.reshape(-1) for array in arrays]) if kinds <= set("biu") else _wide(arrays, kinds)
    return Numbers(flat, tuple(array.shape for array in arrays), dtypes.pop() if len(dtypes) == 1 else None)


def _wide(arrays: list[Array], kinds: set[str]) -> Array:
    wide = np.complex128 if "c" in kinds else np.float64
    return np.concatenate([array.reshape(-1).astype(wide) for array in arrays])


def each(x: Any, change: Callable[[Array], Array]) -> Any:  # noqa: ANN401 - an input
    """Change the arrays of an input; the integers among them only if it holds nothing else.

    Integers beside floating numbers are counts or offsets, and no share of the result.

    Args:
        x: an array, or nested lists and tuples of arrays; all else in it stays.
        change: gives a new array for an array.

    """
    kinds = {leaf.dtype.kind for leaf in leaves(x) or ()}
    counts = set("biu") if kinds - set("biu") else set()

    def changed(part: Any) -> Any:  # noqa: ANN401 - a part of an input
        if isinstance(part, list | tuple):
            parts = [changed(one) for one in part]
            return part._make(parts) if hasattr(part, "_make") else type(part)(parts)
        return change(part) if isinstance(part, np.ndarray) and part.dtype.kind not in counts else part

    return changed(x)


FEW = 2
"""Where other elements are right, at least so many wrong ones must fit: one alone may be chance."""


class WrongResult:
    """A result that is not its golden.

    Args:
        oracle: of the case.
        call: which call gave the result.
        rank: which rank gave it.
        outputs: the results of all ranks in that call.

    """

    def __init__(self, oracle: Oracle, call: int, rank: int, outputs: Sequence[Any]) -> None:
        self.oracle = oracle
        self.case = oracle.case
        self.call = call
        self.rank = rank
        self.outputs = outputs
        self.whole = True
        """Whether it must equal a candidate everywhere, or only where it is wrong."""
        self.got = numbers_of(outputs[rank])
        self.want = oracle.golden(call, rank)
        self.peers = [peer for peer in range(self.case.ranks) if peer != rank]
        right = self._equals(self.want)
        self.off = None if right is None or right.all() else np.flatnonzero(~right)
        """The places of the wrong elements, in row-major order; None: no element is, or the shapes differ."""

    def given(self, change: tuple[Any, ...], changed: Callable[[list[Any]], list[Any] | None]) -> Numbers | None:
        """Return what the result would be if the inputs of its call were changed so.

        Args:
            change: names it; what was asked before is not computed again.
            changed: gives the changed inputs, one a rank; None if there are none such.

        """
        xs = self.case.inputs[self.call]
        return self.oracle.given(self.call, self.rank, change, lambda: changed(list(xs)))

    def subsets(self) -> Iterator[tuple[int, ...]]:
        """Yield sets of ranks, the small ones first; as many as are worth trying."""
        ranks = range(self.case.ranks)
        every = chain.from_iterable(combinations(ranks, size) for size in range(1, len(ranks) + 1))
        return islice(every, self.oracle.limit)

    def other_calls(self) -> list[int]:
        """Return the other calls, the nearest first."""
        others = [call for call in range(self.case.calls) if call != self.call]
        return sorted(others, key=lambda call: (abs(call - self.call), call))

    def first(self, candidates: Iterable[Candidate]) -> str | None:
        """Return, in words, the first candidate that the result equals."""
        for claim, numbers, what in candidates:
            how = self.equals(numbers)
            if how is not None:
                return f"{claim} ({how.format(what)})"
        return None

    def equal_everywhere(self, numbers: Numbers | None) -> bool:
        """Return whether the result is these numbers, within tolerance."""
        same = self._equals(numbers)
        return same is not None and bool(same.all())

    def equals(self, numbers: Numbers | None) -> str | None:
        """Return how the result equals these numbers, everywhere or where it is wrong; None if it does not."""
        off = self.off
        if off is None or numbers is None or self.got is None or not self._may_equal(numbers, off[0]):
            return None
        same = self._equals(numbers)
        if same is None or not same[off].all():
            return None
        if same.all():
            return f"it equals {{}}, {self._closeness(numbers, slice(None))}"
        if self.whole or len(off) < FEW:
            return None
        return f"the {len(off)} elements that differ equal {{}}, {self._closeness(numbers, off)}"

    def _may_equal(self, numbers: Numbers, place: int) -> bool:
        """Compare one element: it dismisses most candidates, at a small cost."""
        assert self.got is not None  # noqa: S101 - for the type checker: its caller has asked
        if numbers.shapes != self.got.shapes:
            return False
        a, b = self.got.flat[place].item(), numbers.flat[place].item()
        kernel = self.case.kernel
        near = abs(a - b) <= kernel.atol + kernel.rtol * abs(b)
        return bool(near or a == b or (a != a and b != b))  # noqa: PLR0124 - NaN is not equal to itself

    def _equals(self, numbers: Numbers | None) -> Array | None:
        """Return, element by element, whether it is this one within the kernel's tolerance; None: the shapes differ."""
        got, kernel = self.got, self.case.kernel
        if got is None or numbers is None or got.shapes != numbers.shapes:
            return None
        if got.exact and numbers.exact:
            return np.asarray(got.flat == numbers.flat)
        with np.errstate(all="ignore"):
            return np.isclose(got.flat, numbers.flat, kernel.rtol, kernel.atol, equal_nan=True)

    def _closeness(self, numbers: Numbers, within: Array | slice) -> str:
        """Return whether the result is that in its own dtype, without any tolerance."""
        got = self.got
        assert got is not None  # noqa: S101 - for the type checker: it equals something
        a, b = got.flat[within], numbers.flat[within]
        if got.dtype is None:
            return "within tolerance"
        with np.errstate(all="ignore"):
            b = b.astype(got.dtype).astype(a.dtype)
        return "exactly" if np.array_equal(a, b, equal_nan=not got.exact) else "within tolerance"
