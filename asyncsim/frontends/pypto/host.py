"""One call of a host function: the buffers that it allocates, and what it dispatches to which device."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType, dtype_for, dtype_given
from asyncsim.frontends.pypto.parameters import declared
from asyncsim.frontends.pypto.places import integer, integers
from asyncsim.frontends.pypto.refusals import UnknownNameError, at_line, refused
from asyncsim.frontends.pypto.values import Buffer, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType

    from asyncsim.frontends.pypto.annotations import Annotation
    from asyncsim.machine.rank import Rank

Array = np.ndarray[Any, Any]
_NO_VALUES = "; it slices and dispatches: compute in a kernel, or in the script before the call"
_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
_OTHER = ("neg", "pos", "abs", "invert", "divmod", "lt", "le", "gt", "ge")
_NUMBERS = ("int", "float", "index", "complex", "round", "array", "array_ufunc")
"""What Python and numpy ask of a value that is computed with."""


class OnDevice(Protocol):
    """A function that can be dispatched; see `asyncsim.frontends.pypto.functions`."""

    @property
    def raw(self) -> Any:  # noqa: ANN401 - the author's function
        """What the author wrote."""

    @property
    def name(self) -> str:
        """What the author calls it."""

    @property
    def parameters(self) -> Mapping[str, Annotation | None]:
        """The parameters, with what they take."""

    def called(self, function: Any, values: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever it returns
        """Call a function with arguments that were bound."""

    async def on_device(self, rank: Rank, values: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever it returns
        """Run it."""


class HostTensor:
    """A tensor in the hands of the host function: it has slices, and no values.

    Args:
        array: shares the memory of the script's tensor.
        original: what the script passed; None for a slice.

    """

    __slots__ = ("array", "dtype", "original")
    upstream_type = "pl.Tensor"

    def __init__(self, array: Array, original: object = None) -> None:
        self.array = array
        self.original = original
        self.dtype: DType = dtype_for(array.dtype, "a tensor")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return tuple(self.array.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> HostTensor:  # noqa: ANN401 - an integer, a slice, or some of them
        """Return a slice, which writes through."""
        try:
            found = self.array[(*key, ...) if isinstance(key, tuple) else (key, ...)]
        except (IndexError, TypeError) as error:
            raise refused(f"a host tensor of shape {list(self.shape)}: {error}") from None
        if not np.may_share_memory(found, self.array) and found.size:
            raise refused("a host tensor is sliced by integers and slices")
        return HostTensor(found)

    def __setitem__(self, key: Any, value: object) -> None:  # noqa: ANN401 - as above
        """Take back a slice that a kernel wrote: ``y[r] = kernel(x[r], y[r], device=r)``."""
        there = self[key].array
        if value is None:  # of a kernel whose parameters are not annotated: it wrote what it was passed
            return
        if not isinstance(value, HostTensor) or value.array.ctypes.data != there.ctypes.data:
            raise refused("a host function cannot store to a tensor; kernels write what they are passed")

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse what a tensor has, and a host function cannot use; dunders are asked for by libraries."""
        message = f"a host tensor has no {name!r}, only shape, dtype and slices{_NO_VALUES}"
        raise UnknownNameError(message) if not name.startswith("__") else AttributeError(message)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(_: HostTensor, *__: object, **___: object) -> NoReturn:
        raise refused(f"a host function cannot compute with tensors ({name}){_NO_VALUES}", TypeError)

    return refuse


for _name in (*_BINARY, *(f"r{_each}" for _each in _BINARY), *(f"i{_each}" for _each in _BINARY), *_OTHER, *_NUMBERS):
    setattr(HostTensor, f"__{_name}__", _refusing(f"__{_name}__"))


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """One function that was sent to one device.

    Args:
        function: which.
        values: its arguments by parameter: `HostTensor`, `View`, numbers.
        device: the rank.
        place: the author's line, as (file, line).

    """

    function: OnDevice
    values: dict[str, Any]
    device: int
    place: tuple[str, int]


class HostCall:
    """What a host function did so far.

    Args:
        ranks: how many devices there are.
        extents: the dynamic ones that its arguments settle, by name.

    """

    def __init__(self, ranks: int, extents: Mapping[str, int]) -> None:
        self.ranks = ranks
        self.extents = extents
        self.dispatches: list[Dispatch] = []
        self.buffers: list[Buffer] = []
        self.afterwards: list[tuple[OnDevice, dict[str, Any]]] = []
        """What sub-workers of the host do when all that is dispatched has run."""

    def holders(self, buffer: Buffer) -> list[int]:
        """Return the devices to which a buffer was passed so far; all, if it was passed to none."""
        found = sorted({each.device for each in self.dispatches if buffer in _buffers(each)})
        return found or list(range(self.ranks))

    def on_host(self, function: OnDevice, values: dict[str, Any]) -> Any:  # noqa: ANN401 - as for `dispatch`
        """Note what a sub-worker does with tensors; return what it writes.

        Args:
            function: the sub-worker.
            values: by parameter.

        """
        self.afterwards.append((function, values))
        return _written(function, values)

    def allocate(self, size: Any, dtype: object, frame: FrameType) -> Buffer:  # noqa: ANN401 - checked here
        """Allocate so many bytes, or an array of this shape and dtype, at every rank.

        Args:
            size: in bytes; or a shape, in elements of `dtype`.
            dtype: one of ``pl``'s; needed for a shape alone.
            frame: of the author's line.

        Raises:
            RefusedError: they are no such size, or it is less than a byte.

        """
        name = "pld.alloc_window_buffer"
        if isinstance(size, list | tuple):
            if dtype is None:
                raise refused(f"{name} of a shape takes dtype=, such as pl.FP32", TypeError)
            nbytes = _count(name, integers(name, "shape", size)) * dtype_given(dtype, name).get_byte()
        else:
            nbytes = integer(name, "size_in_bytes", size)
        if nbytes < 1:
            raise refused(f"{name} size_in_bytes must be positive, got {nbytes}")
        buffer = Buffer(nbytes, (frame.f_code.co_filename, frame.f_lineno))
        self.buffers.append(buffer)
        return buffer

    def window(self, buffer: object, shape: Any, dtype: object) -> View:  # noqa: ANN401 - checked here
        """Return a view of a buffer.

        Args:
            buffer: what `allocate` returned.
            shape: in elements.
            dtype: one of ``pl``'s.

        Raises:
            RefusedError: they are something else, or the view is larger than the buffer.

        """
        name = "pld.window"
        if not isinstance(buffer, Buffer):
            raise refused(
                f"{name} expects what pld.alloc_window_buffer returns, got {type(buffer).__name__}", TypeError
            )
        extents = integers(name, "shape", shape)
        _count(name, extents)
        view = View(buffer, tuple(extents), dtype_given(dtype, name))
        if view.nbytes > buffer.nbytes:
            raise refused(
                f"{name} of shape {extents} and {view.dtype} takes {view.nbytes} bytes; "
                f"the buffer has {buffer.nbytes}, allocated at {buffer.place}"
            )
        return view

    def dispatch(self, function: OnDevice, values: dict[str, Any], device: Any, frame: FrameType) -> Any:  # noqa: ANN401
        """Note a dispatch; return what it writes, so that the host function can go on with it.

        Args:
            function: the kernel.
            values: by parameter: tensors, windows and numbers.
            device: the rank, from 0.
            frame: of the author's line.

        Raises:
            RefusedError: there is no such device, or a value is something else.

        """
        number = integer(function.name, "device", device)
        if not 0 <= number < self.ranks:
            raise refused(f"{function.name}: device={number}; the devices are 0 to {self.ranks - 1}")
        for name, value in values.items():
            if not isinstance(value, HostTensor | View | int | float | np.generic):
                raise refused(f"{function.name}: parameter {name} got {type(value).__name__}; "
                              "a kernel takes tensors, windows and numbers", TypeError)  # fmt: skip
        if self.afterwards:
            raise refused(
                f"{function.name} is dispatched after a sub-worker, {self.afterwards[0][0].name}; here sub-workers run "
                "when all that is dispatched has run: call them last"
            )
        self.dispatches.append(Dispatch(function, values, number, (frame.f_code.co_filename, frame.f_lineno)))
        return _written(function, values)

    def check(self) -> None:
        """Refuse dispatches to one rank that are meant for all, and buffers that are allocated for one rank each.

        Raises:
            RefusedError: which, and what would be right; with the line.

        """
        _check_devices(self.dispatches, self.ranks)
        lines = Counter(buffer.line for buffer in self.buffers)
        for buffer in self.buffers:
            holders = {each.device for each in self.dispatches if buffer in _buffers(each)}
            if lines[buffer.line] > 1 and holders and len(holders) < self.ranks:
                raise _at(
                    buffer.line,
                    f"the window buffer allocated at {buffer.place} is passed to {_listed(holders)} only; "
                    "allocate it once, before the loop over the ranks, and pass it to every rank",
                )


def _written(function: OnDevice, values: dict[str, Any]) -> Any:  # noqa: ANN401 - a tensor, several, or none
    """Return which of the arguments a function writes."""
    hints = {name: function.parameters[declared(name)] for name in values}
    marked = [values[name] for name, hint in hints.items() if hint is not None and hint.out]
    written = [value for value in marked if isinstance(value, HostTensor)]
    return written[0] if len(written) == 1 else tuple(written) or None


def _check_devices(dispatches: list[Dispatch], ranks: int) -> None:
    """Refuse it if nothing is dispatched, or all to one rank, one by one as it should be to each."""
    counts: Counter[int] = Counter(each.device for each in dispatches)
    if not dispatches:
        raise refused("the host function dispatches nothing; call a kernel with device= for every rank")
    missing = [rank for rank in range(ranks) if not counts[rank]]
    last = dispatches[-1]
    if missing and len(counts) == 1 and counts[last.device] == ranks:
        name = last.function.name
        raise _at(
            last.place,
            f"{name} is dispatched to device={last.device} {ranks} times, and nothing to {_listed(missing)}; "
            f"write: for r in pl.range(pld.world_size()): {name}(..., device=r)",
        )


def _at(place: tuple[str, int], message: str) -> Exception:
    return at_line(refused(message), *place)


def _buffers(dispatch: Dispatch) -> set[Buffer]:
    return {value.buffer for value in dispatch.values.values() if isinstance(value, View)}


def _listed(ranks: Any) -> str:  # noqa: ANN401 - some ranks
    found = sorted(ranks)
    return f"rank {found[0]}" if len(found) == 1 else f"the ranks {', '.join(map(str, found))}"


def _count(name: str, extents: list[int]) -> int:
    if any(extent < 1 for extent in extents):
        raise refused(f"{name} extents must be positive, got {extents}")
    return int(np.prod(extents, dtype=int))
