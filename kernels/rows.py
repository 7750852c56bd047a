"""What most exhibits work on: random numbers of any dtype, new ones in every call, so that a stale read shows."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SIZE = 64
"""Elements in a row."""


def draw(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401 - whatever numpy takes
    """Return normal numbers for a floating dtype, and integers from -100 to 100 for an integer one."""
    kind = np.dtype(dtype).kind
    numbers = rng.integers(-100, 101, shape) if kind in "iu" else rng.standard_normal(shape)
    return numbers.astype(dtype)


def rows(
    P: int, call: int, rng: np.random.Generator, *, size: int = SIZE, dtype: Any = np.float32  # noqa: ANN401
) -> list[Array]:  # fmt: skip
    """Give each rank a row: shape (size,)."""
    return [draw(rng, (size,), dtype) for _ in range(P)]


def blocks(
    P: int, call: int, rng: np.random.Generator, *, size: int = SIZE, dtype: Any = np.float32  # noqa: ANN401
) -> list[Array]:  # fmt: skip
    """Give each rank one row a rank: shape (P, size)."""
    return [draw(rng, (P, size), dtype) for _ in range(P)]


def each_with_each(P: int) -> int:
    """Count the pairs of a fast rank and a slow peer."""
    return P * (P - 1)
