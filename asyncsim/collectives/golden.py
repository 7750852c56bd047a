"""What each collective must give, by numpy alone: the inputs of all ranks in, the output of each rank out.

The goldens of reductions reduce in the order in which the composites do, so that equal means equal bit
for bit. `op` is the operator, `accumulate` the dtype to accumulate in (None: the inputs' own).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.reduce import ReduceOp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.collectives.reduce import Tile


def broadcast(xs: Sequence[Tile], *, root: int = 0) -> list[Tile]:
    """Every rank: the root's input, of any shape.

    Args:
        xs: the input of each rank, by rank; the peers' are not looked at.
        root: the rank whose input is sent.

    """
    return [xs[root]] * len(xs)


def allgather(xs: Sequence[Tile]) -> list[Tile]:
    """Every rank: the inputs of all, stacked."""
    return [np.stack(xs)] * len(xs)


def all_to_all(xs: Sequence[Tile]) -> list[Tile]:
    """Rank r: everybody's row r, stacked."""
    return [np.stack([x[r] for x in xs]) for r in range(len(xs))]


def all_to_all_v(xs: Sequence[Tile], counts: Sequence[Sequence[int]]) -> list[Tile]:
    """Rank r: the first ``counts[s][r]`` elements of row r of every rank s, one after another.

    Args:
        xs: the input of each rank, of shape (P, capacity, ...).
        counts: ``counts[s][r]``, in elements of a row: how many rank s sends to rank r.

    """
    return [np.concatenate([x[r, : count[r]] for x, count in zip(xs, counts, strict=True)]) for r in range(len(xs))]


def reduce_scatter(
    xs: Sequence[Tile],
    *,
    op: ReduceOp = ReduceOp.Sum,
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
) -> list[Tile]:
    """Rank r: everybody's row r reduced, its own one first, then the peers' ascending.

    Args:
        xs: the input of each rank, of shape (P, ...), all of one dtype.
        op: the reduction.
        accumulate: the dtype to reduce in; None: that of the inputs. The result has that of the inputs either way.

    """
    return [op.reduce([x[r] for x in _own_first(xs, r)], accumulate=accumulate) for r in range(len(xs))]


def all_reduce(
    xs: Sequence[Tile],
    *,
    op: ReduceOp = ReduceOp.Sum,
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
) -> list[Tile]:
    """Every rank: all inputs reduced, its own one first: ranks may differ in the last bit.

    Args:
        xs: the input of each rank, all of one shape and dtype.
        op: the reduction.
        accumulate: the dtype to reduce in; None: that of the inputs. The result has that of the inputs either way.

    """
    return [op.reduce(_own_first(xs, r), accumulate=accumulate) for r in range(len(xs))]


def two_phase(
    xs: Sequence[Tile],
    *,
    op: ReduceOp = ReduceOp.Sum,
    accumulate: Any = None,  # noqa: ANN401 - whatever `Window` takes
) -> list[Tile]:
    """Every rank: all inputs, of P rows, reduced; row c as rank c reduces it.

    Args:
        xs: the input of each rank, of shape (P, ...), all of one dtype.
        op: the reduction.
        accumulate: the dtype to reduce in; None: that of the inputs. The result has that of the inputs either way.

    """
    return [np.stack(reduce_scatter(xs, op=op, accumulate=accumulate))] * len(xs)


def ring(xs: Sequence[Tile], *, op: ReduceOp = ReduceOp.Sum) -> list[Tile]:
    """Every rank: all inputs reduced; of their elements, cut into P segments, segment s from rank s on around.

    Args:
        xs: the input of each rank, all of one shape and dtype; segment i begins at element floor(i·N/P).
        op: the reduction; it is done in the dtype of the inputs.

    """
    flat = [x.ravel() for x in xs]
    cuts = [part * flat[0].size // len(xs) for part in range(len(xs) + 1)]
    parts = [op.reduce([x[cuts[s] : cuts[s + 1]] for x in (*flat[s:], *flat[:s])]) for s in range(len(xs))]
    return [np.concatenate(parts).reshape(xs[0].shape)] * len(xs)


def _own_first(xs: Sequence[Tile], rank: int) -> list[Tile]:
    return [xs[rank], *xs[:rank], *xs[rank + 1 :]]
