"""What most exhibits work on: random numbers of any dtype, new ones in every call, so that a stale read shows."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import Window

if TYPE_CHECKING:
    from asyncsim import Kernel

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


def make(made: Kernel, *, size: int = SIZE, dtype: Any = np.float32, **params: Any) -> Kernel:  # noqa: ANN401
    """Return an exhibit for another size or dtype, and with other parameters.

    Args:
        made: a kernel whose inputs take `size` and `dtype`, as `rows` and `blocks` do.
        size: the last extent of every window.
        dtype: of every window.
        params: of the program: ``op=ReduceOp.Max``; its golden gets those that it takes.

    """
    inputs: Any = made.inputs
    golden: Any = made.golden
    taken = inspect.signature(golden).parameters
    return replace(
        made,
        memory=tuple(
            replace(item, shape=(*item.shape[:-1], size), dtype=dtype) if isinstance(item, Window) else item
            for item in made.memory
        ),
        inputs=partial(inputs, size=size, dtype=dtype),
        golden=partial(golden, **{name: value for name, value in params.items() if name in taken}),
        params={**made.params, **params},
        given_name=f"{made.name}, of {size} {np.dtype(dtype).name}",
    )
