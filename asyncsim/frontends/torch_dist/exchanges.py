"""The collectives that only move data between all members: all-gather and all-to-all."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from asyncsim.frontends.torch_dist.call import ALL_GATHER, ALL_TO_ALL, Call
from asyncsim.frontends.torch_dist.collectives import Tensor, check_parts, facts, into
from asyncsim.frontends.torch_dist.tensors import (
    array_of,
    arrays_of,
    check_apart,
    check_contiguous,
    check_dtypes,
    check_overlap,
    check_writable,
)
from asyncsim.frontends.torch_dist.work import Work, made, member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.torch_dist.groups import Group
    from asyncsim.frontends.torch_dist.tensors import Array


def all_gather_into_tensor(
    output_tensor: Tensor,
    input_tensor: Tensor,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
) -> Work | None:
    """Gather the inputs of all members, one after the other, into every output.

    Args:
        output_tensor: of any shape, ``world_size * input.numel()`` elements: concatenated or stacked.
        input_tensor: the own part.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the sizes do not fit; or output and input overlap otherwise than as own part.

    """
    here = member("all_gather_into_tensor", group)
    if here is None:
        return None
    own = here[1]
    out, source = array_of(output_tensor, "output_tensor"), array_of(input_tensor, "input_tensor")
    check_parts("all_gather_into_tensor", source, out, own.size(), ("input", "output"))
    rule = "the input may be the own part of the output, output[rank * n : (rank + 1) * n], or memory of its own"
    check_overlap("all_gather_into_tensor", source, out, own.rank() * source.size, rule)
    call = Call(
        "all_gather_into_tensor", ALL_GATHER, facts=facts(out, source.size), shape=source.shape, dtype=out.dtype,
        sent=[source.flatten()], lengths=[source.size] * own.size(), deliver=into(out),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def all_gather(
    tensor_list: Sequence[Tensor],
    tensor: Tensor,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
) -> Work | None:
    """Gather the tensors of all members into every member's list.

    Args:
        tensor_list: one output a member, each of the shape of `tensor`.
        tensor: the own part.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the list has another length, or one of its tensors another shape.

    """
    here = member("all_gather", group)
    if here is None:
        return None
    own = here[1]
    outs, source = arrays_of(tensor_list, "tensor_list"), array_of(tensor, "tensor")
    if len(outs) != own.size():
        raise RuntimeError(f"invalid output tensor list (expected length {own.size()}, got {len(outs)})")
    check_dtypes("all_gather", [source, *outs])
    rule = "tensor may be tensor_list[rank], or memory of its own"
    for n, out in enumerate(outs):
        check_writable(f"tensor_list[{n}]", out)
        if out.shape != source.shape:
            raise RuntimeError(f"invalid tensor size at index {n} (expected {source.shape}, got {out.shape})")
        check_overlap("all_gather", source, out, 0 if n == own.rank() else None, rule)

    check_apart("all_gather", outs)

    def deliver(flat: Array) -> None:
        for n, out in enumerate(outs):
            into(out)(flat[n * source.size : (n + 1) * source.size])

    call = Call(
        "all_gather", ALL_GATHER, facts=facts(source, source.size), shape=source.shape, dtype=source.dtype,
        sent=[source.flatten()], lengths=[source.size] * own.size(), deliver=deliver,
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def all_to_all_single(  # noqa: PLR0913, PLR0917 - torch's parameters
    output: Tensor,
    input: Tensor,  # noqa: A002 - torch's parameter
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
) -> Work | None:
    """Send the r-th part of the input to member r, which gets it as the part of this member.

    Args:
        output: what all members send here, one part after the other.
        input: the parts for all members.
        output_split_sizes: how many rows (of dimension 0) each part of the output has; None: all the same.
        input_split_sizes: likewise of the input.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the sizes do not fit, or output and input overlap.

    """
    here = member("all_to_all_single", group)
    if here is None:
        return None
    own = here[1]
    out, source = array_of(output, "output"), array_of(input, "input")
    check_contiguous("all_to_all_single", {"output": out, "input": source})
    check_dtypes("all_to_all_single", [out, source])
    check_writable("output", out)
    check_overlap("all_to_all_single", out, source, None, "give memory of its own")
    sends = _splits("input", source, input_split_sizes, own.size())
    gets = _splits("output", out, output_split_sizes, own.size())
    flat = source.flatten()
    ends = list(accumulate(sends))
    call = Call(
        "all_to_all_single", ALL_TO_ALL, facts={"dtype": out.dtype.name}, shape=source.shape, dtype=out.dtype,
        sent=[flat[end - length : end] for end, length in zip(ends, sends, strict=True)], lengths=gets,
        deliver=into(out),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def _splits(what: str, array: Array, sizes: Sequence[int] | None, parts: int) -> list[int]:
    """Return how many elements each part has."""
    rows = array.shape[0] if array.ndim else 1
    row = array.size // rows if rows else 0
    if not sizes:
        if rows % parts:
            raise RuntimeError(
                f"all_to_all_single: the {what} has {rows} rows, which {parts} ranks do not divide evenly; "
                f"give {what}_split_sizes"
            )
        return [rows // parts * row] * parts
    listed = [int(size) for size in sizes]
    if len(listed) != parts:
        raise RuntimeError(f"Number of tensor splits not equal to group size: {what}_split_sizes has {len(listed)}")
    if min(listed) < 0 or sum(listed) != rows:
        raise RuntimeError(f"Split sizes doesn't match total dim 0 size: {what}_split_sizes={listed}, dim 0 is {rows}")
    return [size * row for size in listed]
