"""What a wrong result is instead: named hypotheses, tried against the numbers.

A hypothesis says what the result would be if a certain thing had gone wrong, and whether it is that.
Nothing is inferred from how the kernel looks. Where no hypothesis gives the numbers, nothing is said.
"""

from __future__ import annotations

from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.narrow import sixteen_bits
from asyncsim.checking.oracle import Oracle, each, leaves
from asyncsim.machine.case import MISSING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Array = np.ndarray[Any, Any]
    Candidates = Iterator[tuple[str, str, Any]]
    """What went wrong, what the result equals then, and those numbers."""

PARTIAL = 2
"""So many wrong elements, at least, must fit where the others are right: one alone may be chance."""
SUBSETS = 64
SHIFTS = 128


class Wrong:
    """A result that is not its golden.

    Args:
        oracle: of the case.
        call: which call gave the result.
        rank: which rank gave it.
        outputs: the results of all ranks of that call; `MISSING` where there is none.

    """

    def __init__(self, oracle: Oracle, call: int, rank: int, outputs: Sequence[Any]) -> None:
        """Take the result apart, and see where it is wrong."""
        self.oracle = oracle
        self.case = oracle.case
        self.call = call
        self.rank = rank
        self.outputs = outputs
        self.got = outputs[rank]
        self.want = oracle.golden(call, rank)
        self.peers = [peer for peer in range(self.case.ranks) if peer != rank]
        self._shapes = _shapes(self.got)
        self._flat = _flat(self.got)
        right = self._equal(self.want)
        self.off: Array | None = None if right is None else np.flatnonzero(~right)
        """The places of the wrong elements, in row-major order; None if shapes differ."""

    def given(self, change: tuple[Any, ...], inputs: Callable[[list[Any]], list[Any] | None]) -> Any:  # noqa: ANN401
        """Return what the result would be if the inputs of this call were changed so."""
        xs = self.case.inputs[self.call]
        return self.oracle.given(self.call, self.rank, change, lambda: inputs(list(xs)))

    def first(self, candidates: Candidates) -> str | None:
        """Say the first that the result equals, in words."""
        for claim, what, numbers in candidates:
            evidence = self.evidence(numbers, what)
            if evidence is not None:
                return f"{claim} ({evidence})"
        return None

    def evidence(self, numbers: Any, what: str) -> str | None:  # noqa: ANN401 - a candidate, or None
        """Say how the result equals a candidate: everywhere, or where it is wrong; None if it does not."""
        if numbers is None or self.off is None or not len(self.off):
            return None
        fits = self._equal(numbers, within=self.off)
        if fits is None or not fits.all():
            return None
        everywhere = self._equal(numbers)
        if everywhere is not None and everywhere.all():
            return f"it equals {what}, {self._closeness(numbers, slice(None))}"
        if len(self.off) < PARTIAL:
            return None
        return f"the {len(self.off)} elements that differ equal {what}, {self._closeness(numbers, self.off)}"

    def _equal(self, numbers: Any, within: Array | slice = slice(None)) -> Array | None:  # noqa: ANN401
        """Say element by element whether the result is that, within the kernel's tolerance; None: other shapes."""
        if self._flat is None or _shapes(numbers) != self._shapes:
            return None
        a, b = self._flat[within], _flat(numbers)
        if b is None:
            return None
        b = b[within]
        if a.dtype.kind in "biu" and b.dtype.kind in "biu":
            return np.asarray(a == b)
        # What is compared first differs, as a rule: most candidates are dismissed by one number.
        if len(a) and not np.isclose(a[:1], b[:1], self.case.kernel.rtol, self.case.kernel.atol, equal_nan=True)[0]:
            return np.zeros(len(a), bool) if not isinstance(within, slice) else self._close(a, b)
        return self._close(a, b)

    def _close(self, a: Array, b: Array) -> Array:
        kernel = self.case.kernel
        with np.errstate(all="ignore"):
            return np.isclose(a, b, kernel.rtol, kernel.atol, equal_nan=True)

    def _closeness(self, numbers: Any, within: Array | slice) -> str:  # noqa: ANN401
        """Say whether the result is that to the bit, in its own dtype, or within the tolerance."""
        same = all(
            np.array_equal(_wide(a).reshape(-1), _wide(b.astype(a.dtype)).reshape(-1), equal_nan=a.dtype.kind != "b")
            for a, b in zip(leaves(self.got) or (), leaves(numbers) or (), strict=True)
        )
        return "exactly" if same else "within tolerance"
