"""Declarations: the memory a kernel works on, before the number of ranks is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.guest import call

Extent = int | Literal["P"] | Callable[[int], int]
"""One dimension of a declared shape: a number, ``"P"`` for the number of ranks, or a function of P."""
WORLD = "world"
"""What the group of all ranks is called."""

_MOST_SHARED = 8
_SIGNAL_DTYPES = ("int8", "int16", "int32", "int64")


def dtype_of(dtype: Any, owner: str = "dtype") -> np.dtype[Any]:  # noqa: ANN401 - numpy's own DTypeLike is as wide
    """Return the numpy dtype meant by `dtype`: numpy's numbers and booleans, or ``"bfloat16"``.

    Args:
        dtype: whatever `numpy.dtype` takes, or ``"bf16"``; a byte order that is not native is dropped.
        owner: what it is the dtype of, for the message.

    Raises:
        MisuseError: it is no dtype, or one whose elements are no numbers.

    """
    if isinstance(dtype, str) and dtype in ("bfloat16", "bf16"):
        dtype = ml_dtypes.bfloat16
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise MisuseError(f"{owner}: {dtype!r} is no dtype; give a numpy one, such as numpy.float32") from error
    if found.kind not in "biufc" and found != np.dtype(ml_dtypes.bfloat16):
        right = "windows hold booleans, integers, floats or complex"
        raise MisuseError(f"{owner}: dtype {found} holds no numbers; {right}")
    native: np.dtype[Any] = found.newbyteorder("=")
    return native


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise MisuseError(f"a {kind} needs a name that is an identifier, such as 'data'; got {name!r}")


def _check_group(owner: str, group: object) -> None:
    if group is not None and not isinstance(group, Group):
        raise MisuseError(f"{owner}: group={group!r}; give a Group, or None for the world")


def _extent(extent: Extent, ranks: int | None, owner: str) -> int:
    size: object = extent
    if extent == "P":
        size = 1 if ranks is None else ranks
    elif callable(extent):
        size = 1 if ranks is None else call(f"{owner}: the function that gives its extent", extent, ranks)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise MisuseError(f"{owner}: {extent!r} is no extent; give an integer >= 0, 'P', or a function of P")
    return int(size)


def shape_for(shape: Sequence[Extent], ranks: int | None, owner: str) -> tuple[int, ...]:
    """Return the shape in numbers for this many ranks; None only checks what does not depend on them.

    Args:
        shape: extents: integers >= 0, ``"P"``, or functions of P.
        ranks: P; None: each that depends on it counts as 1.
        owner: what it is the shape of, for the message.

    Raises:
        MisuseError: it is no sequence, or an extent is none.

    """
    if isinstance(shape, str | int) or not isinstance(shape, Sequence):
        raise MisuseError(f"{owner}: a shape is a tuple, such as ('P', 64); got {shape!r}")
    return tuple(_extent(extent, ranks, owner) for extent in shape)


@dataclass(frozen=True, slots=True)
class Group:
    """Some of the ranks, with numbers of their own: the i-th that is named is member i.

    Windows and signals that are declared with ``group=`` belong to its members alone: an extent ``"P"`` is
    their number, and ``.at(peer)`` takes a number of the group. Memory without a group is the world's.

    Args:
        name: what reports call it; an identifier, and not "world".
        ranks: the members by their numbers in the world; or a function of P that returns them.

    """

    name: str
    ranks: Sequence[int] | Callable[[int], Sequence[int]]

    def __post_init__(self) -> None:
        _check_name("group", self.name)
        if self.name == WORLD:
            raise MisuseError(f"a group is called {WORLD!r}, as all ranks together are; give it another name")
        if not callable(self.ranks):
            object.__setattr__(self, "ranks", tuple(self._checked(self.ranks)))

    def members(self, ranks: int) -> tuple[int, ...]:
        """Return the members among so many ranks, by their numbers in the world.

        Raises:
            MisuseError: one of them is not there.

        """
        named = self.ranks
        if callable(named):
            named = call(f"group {self.name!r}: the function that gives its ranks", named, ranks)
        found = tuple(self._checked(named))
        if max(found) >= ranks:
            raise MisuseError(f"group {self.name!r} has rank {max(found)}; there are the ranks 0 to {ranks - 1}")
        return found

    def _checked(self, ranks: object) -> list[int]:
        listed = list(ranks) if isinstance(ranks, Sequence) and not isinstance(ranks, str) else []
        numbers = all(isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 for rank in listed)
        if not listed or not numbers or len(set(listed)) < len(listed):
            raise MisuseError(f"group {self.name!r}: {ranks!r} are no members; name at least one rank, each once")
        return listed


@dataclass(frozen=True, slots=True)
class Window:
    """Symmetric memory: every rank owns an array of this shape and dtype, which its peers can reach.

    It starts as zeros that nobody wrote: to load such an element is a finding.

    Args:
        name: what reports call it; an identifier.
        shape: extents; see `Extent`.
        dtype: any numpy number or boolean, or bfloat16.
        initialised: what the window holds at the start may be read.
        dirty: start content instead of zeros: one number for every element, or "random"
            (drawn from the seed of the run). Still unwritten, unless `initialised`.
        group: whose it is; None: the world's.
        over: the name of a window that is declared before: this one is another view of its memory, as an
            array of this shape and dtype, from its first byte on. It starts as that one does, and is no
            longer than it. Where two views share a byte, an access to one is an access to the other.

    """

    name: str
    shape: Sequence[Extent]
    dtype: Any = np.float32
    _: KW_ONLY
    initialised: bool = False
    dirty: float | Literal["random"] | None = None
    group: Group | None = None
    over: str = ""

    def __post_init__(self) -> None:
        _check_name("window", self.name)
        _check_group(f"window {self.name!r}", self.group)
        dtype_of(self.dtype, f"window {self.name!r}")
        shape_for(self.shape, None, f"window {self.name!r}")
        if self.over:
            self._check_over()
        if isinstance(self.dirty, str) and self.dirty != "random":
            raise MisuseError(f"window {self.name!r}: dirty={self.dirty!r}; give a number or 'random'")
        if self.dirty is not None and self.dirty != "random":
            try:
                np.array(self.dirty, dtype_of(self.dtype))
            except (TypeError, ValueError, OverflowError) as error:
                raise MisuseError(f"window {self.name!r}: dirty={self.dirty!r} is no {self.dtype}") from error

    def _check_over(self) -> None:
        """Refuse what a view of another window's memory cannot say for itself."""
        _check_name("window", self.over)
        if self.initialised or self.dirty is not None or self.group is not None:
            raise MisuseError(
                f"window {self.name!r} is over {self.over!r}, whose memory it shares: "
                "initialised, dirty and group are said there"
            )
        size = dtype_of(self.dtype).itemsize
        if size > _MOST_SHARED:
            raise MisuseError(
                f"window {self.name!r} is over {self.over!r}: views of one memory hold elements of at most "
                f"{_MOST_SHARED} bytes, not {size}"
            )


@dataclass(frozen=True, slots=True)
class Signal:
    """Symmetric counters: every rank owns an array of cells that peers notify and it waits on.

    Args:
        name: what reports call it; an identifier.
        shape: extents; see `Extent`.
        dtype: int8, int16, int32 or int64.
        start: the value of every cell when the run begins.
        wrap: a cell that leaves its integer range goes on at the other end; without it the
            run ends there, with the finding *overflow*.
        self_cleaning: the kernel promises to leave every cell as it found it; a credit left
            over at the end of the run is then a finding.
        group: whose it is; None: the world's.

    """

    name: str
    shape: Sequence[Extent]
    dtype: Any = np.int32
    _: KW_ONLY
    start: int = 0
    wrap: bool = False
    self_cleaning: bool = False
    group: Group | None = None

    def __post_init__(self) -> None:
        _check_name("signal", self.name)
        _check_group(f"signal {self.name!r}", self.group)
        dtype = dtype_of(self.dtype, f"signal {self.name!r}")
        if dtype.name not in _SIGNAL_DTYPES:
            raise MisuseError(f"signal {self.name!r} has dtype {dtype}; a signal is one of {', '.join(_SIGNAL_DTYPES)}")
        shape_for(self.shape, None, f"signal {self.name!r}")
        info = np.iinfo(dtype)
        if isinstance(self.start, bool) or not isinstance(self.start, int) or not info.min <= self.start <= info.max:
            raise MisuseError(f"signal {self.name!r}: start={self.start!r} is no {dtype} ({info.min} to {info.max})")


Declaration = Window | Signal
"""What a kernel may declare in ``memory=[...]``."""
