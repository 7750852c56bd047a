"""Layouts: a declaration with its shape in numbers, and the places in it that were asked for."""

from __future__ import annotations

import math
import operator
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.declare import WORLD, Signal, Window, dtype_of, shape_for
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.region import Box, Cell, Region, Spans, Word, spans_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_SHARED = 8
Entries = tuple[int | tuple[int, int, int], ...]


def _plain(key: Any) -> object:  # noqa: ANN401 - whatever stood between the brackets
    """Return what a key of plain integers and slices is looked up by; None for any other.

    True and 1.0 are equal to 1, and are refused: so classes are asked for, not values. Slices cannot be
    looked up before Python 3.12, and stand as their three parts.
    """
    if key.__class__ is int:
        return key
    if key.__class__ is not tuple:
        key = (key,)
    parts: list[object] = []
    for part in key:
        if part.__class__ is slice:
            bounds = (part.start, part.stop, part.step)
            if any(bound is not None and bound.__class__ is not int for bound in bounds):
                return None
            parts.append(bounds)
        elif part.__class__ is int:
            parts.append(part)
        else:
            return None
    return tuple(parts)


class WindowLayout:
    """A window with its shape in numbers, and the regions that were asked for so far."""

    def __init__(
        self,
        declared: Window,
        members: tuple[int, ...],
        *,
        first_slot: int,
        world: object,
        over: WindowLayout | None = None,
    ) -> None:
        """Settle the shape for these ranks, whose it is; `over` is the window whose memory it shares."""
        self.name = declared.name
        self.dtype = dtype_of(declared.dtype)
        self.shape = shape_for(declared.shape, len(members), f"window {declared.name!r}")
        self.members = members
        self.group = WORLD if declared.group is None else declared.group.name
        self.initialised = declared.initialised
        self.dirty = declared.dirty
        self.shared = False
        """Whether another window is over this one."""
        self._mixed = False
        self.over = over
        if over is not None:
            _check_over(self, over)
        self.world = world
        self.first_slot = first_slot
        # By owner: a thousand ranks ask for a million regions, and a pair as the key would weigh as much as one.
        self._regions: defaultdict[int, dict[object, Region]] = defaultdict(dict)
        self._boxes: defaultdict[int, dict[Entries, Region]] = defaultdict(dict)
        self._words: defaultdict[int, dict[object, Word]] = defaultdict(dict)
        self._claimed: dict[tuple[int, int], Region] = {}
        self.first_byte = 0
        """Where the memory of rank 0 begins, if all windows of all ranks lay one behind the other."""
        self._parts: dict[Entries, tuple[Box, tuple[int | slice, ...], tuple[int, ...], Spans]] = {}

    @property
    def mixed(self) -> bool:
        """Whether windows of different dtypes share this memory."""
        return self._mixed if self.over is None else self.over.mixed

    def share(self, over: WindowLayout) -> None:
        """Take note that another window is over this one."""
        self.shared = True
        self._mixed = self._mixed or over.dtype != self.dtype

    def known(self, owner: int) -> Mapping[object, Region]:
        """Return the regions of `owner` that were asked for so far, by plain keys; it grows."""
        return self._regions[owner]

    def region(self, owner: int, key: Any, holder: int) -> Region:  # noqa: ANN401 - whatever stood between the brackets
        """Return the region that ``window.at(owner)[key]`` means; `holder` is the rank that asks.

        Args:
            owner: the rank whose memory it is.
            key: integers and slices, one a dimension, or fewer from the left; in elements.
            holder: a rank; named in the message if the key is wrong.

        """
        plain = _plain(key)
        found = self._regions[owner].get(plain) if plain is not None else None
        if found is not None:
            return found
        region = self._region(owner, self._entries(key, owner, holder))
        if plain is not None:
            self._regions[owner][plain] = region
        return region

    def word(self, owner: int, key: Any, holder: int) -> Word:  # noqa: ANN401 - whatever stood between the brackets
        """Return the word that ``window.at(owner).word[key]`` means; `holder` is the rank that asks.

        Args:
            owner: the rank whose memory it is.
            key: an integer a dimension.
            holder: a rank; named in the message if the key is wrong.

        Raises:
            MisuseError: the window holds no integers, the key is not one element of it, or another window over the
                same memory has a word there of another dtype.

        """
        plain = _plain(key)
        found = self._words[owner].get(plain) if plain is not None else None
        if found is None:
            region = self.region(owner, key, holder)
            if region.shape != ():
                raise MisuseError(
                    f"{self._place(owner, holder)}: .word[...] is one element, an offset a dimension; "
                    f"this has shape {region.shape}"
                )
            found = self._make_word(region)
            if plain is not None:
                self._words[owner][plain] = found
        return found

    def _make_word(self, region: Region) -> Word:
        if region.dtype.kind not in "iu":
            raise MisuseError(
                f"{region}: a word is an integer, and window {self.name!r} holds {region.dtype}; "
                "declare an integer window, or one over this one (over=)"
            )
        memory = self.over or self
        low = region.spans[0][0]
        memory.claim(region)
        info = np.iinfo(region.dtype)
        size = math.prod(memory.shape) * memory.dtype.itemsize
        index = tuple(start for start, _, _ in region.box)
        world: Any = self.world
        slot = world.cells + memory.first_byte + region.owner * size + low
        return Word(region, index, slot=slot, low=int(info.min), high=int(info.max))

    def claim(self, region: Region) -> None:
        """Take note of a word in this memory.

        Args:
            region: of one element, of this window or of one over it.

        Raises:
            MisuseError: another word shares some of its bytes, and is of another dtype.

        """
        low, high = region.spans[0]
        for start in range(max(low - _MOST_SHARED + 1, 0), high):
            other = self._claimed.get((region.owner, start))
            if other is not None and other.spans[0][1] > low and (start, other.dtype) != (low, region.dtype):
                raise MisuseError(
                    f"the words {region} ({region.dtype}) and {other} ({other.dtype}) share bytes; "
                    "synchronise on one of them, and load or store the other"
                )
        self._claimed.setdefault((region.owner, low), region)

    def from_box(self, owner: int, box: Box, whole: Sequence[bool]) -> Region:
        """Return the region of `box`; `whole[d]` says that dimension d was a slice, not a number.

        Args:
            owner: the rank whose memory it is.
            box: (start, stop, step) a dimension, in elements, within the shape.
            whole: one a dimension.

        """
        entries = tuple(entry if keep else entry[0] for entry, keep in zip(box, whole, strict=True))
        return self._region(owner, entries)

    def _region(self, owner: int, entries: Entries) -> Region:
        known = self._boxes[owner]
        region = known.get(entries)
        if region is None:
            region = known[entries] = self._make(owner, entries)
        return region

    def _make(self, owner: int, entries: Entries) -> Region:
        parts = self._parts.get(entries)
        if parts is None:
            box = tuple((e, e + 1, 1) if isinstance(e, int) else e for e in entries)
            index = tuple(e if isinstance(e, int) else slice(*e) for e in entries)
            shape = tuple(len(range(*e)) for e in entries if not isinstance(e, int))
            spans = spans_of(box, self.shape, self.dtype.itemsize)
            parts = self._parts[entries] = (box, index, shape, spans)
        box, index, shape, spans = parts
        slot = self.first_slot + owner
        over = None if self.over is None else self.shape
        return Region(self.name, owner, box, index, shape, self.dtype, slot, spans, self.world, over=over)

    def _entries(self, key: Any, owner: int, holder: int) -> Entries:  # noqa: ANN401
        keys = key if isinstance(key, tuple) else (key,)
        at = next((i for i, k in enumerate(keys) if k is Ellipsis), None)
        if at is not None:
            keys = keys[:at] + (slice(None),) * (len(self.shape) - len(keys) + 1) + keys[at + 1 :]
        if len(keys) > len(self.shape):
            raise MisuseError(
                f"{self._place(owner, holder)}: {len(keys)} offsets for {len(self.shape)} dimensions; "
                f"the shape is {self.shape}"
            )
        keys = keys + (slice(None),) * (len(self.shape) - len(keys))
        return tuple(self._entry(k, dim, owner, holder) for dim, k in enumerate(keys))

    def _entry(self, key: Any, dim: int, owner: int, holder: int) -> int | tuple[int, int, int]:  # noqa: ANN401
        extent = self.shape[dim]
        if isinstance(key, slice):
            start, stop, step = (
                default if part is None else self._number(part, dim, owner, holder)
                for part, default in ((key.start, 0), (key.stop, extent), (key.step, 1))
            )
            if step < 1 or not 0 <= start <= stop <= extent:
                raise MisuseError(
                    f"{self._place(owner, holder)}: offsets {start}:{stop}:{step} leave dimension {dim} "
                    f"of shape {self.shape}; use 0 <= start <= stop <= {extent} and a step of at least 1"
                )
            return (start, stop, step)
        at = self._number(key, dim, owner, holder)
        if not 0 <= at < extent:
            right = f"use 0 to {extent - 1}" if extent else "the dimension is empty"
            raise MisuseError(
                f"{self._place(owner, holder)}: offset {at} is outside dimension {dim} of shape {self.shape}; {right}"
            )
        return at

    def _number(self, key: Any, dim: int, owner: int, holder: int) -> int:  # noqa: ANN401
        if isinstance(key, bool | np.bool_) or not hasattr(key, "__index__"):
            raise MisuseError(
                f"{self._place(owner, holder)}: offset {key!r} in dimension {dim} is no integer; "
                f"index a window with integers and slices, within shape {self.shape}"
            )
        return operator.index(key)

    def _place(self, owner: int, holder: int) -> str:
        return f"rank {holder}, indexing window {self.name!r} of rank {owner}"


def _check_over(window: WindowLayout, over: WindowLayout) -> None:
    """Refuse a view that its memory does not hold."""
    sizes = [math.prod(each.shape) * each.dtype.itemsize for each in (window, over)]
    if over.over is not None or over.dtype.itemsize > _MOST_SHARED:
        raise MisuseError(
            f"window {window.name!r} cannot be over {over.name!r}, which is over another one itself, or holds elements "
            f"of more than {_MOST_SHARED} bytes"
        )
    if sizes[0] > sizes[1]:
        raise MisuseError(
            f"window {window.name!r} is over {over.name!r} and has {sizes[0]} bytes; that one has {sizes[1]}"
        )
    over.share(window)


class SignalLayout:
    """A signal with its shape in numbers, and its cells."""

    def __init__(self, declared: Signal, members: tuple[int, ...], *, first_slot: int, world: object) -> None:
        """Settle the shape for these ranks, whose it is."""
        self.name = declared.name
        self.dtype = dtype_of(declared.dtype)
        self.shape = shape_for(declared.shape, len(members), f"signal {declared.name!r}")
        self.members = members
        self.group = WORLD if declared.group is None else declared.group.name
        self.start = declared.start
        self.wrap = declared.wrap
        self.self_cleaning = declared.self_cleaning
        self.world = world
        self.first_slot = first_slot
        self.cells_a_rank = math.prod(self.shape)
        self._cells: defaultdict[int, dict[object, Cell]] = defaultdict(dict)

    def known(self, owner: int) -> Mapping[object, Cell]:
        """Return the cells of `owner` that were asked for so far, by plain keys; it grows."""
        return self._cells[owner]

    def cell(self, owner: int, key: Any, holder: int) -> Cell:  # noqa: ANN401 - whatever stood between the brackets
        """Return the cell that ``signal.at(owner)[key]`` means; trailing dimensions of one may be left out.

        Args:
            owner: the rank whose cell it is.
            key: an integer, or one a dimension.
            holder: the rank that asks; named in the message if the key is wrong.

        """
        # Plain integers alone are looked up as they are: True and 1.0 are equal to 1, and are refused.
        plain = key.__class__ is int or (key.__class__ is tuple and all(part.__class__ is int for part in key))
        found = self._cells[owner].get(key) if plain else None
        if found is None:
            found = self._make(owner, key, holder)
            if plain:
                self._cells[owner][key] = found
        return found

    def _make(self, owner: int, key: Any, holder: int) -> Cell:  # noqa: ANN401
        place = f"rank {holder}, indexing signal {self.name!r} of rank {owner}"
        keys = key if isinstance(key, tuple) else (key,)
        rest = self.shape[len(keys) :]
        if len(keys) > len(self.shape) or any(extent != 1 for extent in rest):
            raise MisuseError(f"{place}: {len(keys)} offsets do not name one cell of shape {self.shape}")
        at = []
        for dim, part in enumerate(keys):
            if isinstance(part, bool | np.bool_) or not hasattr(part, "__index__"):
                raise MisuseError(f"{place}: offset {part!r} is no integer; a signal is indexed cell by cell")
            if not 0 <= operator.index(part) < self.shape[dim]:
                raise MisuseError(f"{place}: offset {part} is outside dimension {dim} of shape {self.shape}")
            at.append(operator.index(part))
        index = (*at, *(0 for _ in rest))
        flat = 0
        for i, extent in zip(index, self.shape, strict=True):
            flat = flat * extent + i
        info = np.iinfo(self.dtype)
        slot = self.first_slot + owner * self.cells_a_rank + flat
        return Cell(self.name, owner, index, slot=slot, low=info.min, high=info.max, wrap=self.wrap, world=self.world)
