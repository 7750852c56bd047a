"""The tiles in which an all-reduce works: as much of a row as fits the fast memory of a core."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.trace.world import WindowView

TILE_BYTES = 16 * 1024

Place = tuple[int | slice, slice]
"""A tile's row, and its columns."""

_EMPTY: Place = (slice(0, 0), slice(0, 0))


def tiles(target: WindowView, start: int, stop: int) -> list[Place]:
    """Cut elements `start` to `stop`, in row-major order, into tiles of at most 16 KiB, none across two rows.

    Args:
        target: two-dimensional.
        start: the first element.
        stop: the one behind the last; none are cut if it is not above `start`.

    """
    columns = target.shape[1]
    most = TILE_BYTES // target.dtype.itemsize
    places: list[Place] = []
    while start < stop:
        row, first = divmod(start, columns)
        last = min(columns, first + stop - start, first + most)
        places.append((row, slice(first, last)))
        start += last - first
    return places


def segments(target: WindowView, parts: int) -> list[list[Place]]:
    """Cut a window into `parts` segments of tiles, the i-th from element floor(i·N/parts) on.

    Every segment has the same number of tiles, at least one, some of them empty if need be: ranks work on
    different segments at a time, and must meet as often as each other.

    Args:
        target: two-dimensional.
        parts: how many, at least 1.

    """
    rows, columns = target.shape
    total = rows * columns
    cut = [tiles(target, part * total // parts, (part + 1) * total // parts) for part in range(parts)]
    most = max(1, *map(len, cut))
    return [places + [_EMPTY] * (most - len(places)) for places in cut]
