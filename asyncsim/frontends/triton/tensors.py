"""Tensors on symmetric memory, as a host uses them: any function of torch, made of loads and stores of the machine.

What a function reads is loaded first, into a copy; then torch computes with the copy; what it wrote is stored. A view
is a view: the same memory, other elements.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import ml_dtypes
import numpy as np

from asyncsim.frontends.triton.boxes import boxes
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.space import refused
from asyncsim.guest.host import blocking
from asyncsim.trace.cells import SET

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncsim.frontends.triton.space import Space
    from asyncsim.machine.rank import Rank

Array = np.ndarray[Any, Any]
Tensor = Any
_BF16 = np.dtype(ml_dtypes.bfloat16)
_ONLY_WRITE = frozenset(
    ("aten::fill_", "aten::zero_", "aten::copy_", "aten::uniform_", "aten::normal_", "aten::random_")
)
"""Functions that write their first argument, all of it, and read nothing of it."""
FEW = 256
"""So many elements of a buffer of words a host sets one by one; more are data to it."""
_ONLY_SHAPE = re.compile(r"aten::(empty|zeros|ones|full|rand|randn|randint)_like|aten::new_(empty|zeros|ones|full).*")
"""Functions that ask a tensor for its shape and dtype alone."""


class Holder(Protocol):
    """Who has a tensor: its rank, and what addresses mean there."""

    @property
    def rank(self) -> Rank:
        """The rank."""

    @property
    def space(self) -> Space:
        """The addresses."""


def to_numpy(tensor: Tensor) -> Array:
    """Return a tensor of torch as an array, narrow floats as they are kept in windows."""
    plain = tensor.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        bits: Array = plain.view(torch.int16).numpy()
        return bits.view(_BF16)
    if str(plain.dtype).startswith("torch.float8"):
        plain = plain.view(torch.uint8)
    array: Array = plain.numpy()
    return array


def from_numpy(array: Array, dtype: Any) -> Tensor:
    """Return an array of a window as a tensor of torch of this dtype.

    Args:
        array: any shape.
        dtype: torch's, of the same size.

    """
    array = np.ascontiguousarray(array)
    bits = array.view(np.int16) if array.dtype == _BF16 else array
    made = torch.from_numpy(bits.copy())
    return made if made.dtype == dtype else made.view(dtype)


def torch_dtype(dtype: np.dtype[Any]) -> Any:
    """Return torch's dtype for one of numpy's."""
    return getattr(torch, "bool" if dtype.kind == "b" else dtype.name)


@cache
def device_tensor() -> type:  # noqa: C901 - a class, made late
    """Return the class of tensors on symmetric memory; torch is imported when it is first asked for."""

    class SymmetricTensor(torch.Tensor):  # type: ignore[misc]
        """A tensor on symmetric memory; `copied` has its shape and strides, and what was last seen there."""

        @staticmethod
        def __new__(cls: Any, host: Holder, at: int, shape: Sequence[int], dtype: Any, copied: Tensor = None) -> Tensor:
            kind = torch_dtype(dtype) if isinstance(dtype, np.dtype) else dtype
            if copied is None:
                copied = torch.zeros(tuple(shape), dtype=kind)
            made = torch.Tensor._make_wrapper_subclass(  # noqa: SLF001 - how torch makes them
                cls, copied.shape, copied.stride(), dtype=kind, device="cpu"
            )
            made.host, made.base, made.copied = host, at, copied
            return made

        def __init__(self, *_: Any) -> None:
            """Have been made."""

        @property
        def asyncsim_address(self) -> int:
            """Where its first element is."""
            at: int = self.base + self.copied.storage_offset() * self.copied.element_size()
            return at

        def data_ptr(self) -> int:
            """Return the same, under torch's name."""
            return self.asyncsim_address

        def tolist(self) -> Any:
            """Return what it holds."""
            return self.clone().tolist()

        def numpy(self, **_: Any) -> Array:
            """Return what it holds, as an array."""
            return to_numpy(self.clone())

        def cpu(self) -> Tensor:
            """Return what it holds, on the host."""
            return self.clone()

        def __repr__(self, **_: Any) -> str:
            """Write what it is, not what it holds: that would be an operation."""
            return f"SymmetricTensor({tuple(self.shape)}, {self.dtype})"

        def is_contiguous(self, **_: Any) -> bool:
            """Say whether its elements follow each other."""
            contiguous: bool = self.copied.is_contiguous()
            return contiguous

        __torch_function__ = torch._C._disabled_torch_function_impl  # noqa: SLF001 - as torch's own wrappers

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return _dispatch(cls, func, args, kwargs or {})

    return SymmetricTensor


def _dispatch(cls: Any, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Do a function of torch with tensors on symmetric memory among its arguments."""
    schema = func._schema  # noqa: SLF001 - what it reads and writes
    tree = torch.utils._pytree  # noqa: SLF001 - arguments may be nested
    given = {each.name: value for each, value in zip(schema.arguments, args, strict=False)} | dict(kwargs)
    written = [
        given[each.name] for each in schema.arguments
        if each.alias_info is not None and each.alias_info.is_write and each.name in given
    ]  # fmt: skip
    written = [each for each in tree.tree_leaves(written) if isinstance(each, cls)]
    viewing = not written and any(each.alias_info is not None for each in schema.returns)
    if not viewing and not _ONLY_SHAPE.fullmatch(schema.name):
        only = written[0] if written and schema.name in _ONLY_WRITE else None
        for each in tree.tree_leaves((args, dict(kwargs))):
            if isinstance(each, cls) and each is not only:
                _load(each)
    plain = tree.tree_map(lambda each: each.copied if isinstance(each, cls) else each, (tuple(args), dict(kwargs)))
    out = func(*plain[0], **_on_the_host(plain[1]))
    for each in written:
        _store(each)
    if viewing:
        first = next(each for each in tree.tree_leaves(args) if isinstance(each, cls))
        return tree.tree_map(
            lambda each: cls(first.host, first.base, each.shape, each.dtype, each)
            if isinstance(each, torch.Tensor) else each, out,
        )  # fmt: skip
    return written[0] if written and schema.returns and schema.returns[0].alias_info is not None else out


def _on_the_host(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return keyword arguments that name no device but the host's."""
    return {
        name: torch.device("cpu") if name == "device" and value is not None else value for name, value in kwargs.items()
    }


def _places(tensor: Tensor) -> tuple[Any, Array, Array]:
    """Return where the elements of a tensor are, ascending, and which is which."""
    copied = tensor.copied
    offsets = np.zeros(tuple(copied.shape), np.int64)
    for dim, (extent, stride) in enumerate(zip(copied.shape, copied.stride(), strict=True)):
        along = [1] * copied.dim()
        along[dim] = extent
        offsets += (np.arange(extent) * stride).reshape(along)
    flat = offsets.reshape(-1) * copied.element_size() + tensor.asyncsim_address
    place = tensor.host.space.place(flat.astype(np.uint64), _kept(tensor), "a host's access")
    places, first, back = np.unique(place.places, return_index=True, return_inverse=True)
    if len(places) < len(flat):
        raise refused("a tensor that shows one element several times; make it contiguous first")
    return place, places, np.array(back if back is not None else first)


def _kept(tensor: Tensor) -> np.dtype[Any]:
    kept: np.dtype[Any] = to_numpy(torch.empty(0, dtype=tensor.dtype)).dtype
    return kept


def _load(tensor: Tensor) -> None:
    if not tensor.copied.numel():
        return
    place, places, back = _places(tensor)
    found = np.empty(len(places), _kept(tensor))
    for key, part, _ in boxes(places, place.view.shape):
        found[part] = np.ravel(blocking(tensor.host.rank.load(place.region(key))))
    tensor.copied.copy_(from_numpy(found[back], tensor.dtype).reshape(tensor.copied.shape))


def _store(tensor: Tensor) -> None:
    if not tensor.copied.numel():
        return
    place, places, back = _places(tensor)
    flat = to_numpy(tensor.copied).reshape(-1)
    tile = np.empty(len(places), flat.dtype)
    tile[back] = flat
    if place.number in tensor.host.space.memory.words and tile.dtype.kind in "iu" and len(tile) <= FEW:
        for at, value in zip(places.tolist(), tile.tolist(), strict=True):
            blocking(tensor.host.rank.notify(place.word(at), value, SET, order="relaxed"))
        return
    for key, part, shape in boxes(places, place.view.shape):
        blocking(tensor.host.rank.store(place.region(key), tile[part].reshape(shape)))
