"""Tensors: numpy arrays, or torch tensors on the CPU, as numpy arrays that share their memory.

torch is never imported here: what looks like one of its tensors comes from a script that has done so.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from asyncsim.frontends.torch_dist.line import here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Array = np.ndarray[Any, Any]

TORCH_TYPES = {
    "bool": "Bool", "int8": "Char", "uint8": "Byte", "int32": "Int", "int64": "Long", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip
"""The dtypes that gloo takes, by the names that torch's messages use."""

_COPY = (
    "give x.contiguous() (of a numpy array np.ascontiguousarray(x)), and copy a result back from there: x.copy_(result)"
)
_OVERLAP_WORK: Any = 100_000
"""How hard to look for an element that two strided tensors share; it is taken to be there after that."""


def array_of(tensor: Any, parameter: str) -> Array:  # noqa: ANN401 - a tensor of a library that we do not import
    """Return a tensor as an array that shares its memory.

    Args:
        tensor: a numpy array or a CPU torch tensor, dense: a transposed one is, one with gaps is not.
        parameter: what it was given as, for messages.

    Raises:
        TypeError: it is neither, or holds no numbers.
        ValueError: its numbers are in the byte order of another machine; torch takes no such array, too.
            Or its elements do not fill a piece of memory, each once: gloo then sends what lies between them.
        RuntimeError: it is on another device, or sparse.

    """
    if isinstance(tensor, np.ndarray):
        if tensor.dtype.kind not in "biufc" and tensor.dtype != ml_dtypes.bfloat16:
            raise TypeError(f"`{parameter}` holds {tensor.dtype}; a collective takes numbers or booleans")
        if not tensor.dtype.isnative:
            raise ValueError(
                f"`{parameter}` has a byte order different from the native byte order ({tensor.dtype.str}); "
                'give x.astype(x.dtype.newbyteorder("="))'
            )
        return _dense(tensor, parameter)
    if not hasattr(tensor, "detach") or not hasattr(tensor, "numpy"):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{parameter}` of type torch.Tensor"
            f" (or numpy.ndarray), got {type(tensor).__name__}"
        )
    if tensor.device.type != "cpu" or tensor.is_sparse:
        kind = "sparse" if tensor.is_sparse else f"on {tensor.device}"
        raise RuntimeError(f"`{parameter}` is {kind}; asyncsim takes dense tensors on the CPU")
    plain = tensor.detach()
    if str(plain.dtype) == "torch.bfloat16":  # numpy itself has no bfloat16
        shared: Array = plain.view(sys.modules["torch"].int16).numpy()
        return _dense(shared.view(ml_dtypes.bfloat16), parameter)
    return _dense(plain.numpy(), parameter)


def _dense(array: Array, parameter: str) -> Array:
    """Return an array, if its elements fill a piece of memory, each once, in whatever order."""
    filled = array.itemsize
    for stride, length in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != filled and array.size:
            raise ValueError(
                f"Tensors must be contiguous: `{parameter}` at {here()} is strided, so that other elements, or none, "
                f"lie in its memory; {_COPY}"
            )
        filled *= length
    return array


def check_contiguous(name: str, arrays: Mapping[str, Array]) -> None:
    """Refuse transposed tensors where torch does, or where gloo puts elements in the wrong places.

    Args:
        name: of the collective.
        arrays: by parameter.

    Raises:
        ValueError: there is one.

    """
    for parameter, array in arrays.items():
        if not array.flags.c_contiguous:
            raise ValueError(
                f"Tensors must be contiguous: {name} at {here()} takes no transposed `{parameter}`; {_COPY}"
            )


def layout_of(array: Array) -> dict[str, tuple[int, ...]]:
    """Return what ranks must agree on for a tensor that is sent as it lies in memory: nothing if it is contiguous."""
    if array.flags.c_contiguous:
        return {}
    pairs = zip(array.strides, array.shape, strict=True)
    return {"strides": tuple(stride // array.itemsize for stride, length in pairs if length != 1)}


def arrays_of(tensors: Any, parameter: str) -> list[Array]:  # noqa: ANN401 - as above
    """Return the tensors of a list or tuple as arrays.

    Args:
        tensors: what was given; the arrays share their memory.
        parameter: its name in torch, for the message.

    Raises:
        TypeError: it is no list, or holds what is no tensor.

    """
    if not isinstance(tensors, list | tuple):
        raise TypeError(f"Invalid function argument. Expected parameter `{parameter}` of type List[torch.Tensor]")
    return [array_of(tensor, f"{parameter}[{n}]") for n, tensor in enumerate(tensors)]


def check_dtypes(name: str, arrays: Sequence[Array]) -> None:
    """Refuse tensors that are not all of one dtype, or of one that gloo does not know.

    Args:
        name: of the collective, for the message.
        arrays: at least one.

    Raises:
        RuntimeError: gloo does not know the dtype of the first.
        ValueError: another one has another dtype.

    """
    found = arrays[0].dtype.name
    if found not in TORCH_TYPES:
        raise RuntimeError(f"Invalid scalar type: {name} of {found}; give one of {', '.join(TORCH_TYPES)}")
    for array in arrays[1:]:
        if array.dtype != arrays[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes: {name} got {arrays[0].dtype.name} and"
                f" {array.dtype.name}"
            )


def check_writable(parameter: str, array: Array) -> None:
    """Refuse an output that cannot be written to.

    Args:
        parameter: its name in torch, for the message.
        array: the output.

    Raises:
        ValueError: it is read-only.

    """
    if not array.flags.writeable:
        raise ValueError(f"`{parameter}` is read-only; a collective writes its result there")


def check_overlap(name: str, part: Array, whole: Array, start: int | None, rule: str) -> None:
    """Refuse an input and an output that overlap, unless the smaller is exactly a slot of the larger.

    Args:
        name: of the collective.
        part: the smaller of the two tensors.
        whole: the larger.
        start: where the slot begins, counted in elements; None: they may not overlap at all.
        rule: where the two may overlap, in words.

    Raises:
        RuntimeError: they overlap in another way.

    """
    if not _overlap(part, whole):
        return
    if start is not None and part.flags.c_contiguous and whole.flags.c_contiguous:
        address = whole.__array_interface__["data"][0] + start * whole.itemsize
        if part.__array_interface__["data"][0] == address:
            return
    raise RuntimeError(f"{name}: output and input partially overlap; {rule}")


def check_apart(name: str, outs: Sequence[Array]) -> None:
    """Refuse outputs that overlap each other: what is there in the end would depend on which comes last.

    Args:
        name: of the collective.
        outs: the outputs of one call.

    Raises:
        RuntimeError: two of them overlap.

    """
    ends = sorted((*np.lib.array_utils.byte_bounds(out), n) for n, out in enumerate(outs) if out.size)
    for (_, end, a), (start, _, b) in pairwise(ends):
        if start < end and _overlap(outs[a], outs[b]):
            raise RuntimeError(
                f"{name} at {here()}: outputs {min(a, b)} and {max(a, b)} overlap; give each memory of its own"
            )


def _overlap(a: Array, b: Array) -> bool:
    if not a.size or not b.size:
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=_OVERLAP_WORK))
    except np.exceptions.TooHardError:
        return True
