"""Collectives in which one member has a part of its own, and what two members say to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.call import ALL_REDUCE, ALL_TO_ALL, Call
from asyncsim.frontends.torch_dist.collectives import Op, Tensor, cut, facts, into, weighted
from asyncsim.frontends.torch_dist.reduce_op import ReduceOp, checked_op
from asyncsim.frontends.torch_dist.team import Team
from asyncsim.frontends.torch_dist.tensors import (
    array_of,
    arrays_of,
    check_apart,
    check_dtypes,
    check_overlap,
    check_writable,
)
from asyncsim.frontends.torch_dist.work import Work, made, member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.torch_dist.session import Participant
    from asyncsim.frontends.torch_dist.team import ProcessGroup
    from asyncsim.frontends.torch_dist.tensors import Array


def _member(name: str, group: Any) -> tuple[Participant, ProcessGroup]:
    here = member(name, group)
    if here is None:
        raise ValueError(f"{name}: this rank is not a member of the group")
    return here


def reduce(tensor: Tensor, dst: int, op: Op = ReduceOp.SUM, *, group: Any, async_op: bool) -> Work | None:
    """Reduce the tensors of all members into that of one; the others' stay as they are.

    Args:
        tensor: of any shape, the same number of elements at every member.
        dst: the member that gets the result, by its number in the group.
        op: the operator.
        group: the group.
        async_op: return at once, with a `Work`.

    """
    me, own = _member("reduce", group)
    array = array_of(tensor, "tensor")
    check_dtypes("reduce", [array])
    check_writable("tensor", array)
    machine, text = checked_op("reduce", op, array.dtype)
    pieces = cut(array, own.size())
    call = Call(
        "reduce", ALL_REDUCE, facts=facts(array, array.size, op=text, dst=own.team.members[dst]), shape=array.shape,
        dtype=array.dtype, op=machine, sent=weighted(pieces, op), lengths=[piece.size for piece in pieces],
        deliver=into(array) if own.rank() == dst else None,
    )  # fmt: skip
    return made(me, own, call, async_op=async_op)


def gather(tensor: Tensor, outputs: Sequence[Tensor], dst: int, *, group: Any, async_op: bool) -> Work | None:
    """Gather the tensors of all members at one of them.

    Args:
        tensor: the own part.
        outputs: at `dst` one output a member; elsewhere none.
        dst: the member that gets them, by its number in the group.
        group: the group.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the list has another length, or one of its tensors another shape.

    """
    me, own = _member("gather", group)
    source, outs = array_of(tensor, "tensor"), arrays_of(list(outputs), "gather_list")
    _check_list("gather", "gather_list", outs, source, own, root=dst)
    check_apart("gather", outs)
    at_root = own.rank() == dst
    sent = [source.flatten() if n == dst else source.reshape(-1)[:0] for n in range(own.size())]
    call = Call(
        "gather", ALL_TO_ALL, facts=facts(source, source.size, dst=own.team.members[dst]), shape=source.shape,
        dtype=source.dtype, sent=sent, lengths=[source.size if at_root else 0] * own.size(),
        deliver=_into_each(outs) if at_root else None,
    )  # fmt: skip
    return made(me, own, call, async_op=async_op)


def scatter(tensor: Tensor, inputs: Sequence[Tensor], src: int, *, group: Any, async_op: bool) -> Work | None:
    """Send each member its tensor of one member's list.

    Args:
        tensor: where it goes.
        inputs: at `src` one tensor a member; elsewhere none.
        src: the member that has them, by its number in the group.
        group: the group.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: the list has another length, or one of its tensors another shape.

    """
    me, own = _member("scatter", group)
    out, sources = array_of(tensor, "tensor"), arrays_of(list(inputs), "scatter_list")
    check_writable("tensor", out)
    _check_list("scatter", "scatter_list", sources, out, own, root=src)
    nothing = out.reshape(-1)[:0]
    call = Call(
        "scatter", ALL_TO_ALL, facts=facts(out, out.size, src=own.team.members[src]), shape=out.shape, dtype=out.dtype,
        sent=[each.flatten() for each in sources] if own.rank() == src else [nothing] * own.size(),
        lengths=[out.size if n == src else 0 for n in range(own.size())], deliver=into(out),
    )  # fmt: skip
    return made(me, own, call, async_op=async_op)


def _check_list(name: str, words: str, listed: list[Array], one: Array, own: ProcessGroup, *, root: int) -> None:
    check_dtypes(name, [one, *listed])
    if own.rank() == root and len(listed) != own.size():
        raise RuntimeError(f"{name}: {words} has {len(listed)} tensors for {own.size()} ranks")
    for n, each in enumerate(listed):
        if each.size != one.size:
            raise RuntimeError(f"{name}: {words}[{n}] has {each.size} elements, and the tensor {one.size}")


def all_to_all(outputs: Sequence[Tensor], inputs: Sequence[Tensor], *, group: Any, async_op: bool) -> Work | None:
    """Send the r-th tensor of the list to member r.

    Args:
        outputs: one tensor a member, where what it sends goes.
        inputs: one tensor a member.
        group: the group.
        async_op: return at once, with a `Work`.

    Raises:
        RuntimeError: a list has another length.

    """
    me, own = _member("all_to_all", group)
    outs, sources = arrays_of(list(outputs), "output_tensor_list"), arrays_of(list(inputs), "input_tensor_list")
    if not len(outs) == len(sources) == own.size():
        raise RuntimeError(f"all_to_all: {len(outs)} outputs and {len(sources)} inputs for {own.size()} ranks")
    check_dtypes("all_to_all", [*sources, *outs])
    for n, out in enumerate(outs):
        check_writable(f"output_tensor_list[{n}]", out)
        for source in sources:
            check_overlap("all_to_all", out, source, None, "give memory of its own")
    check_apart("all_to_all", outs)
    call = Call(
        "all_to_all", ALL_TO_ALL, facts={"dtype": outs[0].dtype.name}, dtype=outs[0].dtype,
        sent=[each.flatten() for each in sources], lengths=[out.size for out in outs], deliver=_into_each(outs),
    )  # fmt: skip
    return made(me, own, call, async_op=async_op)


def _into_each(outs: list[Array]) -> Any:
    def deliver(flat: Array) -> None:
        start = 0
        for out in outs:
            into(out)(flat[start : start + out.size])
            start += out.size

    return deliver


def send(tensor: Tensor, peer: int, tag: int, *, group: Any, async_op: bool) -> Work | None:
    """Send a tensor to a member; complete when that one receives it.

    Args:
        tensor: of any shape.
        peer: who gets it, by its number in the group.
        tag: only a receive of the same one gets it.
        group: the group.
        async_op: return at once, with a `Work`.

    """
    return _between("send", tensor, peer, tag, group=group, async_op=async_op)


def recv(tensor: Tensor, peer: int, tag: int, *, group: Any, async_op: bool) -> Work | None:
    """Receive a tensor from a member.

    Args:
        tensor: where it goes; of as many elements.
        peer: who sends it, by its number in the group.
        tag: only a send of the same one is received.
        group: the group.
        async_op: return at once, with a `Work`.

    """
    return _between("recv", tensor, peer, tag, group=group, async_op=async_op)


def _between(name: str, tensor: Tensor, peer: int, tag: int, *, group: Any, async_op: bool) -> Work | None:
    me, own = _member(name, group)
    array = array_of(tensor, "tensor")
    check_dtypes(name, [array])
    other = own.team.members[peer]
    if other == me.rank:
        raise ValueError(f"{name}: rank {me.rank} names itself; a rank sends to others, and receives from others")
    sending = name == "send"
    sender, receiver = (me.rank, other) if sending else (other, me.rank)
    pair = Team(f"{own.team.name}_{sender}_to_{receiver}_tag_{tag}", tuple(sorted((sender, receiver))))
    nothing = array.reshape(-1)[:0]
    if not sending:
        check_writable("tensor", array)
    call = Call(
        name, ALL_TO_ALL, facts=facts(array, array.size, tag=tag), shape=array.shape, dtype=array.dtype,
        sent=[array.flatten() if sending and each == receiver else nothing for each in pair.members],
        lengths=[0 if sending or each != sender else array.size for each in pair.members],
        deliver=None if sending else into(array),
    )  # fmt: skip
    return made(me, own, call, async_op=async_op, team=pair)
