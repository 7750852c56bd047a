"""What a kernel's parameters hold while it runs: tensors of its own, windows, a communication context."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType, dtype_for
from asyncsim.frontends.pypto.refusals import refused

if TYPE_CHECKING:
    from asyncsim.frontends.pypto.overlaps import Overlap
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView

Tile = np.ndarray[Any, Any]
Key = tuple[int | slice, ...]

DATA, SIGNAL, READ, ROW = "data", "signal", "read", "row"
"""What a view can be used for: as a row, all its elements are one; what is read counts as data, unless its buffer holds
a signal."""


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """What ``pld.alloc_window_buffer`` returns: so many bytes at every rank.

    Args:
        nbytes: at each rank.
        line: the author's, as (file, line).

    """

    nbytes: int
    line: tuple[str, int]

    @property
    def place(self) -> str:
        """The author's line as text, without the folder."""
        return f"{PurePath(self.line[0]).name}:{self.line[1]}"


@dataclass(frozen=True, slots=True)
class View:
    """What ``pld.window`` returns: a buffer, seen as an array. Equal views are one."""

    buffer: Buffer
    shape: tuple[int, ...]
    dtype: DType

    @property
    def nbytes(self) -> int:
        """The bytes that it shows, from the first of the buffer on."""
        return int(np.prod(self.shape, dtype=int)) * self.dtype.get_byte()


class OtherUseError(Exception):
    """A view is used as nobody used it before: the memory must be declared again, with one use more."""

    def __init__(self, view: View, use: str) -> None:
        super().__init__(view, use)
        self.view = view
        self.use = use


class LocalTensor:
    """An array of one rank's own, which no peer reaches: what ``x[r]`` becomes in a kernel.

    Args:
        array: written in place.
        unknown: its elements are not known yet: the program is being compiled.
        overlap: other memory of the dispatch that is the same; it must not be written then.
        written: noted.
        read: noted: which elements were read as numbers, by `pl.read` or as counts; None: none so far.

    """

    __slots__ = ("array", "dtype", "key", "of", "overlap", "read", "unknown", "written")

    def __init__(self, array: Tile, *, unknown: bool = False, overlap: Overlap | None = None) -> None:
        self.of: LocalTensor | None = None
        self.key: Any = ...
        self.array = array
        self.dtype = dtype_for(array.dtype, "a tensor")
        self.unknown = unknown
        self.overlap = overlap
        self.written = False
        self.read: np.ndarray[Any, np.dtype[np.bool_]] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self.array.shape)

    def note_written(self) -> None:
        """Note that it is written, before it is.

        Raises:
            RefusedError: it shares memory with another tensor of the dispatch.

        """
        if self.overlap is not None:
            raise self.overlap.error()
        self.written = True
        if self.of is not None:
            self.of.note_written()

    def note_read(self, at: Any) -> None:  # noqa: ANN401 - an index of numpy's
        """Note which elements are read as numbers."""
        self._marks()[at] = True

    def _marks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return where it is marked which elements are read: of a part, in the marks of the whole."""
        if self.of is not None:
            marks: np.ndarray[Any, np.dtype[np.bool_]] = self.of._marks()[self.key]  # noqa: SLF001 - one of these, too
            return marks
        if self.read is None:
            self.read = np.zeros(self.array.shape, np.bool_)
        return self.read

    def part(self, key: Key) -> LocalTensor:
        """Return a part of it, which shares its memory.

        Args:
            key: an offset or a slice a dimension; where an offset stands, the part has no dimension.

        """
        made = LocalTensor(self.array[(*key, ...)], unknown=self.unknown)
        made.of, made.key = self, (*key, ...)
        return made


class UnknownValueError(Exception):
    """What happens next depends on a value that is not known while a program is compiled."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowTensor:
    """A window in the hands of a kernel: its own rank's, from which it reaches its peers'.

    Args:
        rank: whose kernel it is.
        view: what it shows.
        window: the view as data; None if nobody is known to use it so.
        signal: the view as cells; likewise.
        uses: what it was used for so far, by all who hold it.
        kept: bytes at the start of the buffer that are cells of a signal.
        noted: what of `uses` this one has noted.
        key: of a part, where it is in the view: an offset or a slice a dimension; None: it is the whole.
        flat: the view as one row, [1, N]; likewise.

    """

    rank: Rank
    view: View
    window: WindowView | None
    signal: SignalView | None
    uses: set[tuple[View, str]] = field(default_factory=set)
    kept: int = 0
    noted: set[str] = field(default_factory=set)
    key: Key | None = None
    flat: WindowView | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        if self.key is None:
            return self.view.shape
        return tuple(each.stop - each.start for each in self.key if isinstance(each, slice))

    def index(self, key: Any) -> Any:  # noqa: ANN401 - offsets or slices
        """Return where a place of it is in the whole view.

        Args:
            key: an offset or a slice a dimension.

        """
        if self.key is None:
            return key
        inner = iter(key)
        return tuple(_within(each, next(inner)) if isinstance(each, slice) else each for each in self.key)

    def part(self, key: Key) -> WindowTensor:
        """Return a part of it: the same memory.

        Args:
            key: as for `LocalTensor.part`.

        """
        return replace(self, key=self.index(key))

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.view.dtype

    def data(self) -> WindowView:
        """Return it as data.

        Raises:
            OtherUseError: it was not declared as such.

        """
        self._note(DATA)
        if self.window is None:
            raise OtherUseError(self.view, DATA)
        return self.window

    def row(self) -> WindowView:
        """Return it as data in one row, [1, N].

        Raises:
            OtherUseError: it was not declared as such.

        """
        if len(self.shape) == 2 and self.shape[0] == 1:  # noqa: PLR2004 - it is one row
            return self.data()
        self._note(DATA)
        self._note(ROW)
        if self.flat is None:
            raise OtherUseError(self.view, ROW)
        return self.flat

    def cells(self) -> SignalView:
        """Return it as the cells of a signal.

        Raises:
            OtherUseError: it was not declared as such.

        """
        self._note(SIGNAL)
        if self.signal is None:
            raise OtherUseError(self.view, SIGNAL)
        return self.signal

    def cells_read(self) -> SignalView | None:
        """Return the cells to read, where it shows a signal; None where it shows data.

        Raises:
            OtherUseError: it was declared as neither.

        """
        if self.dtype.name != "INT32":
            return None
        self._note(READ)
        if self.signal is None and self.window is None:
            raise OtherUseError(self.view, READ)
        return self.signal

    def _note(self, use: str) -> None:
        if use not in self.noted:  # this runs for every operation, and a view's hash takes long
            self.noted.add(use)
            self.uses.add((self.view, use))


def _within(outer: slice, inner: int | slice) -> int | slice:
    if isinstance(inner, slice):
        return slice(outer.start + inner.start, outer.start + inner.stop)
    return int(outer.start + inner)


@dataclass(frozen=True, slots=True)
class CommCtx:
    """What ``pld.get_comm_ctx`` returns: who takes part."""

    rank: Rank


def type_of(value: Any) -> str:  # noqa: ANN401 - whatever the author passes
    """Return what upstream's messages call the type of a value: ``pl.Tensor[[1, 8], pl.FP32]``."""
    if isinstance(value, bool | int | float | np.generic):
        return "ScalarType"
    if isinstance(value, WindowTensor | View):
        kind = "pld.DistributedTensor"
    elif isinstance(value, np.ndarray):
        return f"pl.Tile[{list(value.shape)}, {dtype_for(value.dtype, 'a tile')!r}]"
    else:
        kind = "pl.Tensor" if isinstance(value, LocalTensor) else getattr(value, "upstream_type", "")
    return f"{kind}[{list(value.shape)}, {value.dtype!r}]" if kind else type(value).__name__


def window_of(name: str, target: object, what: str = " target") -> WindowTensor:
    """Return a target that must be a window.

    Raises:
        TypeError: it is none.

    """
    if not isinstance(target, WindowTensor):
        raise refused(f"{name} expects a DistributedTensor{what} (window-bound); got {type_of(target)}", TypeError)
    return target
