"""From elements to regions: as few operations as their places allow, and no element that was not meant."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Array = np.ndarray[Any, Any]
Key = tuple[int | slice, ...]


def boxes(places: Array, shape: Sequence[int]) -> Iterator[tuple[Key, slice, tuple[int, ...]]]:
    """Yield what covers some elements of a window exactly: one box if they are one, else one for each contiguous run.

    Args:
        places: of the elements, as numbers in the flat window; ascending, each once.
        shape: of the window.

    Yields:
        the key of a region, which of `places` it is, and its shape.

    """
    if len(places) == 1:
        yield tuple(int(at) for at in np.unravel_index(places[0], shape)), slice(0, 1), ()
        return
    along = [np.unique(at) for at in np.unravel_index(places, shape)]
    if math.prod(map(len, along)) == len(places) and all(map(_is_even, along)):
        yield tuple(map(_slice, along)), slice(0, len(places)), tuple(map(len, along))
        return
    width = shape[-1]
    breaks = (np.diff(places) != 1) | (places[1:] % width == 0)
    edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(places)]
    for first, last in pairwise(edges):
        *lead, start = (int(at) for at in np.unravel_index(places[first], shape))
        yield (*lead, slice(start, start + last - first)), slice(first, last), (last - first,)


def _is_even(at: Array) -> bool:
    steps = np.diff(at)
    return len(steps) == 0 or bool((steps == steps[0]).all())


def _slice(at: Array) -> slice:
    step = int(at[1] - at[0]) if len(at) > 1 else 1
    return slice(int(at[0]), int(at[-1]) + 1, step)
