"""Changes of inputs: what the ranks of a call would have had if a certain thing had gone wrong.

Each takes the inputs of all ranks last, and returns others; None where inputs cannot be changed so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.diagnose.oracle import each

if TYPE_CHECKING:
    from collections.abc import Sequence


def zeroed(ranks: Sequence[int], xs: list[Any]) -> list[Any]:
    """Make the inputs of some ranks zero.

    Args:
        ranks: whose inputs become zero.
        xs: the input of each rank; left as it is.

    """
    return [each(x, np.zeros_like) if rank in ranks else x for rank, x in enumerate(xs)]


def taken_from(others: Sequence[Any], ranks: Sequence[int], xs: list[Any]) -> list[Any]:
    """Give some ranks other inputs: `others` has one for each rank.

    Args:
        others: an input for each rank.
        ranks: whose inputs are replaced.
        xs: the input of each rank; left as it is.

    """
    return [others[rank] if rank in ranks else x for rank, x in enumerate(xs)]


def swapped(rank: int, other: int, xs: list[Any]) -> list[Any]:
    """Give one rank the input of another.

    Args:
        rank: whose input is replaced.
        other: whose it gets.
        xs: the input of each rank; left as it is.

    """
    return taken_from([xs[other]] * len(xs), [rank], xs)


def rolled(by: int, xs: list[Any]) -> list[Any]:
    """Rotate all inputs, in row-major order.

    Args:
        by: how many elements.
        xs: the input of each rank; left as it is.

    """
    return [each(x, lambda array: np.roll(array, by)) for x in xs]


def finished(totals: Sequence[Any], ranks: Sequence[int], xs: list[Any]) -> list[Any] | None:
    """Let the totals of some ranks be their inputs: one total for each chunk, where an input has several.

    Args:
        totals: the result of each rank.
        ranks: whose inputs are replaced.
        xs: the input of each rank; left as it is. None is returned unless a whole number of totals fits each.

    """
    changed = list(xs)
    for rank in ranks:
        x, total = xs[rank], totals[rank]
        if not isinstance(x, np.ndarray) or not isinstance(total, np.ndarray) or not total.size or x.size % total.size:
            return None
        changed[rank] = np.resize(total, x.shape).astype(x.dtype)
    return changed


def mixed(
    others: Sequence[Any], stale: Sequence[int], totals: Sequence[Any], done: Sequence[int], xs: list[Any]
) -> list[Any] | None:
    """Give some ranks other inputs, and let the totals of some more be theirs.

    Args:
        others: an input for each rank.
        stale: the ranks that get them.
        totals: the result of each rank.
        done: the ranks whose total is their input.
        xs: the input of each rank; left as it is. None is returned as by `finished`.

    """
    return finished(totals, done, taken_from(others, stale, xs))
