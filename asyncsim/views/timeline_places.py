"""Where the steps of a run touch memory, for the page: tables of windows, views of them, places and accesses.

A window that is over another one has no memory of its own: a place is the memory of one rank's window,
whatever it is seen as. It is counted in units, so that a piece written through one view can be overwritten
through another: the elements of the window, or, where narrower ones share its memory, the narrowest of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.trace.layout import WindowLayout
from asyncsim.trace.values import dtype_name

if TYPE_CHECKING:
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import World

_MOST_PIECES = 64
"""A region of more pieces than this is shown as the whole range that it lies in."""


class Places:
    """The places of a run, each numbered when it is first touched.

    Args:
        world: of the run.

    """

    def __init__(self, world: World) -> None:
        """Find the views of each window, and the unit that it is counted in."""
        self._world = world
        layouts = [each for each in world.layouts.values() if isinstance(each, WindowLayout)]
        self._views = [each for each in layouts if each.over is not None]
        self._view_numbers = {each.name: number for number, each in enumerate(self._views)}
        self._windows = {each.first_slot: number for number, each in enumerate(world.windows)}
        self._units = {each.first_slot: each.dtype.itemsize for each in world.windows}
        for view in self._views:
            self._units[view.first_slot] = min(self._units[view.first_slot], view.dtype.itemsize)
        self._places: dict[int, int] = {}
        self._rows: list[list[int]] = []
        self._accesses: dict[object, int] = {}
        self._access_rows: list[list[Any]] = []

    def tables(self) -> dict[str, Any]:
        """Return the tables.

        ``windows``: name, shape, dtype, start, units an element. ``views``: name, shape, dtype, number of the
        window, units an element. ``places``: number of the window, owner. ``accesses``: number of the place,
        runs of units, and, if it was through a view, the number of that.
        """
        return {
            "windows": [
                [each.name, list(each.shape), dtype_name(each.dtype), _start(each), self._size(each)]
                for each in self._world.windows
            ],
            "views": [
                [each.name, list(each.shape), dtype_name(each.dtype), self._windows[each.first_slot], self._size(each)]
                for each in self._views
            ],
            "places": self._rows,
            "accesses": self._access_rows,
        }

    def number(self, access: Access | None) -> int:
        """Return the number of an access; -1 for none."""
        if access is None:
            return -1
        region = access.region
        key = (region.window, region.slot, region.spans)
        found = self._accesses.get(key)
        if found is None:
            found = self._accesses[key] = len(self._access_rows)
            first = region.slot - region.owner
            unit = self._units[first]
            runs = [[low // unit, high // unit] for low, high in region.spans]
            if len(runs) > _MOST_PIECES:
                runs = [[runs[0][0], runs[-1][1]]]
            row: list[Any] = [self._place(region.slot, self._windows[first], region.owner), runs]
            if region.window in self._view_numbers:
                row.append(self._view_numbers[region.window])
            self._access_rows.append(row)
        return found

    def _place(self, slot: int, window: int, owner: int) -> int:
        found = self._places.get(slot)
        if found is None:
            found = self._places[slot] = len(self._rows)
            self._rows.append([window, owner])
        return found

    def _size(self, layout: WindowLayout) -> int:
        return layout.dtype.itemsize // self._units[layout.first_slot]


def _start(layout: WindowLayout) -> str:
    """Say what a window held when the run began."""
    held = "0" if layout.dirty is None else str(layout.dirty)
    return held if layout.initialised else f"{held}, unwritten"
