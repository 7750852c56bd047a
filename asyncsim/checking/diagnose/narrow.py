"""Do 16 bits explain a wrong number? Two hypotheses, tried against the numbers themselves.

A golden that sums is additive: what it makes of one rank's input, with zeros for the others, is the
share of that rank, and the shares add up to it. If the same shares, added up in 16 bits in one of
the usual orders, give the wrong result bit for bit, then that is what most likely happened. Rounding
once, at the end, is asked for first: it explains less, and a claim should not be larger than it must.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from asyncsim.machine.case import copied
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.machine.case import Case

    Array = np.ndarray[Any, Any]

_NARROW = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def sixteen_bits(case: Case, call: int, rank: int, got: Any, number: int = 0) -> str | None:  # noqa: ANN401 - any output
    """Return how 16 bits explain a wrong result, as a clause; None if they do not.

    Args:
        case: its inputs and goldens are asked.
        call: which call gave the result.
        rank: which rank gave it.
        got: the result.
        number: which of several right results it is held against, from 0.

    """
    right = case.right_results[call]
    want = right[number][rank] if number < len(right) else None
    if not isinstance(got, np.ndarray | np.generic) or not isinstance(want, np.ndarray | np.generic):
        return None
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or not (_is_floating(got) and _is_floating(want)):
        return None
    with np.errstate(all="ignore"):
        for dtype in _NARROW:
            if not _same(got, got.astype(dtype)):
                continue  # it holds numbers that 16 bits cannot: no need to look further
            if _same(got, want.astype(dtype)):
                return f"it is the golden rounded to {dtype}"
            shares = _shares(case, call, rank, want, number)
            for order, ranks in _orders(rank, case.ranks):
                if shares is not None and _same(got, _sum([shares[peer] for peer in ranks], dtype)):
                    return f"adding up in {dtype}, {order}, gives exactly this: a 16-bit accumulator explains it"
    return None


def _shares(case: Case, call: int, rank: int, want: Array, number: int) -> list[Array] | None:
    """Return what each rank's input contributes to the golden; None if the golden is no sum of such shares."""
    xs = case.inputs[call]
    if not all(isinstance(x, np.ndarray) for x in xs):
        return None
    shares = []
    try:
        for peer in range(case.ranks):
            alone = [x if number == peer else np.zeros_like(x) for number, x in enumerate(copied(xs))]
            share = case.kernel.right_results(alone, call)[number][rank]
            shares.append(np.asarray(share).astype(np.float32))
    except (LookupError, MisuseError, TypeError, ValueError):
        return None  # a golden need not take zeros
    kernel = case.kernel
    if any(share.shape != want.shape for share in shares):
        return None
    additive = np.allclose(np.sum(shares, axis=0, dtype=np.float64), want.astype(np.float64), kernel.rtol, kernel.atol)
    return shares if additive else None


def _orders(rank: int, size: int) -> Iterator[tuple[str, list[int]]]:
    """Yield the orders in which kernels add up, in words and as ranks."""
    up = list(range(size))
    yield "from rank 0 up", up
    yield "the own share first", [rank, *(peer for peer in up if peer != rank)]
    yield "around the ring from the own share", up[rank:] + up[:rank]
    yield "from the last rank down", up[::-1]


def _sum(shares: list[Array], dtype: np.dtype[Any]) -> Array:
    """Add up, rounding to `dtype` after each step, as hardware and numpy do it."""
    acc = shares[0].astype(dtype)
    for share in shares[1:]:
        acc = (acc.astype(np.float32) + share).astype(dtype)
    return acc


def _is_floating(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype in _NARROW


def _same(a: Array, b: Array) -> bool:
    return np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)
