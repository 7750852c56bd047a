"""The collectives, by torch's names and with its parameters, on numpy arrays or CPU torch tensors.

What a call sends is copied when it is made. What it gets is written into the output when the last
member has made the call; a synchronous call returns after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.torch_dist.call import ALL_REDUCE, BARRIER, BROADCAST, REDUCE_SCATTER, Call
from asyncsim.frontends.torch_dist.reduce_op import PremulSum, ReduceOp, checked_op
from asyncsim.frontends.torch_dist.tensors import (
    array_of,
    arrays_of,
    check_contiguous,
    check_dtypes,
    check_overlap,
    check_writable,
    layout_of,
)
from asyncsim.frontends.torch_dist.work import Work, made, member

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.frontends.torch_dist.groups import Group
    from asyncsim.frontends.torch_dist.tensors import Array

Op = ReduceOp | PremulSum
Tensor = Any
"""A numpy array, or a CPU torch tensor; torch is not imported here, so the type is not named."""


def all_reduce(
    tensor: Tensor, op: Op = ReduceOp.SUM, group: Group = None, async_op: bool = False  # noqa: FBT001, FBT002 - torch's
) -> Work | None:  # fmt: skip
    """Reduce the tensors of all members into each of them, in place; all get the same bits.

    Args:
        tensor: of any shape, the same number of elements at every member.
        op: the operator.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    """
    here = member("all_reduce", group)
    if here is None:
        return None
    array = array_of(tensor, "tensor")
    check_dtypes("all_reduce", [array])
    check_writable("tensor", array)
    machine, text = checked_op("all_reduce", op, array.dtype)
    pieces = cut(array, here[1].size())
    call = Call(
        "all_reduce", ALL_REDUCE, facts=facts(array, array.size, op=text, **layout_of(array)), shape=array.shape,
        dtype=array.dtype, op=machine, sent=weighted(pieces, op), lengths=[piece.size for piece in pieces],
        deliver=into(array),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
    group_src: int | None = None,
) -> Work | None:
    """Copy one member's tensor into all others'.

    Args:
        tensor: the same number of elements at every member.
        src: who has it, by its number in the world;
        group: None: the default one.
        async_op: return at once, with a `Work`.
        group_src: or by its number in the group.

    """
    here = member("broadcast", group)
    if here is None:
        return None
    root = _root(src, group_src, here[1].team.members)
    array = array_of(tensor, "tensor")
    check_dtypes("broadcast", [array])
    check_writable("tensor", array)
    pieces = cut(array, here[1].size())
    call = Call(
        "broadcast", BROADCAST, facts=facts(array, array.size, src=here[1].team.members[root], **layout_of(array)),
        shape=array.shape, dtype=array.dtype, root=root, sent=pieces, lengths=[piece.size for piece in pieces],
        deliver=into(array),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def _root(src: int | None, group_src: int | None, members: tuple[int, ...]) -> int:
    if src is None and group_src is None:
        raise ValueError("Must specify global_rank or group_rank")
    if src is not None and group_src is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if src is not None and src not in members:
        raise ValueError(f"Global rank {src} is not part of the group, whose ranks are {list(members)}")
    root = members.index(src) if src is not None else int(group_src or 0)
    if not 0 <= root < len(members):
        raise ValueError(f"Group rank {root} is not part of the group, which has {len(members)} members")
    return root


def barrier(
    group: Group = None, async_op: bool = False, device_ids: Any = None, timeout: Any = None  # noqa: ANN401, ARG001, FBT001, FBT002 - torch's
) -> Work | None:  # fmt: skip
    """Wait until every member has come here.

    Args:
        group: None: the default group.
        async_op: return a `Work` at once, and do not wait.
        device_ids: as in torch; not used.
        timeout: as in torch; not used.

    """
    here = member("barrier", group)
    return None if here is None else made(*here, Call("barrier", BARRIER), async_op=async_op)


def reduce_scatter_tensor(
    output: Tensor,
    input: Tensor,  # noqa: A002 - torch's parameter
    op: Op = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
) -> Work | None:
    """Reduce the inputs of all members; member r gets the r-th part.

    Args:
        output: one part: of any shape, ``input.numel() / world_size`` elements.
        input: the parts of all members, concatenated or stacked.
        op: the operator.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the sizes do not fit; or output and input overlap otherwise than as own part.

    """
    here = member("reduce_scatter_tensor", group)
    if here is None:
        return None
    own = here[1]
    out, source = array_of(output, "output"), array_of(input, "input")
    check_parts("reduce_scatter_tensor", out, source, own.size(), ("output", "input"))
    rule = "the output may be the own part of the input, input[rank * n : (rank + 1) * n], or memory of its own"
    check_overlap("reduce_scatter_tensor", out, source, own.rank() * out.size, rule)
    machine, text = checked_op("reduce_scatter_tensor", op, out.dtype)
    pieces = cut(source, own.size())
    call = Call(
        "reduce_scatter_tensor", REDUCE_SCATTER, facts=facts(out, source.size, op=text), shape=source.shape,
        dtype=out.dtype, op=machine, sent=weighted(pieces, op), lengths=[out.size], deliver=into(out),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Op = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
) -> Work | None:
    """Reduce the r-th tensor of every member's list into member r's output.

    Args:
        output: of the size of the r-th tensor.
        input_list: one tensor a member; their sizes may differ, but not from member to member.
        op: the operator.
        group: None: the default one.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the list has another length, or the output another size.

    """
    here = member("reduce_scatter", group)
    if here is None:
        return None
    own = here[1]
    out, sources = array_of(output, "output"), arrays_of(input_list, "input_list")
    if len(sources) != own.size():
        raise RuntimeError(
            f"invalid input tensor list size, must be world size: got {len(sources)} tensors for {own.size()} ranks"
        )
    check_contiguous("reduce_scatter", {"output": out, **{f"input_list[{n}]": x for n, x in enumerate(sources)}})
    check_dtypes("reduce_scatter", [out, *sources])
    check_writable("output", out)
    part = sources[own.rank()]
    if out.size != part.size:
        raise RuntimeError(
            f"reduce_scatter: the output has {out.size} elements, input_list[{own.rank()}] has {part.size}; "
            f"give an output of {part.size}"
        )
    rule = "the output may be input_list[rank], or memory of its own"
    for n, source in enumerate(sources):
        check_overlap("reduce_scatter", out, source, 0 if n == own.rank() else None, rule)
    machine, text = checked_op("reduce_scatter", op, out.dtype)
    sizes = tuple(source.size for source in sources)
    call = Call(
        "reduce_scatter", REDUCE_SCATTER, facts=facts(out, sizes, op=text), dtype=out.dtype, op=machine,
        sent=weighted([source.flatten() for source in sources], op), lengths=[out.size], deliver=into(out),
    )  # fmt: skip
    return made(*here, call, async_op=async_op)


def check_parts(name: str, part: Array, whole: Array, size: int, words: tuple[str, str]) -> None:
    """Refuse two tensors of which one is not as long as `size` of the other.

    Args:
        name: of the collective, for the message.
        part: the tensor of one member.
        whole: the tensor of all.
        size: how many members there are.
        words: what `part` and `whole` are, in this order: "input" and "output", or the other way round.

    Raises:
        RuntimeError: the numbers of elements do not fit.

    """
    check_dtypes(name, [part, whole])
    check_writable("output", part if words[0] == "output" else whole)
    if part.size * size == whole.size:
        return
    fits = f"an {words[1]} of {_elements(part.size * size)}"
    if whole.size % size == 0:
        fits = f"an {words[0]} of {_elements(whole.size // size)}, or {fits}"
    raise RuntimeError(
        f"{name}: {words[0]}.numel() * world_size must be {words[1]}.numel(), but {part.size} * {size} = "
        f"{part.size * size} is not {whole.size}; what fits: {fits}"
    )


def _elements(number: int) -> str:
    return f"{number} element" if number == 1 else f"{number} elements"


def cut(array: Array, parts: int) -> list[Array]:
    """Return a copy of a tensor in so many pieces of one dimension, equally long but for the last ones.

    Args:
        array: of any shape; left as it is.
        parts: how many pieces, at least 1; the last may be shorter, or empty.

    """
    flat = array.flatten()
    length = -(-flat.size // parts)
    return [flat[n * length : (n + 1) * length] for n in range(parts)]


def weighted(pieces: Sequence[Array], op: Op) -> list[Array]:
    """Return the pieces as they go into the sum: multiplied before, if that is asked for.

    Args:
        pieces: left as they are.
        op: only a `PremulSum` multiplies; its factor is cast to the dtype of the pieces.

    """
    if not isinstance(op, PremulSum):
        return list(pieces)
    with np.errstate(all="ignore"):
        return [(piece * np.array(op.factor).astype(piece.dtype)).astype(piece.dtype) for piece in pieces]


def into(array: Array) -> Callable[[Array], None]:
    """Return what writes a result into a tensor."""

    def write(flat: Array) -> None:
        array[...] = flat.reshape(array.shape)

    return write


def facts(array: Array, elements: int | tuple[int, ...], **others: object) -> dict[str, object]:
    """Return what all members must agree on.

    Args:
        array: its dtype is one of them.
        elements: how many, or of each piece.
        others: more of them, by name.

    """
    return {"dtype": array.dtype.name, "elements": elements, **others}
