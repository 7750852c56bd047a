"""A wrong result beside what it might be instead: where it is wrong, and whether it equals other numbers."""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.diagnose.oracle import Numbers, Oracle, numbers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Array = np.ndarray[Any, Any]
    Candidate = tuple[str, Numbers | None, str]
    """What went wrong; the numbers that this gives; what these are."""

FEW = 2
"""Where other elements are right, at least so many wrong ones must fit: one alone may be chance."""


class Wrong:
    """A result that is not its golden.

    Args:
        oracle: of the case.
        call: which call gave the result.
        rank: which rank gave it.
        outputs: the results of all ranks in that call.

    """

    def __init__(self, oracle: Oracle, call: int, rank: int, outputs: Sequence[Any]) -> None:
        """See where the result is wrong."""
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
        """Say whether the result is these numbers, within tolerance."""
        same = self._equals(numbers)
        return same is not None and bool(same.all())

    def equals(self, numbers: Numbers | None) -> str | None:
        """Say how the result equals these numbers, everywhere or where it is wrong; None if it does not."""
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
        """Look at one element: it dismisses most candidates, at a small cost."""
        assert self.got is not None  # noqa: S101 - for the type checker: its caller has asked
        if numbers.shapes != self.got.shapes:
            return False
        a, b = self.got.flat[place].item(), numbers.flat[place].item()
        kernel = self.case.kernel
        near = abs(a - b) <= kernel.atol + kernel.rtol * abs(b)
        return bool(near or a == b or (a != a and b != b))  # noqa: PLR0124 - NaN is not equal to itself

    def _equals(self, numbers: Numbers | None) -> Array | None:
        """Say of each element whether it is this one, within the kernel's tolerance; None: the shapes differ."""
        got, kernel = self.got, self.case.kernel
        if got is None or numbers is None or got.shapes != numbers.shapes:
            return None
        if got.exact and numbers.exact:
            return np.asarray(got.flat == numbers.flat)
        with np.errstate(all="ignore"):
            return np.isclose(got.flat, numbers.flat, kernel.rtol, kernel.atol, equal_nan=True)

    def _closeness(self, numbers: Numbers, within: Array | slice) -> str:
        """Say whether the result is that in its own dtype, without any tolerance."""
        got = self.got
        assert got is not None  # noqa: S101 - for the type checker: it equals something
        a, b = got.flat[within], numbers.flat[within]
        if got.dtype is None:
            return "within tolerance"
        with np.errstate(all="ignore"):
            b = b.astype(got.dtype).astype(a.dtype)
        return "exactly" if np.array_equal(a, b, equal_nan=not got.exact) else "within tolerance"
