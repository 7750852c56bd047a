"""What a driver of kernels needs of ``torch.distributed``: who it is, and a few collectives.

A collective goes by way of fresh symmetric memory, behind a barrier of the hosts; a broadcast orders its source alone.
All other functions are refused: ``asyncsim torchrun`` judges scripts that live on collectives.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.triton.launch import present_host
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.stand_ins import refusals
from asyncsim.guest.host import blocking

if TYPE_CHECKING:
    from asyncsim.frontends.triton.host import Host

Tensor = Any
GROUP = "0"
"""The name of the group of all ranks."""


def this_host() -> Host:
    """Return the rank whose program runs.

    Raises:
        RefusedError: none does.

    """
    host = present_host()
    if host is None:
        raise refused("this is of a rank's program, and none runs")
    return host


class World:
    """The group of all ranks."""

    group_name = GROUP
    group_desc = "default_pg"

    def rank(self) -> int:
        """Return the rank."""
        return this_host().id

    def size(self) -> int:
        """Return P."""
        return this_host().size

    def name(self) -> str:
        """Return the backend, as torch does."""
        return "nccl"


WORLD = World()


def whole(group: Any) -> World:
    """Return the group of all ranks; others are refused.

    Args:
        group: a name, a group, or None.

    """
    if group is not None and group is not WORLD and group != GROUP:
        raise refused(f"the group {group!r}: only that of all ranks is known here")
    return WORLD


def gathered(tensor: Tensor) -> list[Tensor]:
    """Return what every rank's tensor holds: what any did before comes before what all do next.

    Args:
        tensor: of the same shape on all ranks.

    """
    host = this_host()
    scratch = host.empty(tuple(tensor.shape) or (1,), tensor.dtype, "collective")
    scratch.copy_(tensor.reshape(scratch.shape))
    host.barrier()
    return [each.clone().reshape(tensor.shape) for each in host.peers(scratch)]


def broadcast(tensor: Tensor, source: int) -> Tensor:
    """Return what a rank's tensor holds; the source waits for nobody, and nobody for another than it.

    Args:
        tensor: of the same shape on all ranks.
        source: the rank.

    """
    host = this_host()
    scratch = host.empty(tuple(tensor.shape) or (1,), tensor.dtype, "broadcast")
    sent = host.words(1, name="broadcast_sent")
    if host.id != source:
        blocking(host.rank.wait(host.word(sent) == 1))
        return scratch.clone().reshape(tensor.shape)
    for each, flag in zip(host.peers(scratch), host.peers(sent), strict=True):
        each.copy_(tensor.reshape(scratch.shape))
        host.set_word(flag, 0, 1)
    return tensor.clone()


def _combined(tensor: Tensor, op: Any) -> Tensor:
    every = torch.stack(gathered(tensor))
    name = "SUM" if op is None else str(op).rpartition(".")[2].upper()
    made = {
        "SUM": lambda: every.sum(0), "MAX": lambda: every.amax(0), "MIN": lambda: every.amin(0),
        "AVG": lambda: every.mean(0), "PRODUCT": lambda: every.prod(0),
    }  # fmt: skip
    if name not in made:
        raise refused(f"a reduction by {op} is not known here")
    return made[name]().to(tensor.dtype)


def _all_reduce(tensor: Tensor, op: Any = None, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    tensor.copy_(_combined(tensor, op))


def _reduce_scatter(output: Tensor, tensor: Tensor, op: Any = None, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    output.copy_(_combined(tensor, op).reshape(WORLD.size(), *output.shape)[WORLD.rank()])


def _all_gather_into(output: Tensor, tensor: Tensor, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    output.copy_(torch.stack(gathered(tensor)).reshape(output.shape))


def _all_gather(outputs: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    for output, part in zip(outputs, gathered(tensor), strict=True):
        output.copy_(part)


def _all_to_all_single(output: Tensor, tensor: Tensor, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    parts = [each.reshape(WORLD.size(), -1)[WORLD.rank()] for each in gathered(tensor)]
    output.copy_(torch.stack(parts).reshape(output.shape))


def _broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    whole(group)
    tensor.copy_(broadcast(tensor, src))


def _barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> None:  # noqa: FBT001, FBT002
    _at_once(async_op=async_op)
    del device_ids
    whole(group)
    this_host().barrier()


def _at_once(*, async_op: bool) -> None:
    """Refuse a collective that goes on beside the script."""
    if async_op:
        raise refused("async_op=True: what a script does before the wait would not be judged; see asyncsim torchrun")


def names() -> dict[str, Any]:
    """Return what ``torch.distributed`` has while a script runs, by name."""
    ours: dict[str, Any] = {
        "init_process_group": lambda *_, **__: None, "destroy_process_group": lambda *_, **__: None,
        "is_initialized": lambda: True, "is_available": lambda: True, "is_nccl_available": lambda: True,
        "get_backend": lambda group=None: whole(group).name(), "get_rank": lambda group=None: whole(group).rank(),
        "get_world_size": lambda group=None: whole(group).size(),
        "get_process_group_ranks": lambda group=None: list(range(whole(group).size())),
        "barrier": _barrier, "all_reduce": _all_reduce, "broadcast": _broadcast, "all_gather": _all_gather,
        "all_gather_into_tensor": _all_gather_into, "reduce_scatter_tensor": _reduce_scatter,
        "all_to_all_single": _all_to_all_single, "group": SimpleNamespace(WORLD=WORLD),
    }  # fmt: skip
    return {**refusals(torch.distributed, "torch.distributed"), **ours}
