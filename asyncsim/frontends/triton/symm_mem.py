"""``torch.distributed._symmetric_memory``, on the machine.

An allocation has a signal pad of its own, of words that are zero when it is made; a barrier of a handle compares and
swaps them from 0 to 1 at the peers, and back on the own pad.

Source: torch 2.13, torch/distributed/_symmetric_memory and CUDASymmetricMemory-inl.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.triton.distributed import GROUP, this_host, whole
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.memory import plain_dtype
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.stand_ins import refusals
from asyncsim.guest.host import blocking
from asyncsim.trace.cells import SET, Change

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.triton.host import Host

Tensor = Any
PAD_BYTES = 9216
"""Of one signal pad."""


class Handle:
    """What ``rendezvous`` returns.

    Args:
        host: the rank.
        tensor: an own tensor on symmetric memory.
        pads: words, of the same allocation.

    """

    def __init__(self, host: Host, tensor: Tensor, pads: Tensor) -> None:
        self._host, self._tensor, self._pads = host, tensor, pads
        self.rank, self.world_size = host.id, host.size
        self.device, self.group_name = torch.device("cpu"), GROUP
        self.buffer_size = tensor.numel() * tensor.element_size()
        self.signal_pad_size = PAD_BYTES
        self.offset, self.multicast_ptr, self.has_multicast_support = 0, 0, False
        self.buffer_ptrs = [each.data_ptr() for each in host.peers(tensor)]
        self.signal_pad_ptrs = [each.data_ptr() for each in host.peers(pads)]
        self.buffer_ptrs_dev = host.space.table(self.buffer_ptrs)
        self.signal_pad_ptrs_dev = host.space.table(self.signal_pad_ptrs)

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: Any, storage_offset: int = 0) -> Tensor:
        """Return a tensor on a rank's buffer.

        Args:
            rank: whose.
            sizes: of the tensor.
            dtype: torch's.
            storage_offset: in elements.

        """
        return self._part(self.buffer_ptrs[rank], sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: Any) -> Tensor:
        """Return a tensor on a peer's buffer.

        Args:
            peer: whose.
            sizes: of the tensor.
            dtype: torch's.

        """
        return self.get_buffer(peer, sizes, dtype)

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: Any = None, storage_offset: int = 0
    ) -> Tensor:
        """Return a tensor on a rank's signal pad.

        Args:
            rank: whose.
            sizes: of the tensor; none: the whole pad.
            dtype: torch's; None: uint32.
            storage_offset: in elements.

        """
        kind = torch.uint32 if dtype is None else dtype
        whole = (PAD_BYTES // plain_dtype(kind).itemsize,)
        return self._part(self.signal_pad_ptrs[rank], sizes or whole, kind, storage_offset)

    def _part(self, at: int, sizes: Sequence[int], dtype: Any, offset: int) -> Tensor:
        kind = plain_dtype(dtype)
        rank, number, byte = (at >> 48) - 1, at >> 32 & 0xFFFF, at & 0xFFFF_FFFF
        return self._host.symmetric(number, rank, tuple(sizes), kind, byte + offset * kind.itemsize)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Meet all ranks; no time runs out.

        Args:
            channel: whose words are used.
            timeout_ms: is not looked at.

        """
        for peer in range(self.world_size):
            self.put_signal(peer, channel, timeout_ms)
        for peer in range(self.world_size):
            self.wait_signal(peer, channel, timeout_ms)

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Set a peer's word for this rank from 0 to 1.

        Args:
            dst_rank: the peer.
            channel: whose words are used.
            timeout_ms: is not looked at.

        """
        del timeout_ms
        self._swap(dst_rank, channel * self.world_size + self.rank, 0, 1, "release")

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Set the own word for a peer from 1 to 0.

        Args:
            src_rank: the peer.
            channel: whose words are used.
            timeout_ms: is not looked at.

        """
        del timeout_ms
        self._swap(self.rank, channel * self.world_size + src_rank, 1, 0, "acquire")

    def _swap(self, rank: int, place: int, old: int, new: int, order: Any) -> None:
        word = self._host.word(self._host.peer(self._pads, rank), place)
        blocking(self._host.rank.wait(word == old, then=Change(SET, new), order=order))

    def __getattr__(self, name: str) -> Any:
        """Refuse what is not known."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise refused(f"a handle of symmetric memory has no {name!r} here")


def empty(*size: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Allocate symmetric memory that holds nothing.

    Args:
        size: extents, or one sequence of them.
        dtype: torch's; None: its default.
        device: there is one.

    """
    del device
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    host = this_host()
    made = host.empty(tuple(shape), dtype or torch.get_default_dtype())
    made.pads = host.words((PAD_BYTES // 4,), "uint32", "signal_pad")
    return made


def rendezvous(tensor: Tensor, group: Any = None) -> Handle:
    """Return the handle of an allocation.

    Args:
        tensor: what `empty` returned.
        group: that of all ranks.

    Raises:
        RefusedError: it is on no symmetric memory, or the group is another one.

    """
    whole(group)
    pads = getattr(tensor, "pads", None)
    if pads is None:
        raise refused("rendezvous of a tensor that symm_mem.empty did not make")
    if not hasattr(tensor, "handle"):
        tensor.handle = Handle(this_host(), tensor, pads)
    found: Handle = tensor.handle
    return found


def get_symm_mem_workspace(group_name: Any, min_size: int) -> Handle:
    """Return the handle of the one buffer that all operations of the group share.

    Args:
        group_name: of the group.
        min_size: in bytes, at least; a larger one than before is another buffer.

    """
    whole(group_name)
    host = this_host()
    known = host.kept.get("workspace")
    if known is None or known.buffer_size < min_size:
        known = host.kept["workspace"] = rendezvous(empty(min_size, dtype=torch.uint8))
    found: Handle = known
    return found


def is_symm_mem_tensor(tensor: Tensor) -> bool:
    """Say whether a tensor is on symmetric memory."""
    return hasattr(tensor, "asyncsim_address")


def names(real: Any) -> dict[str, Any]:
    """Return what the module has while a script runs, by name.

    Args:
        real: torch's own; what is public there and not ours is refused.

    """
    ours: dict[str, Any] = {
        "empty": empty, "rendezvous": rendezvous, "get_symm_mem_workspace": get_symm_mem_workspace,
        "is_symm_mem_tensor": is_symm_mem_tensor, "enable_symm_mem_for_group": whole,
        "is_nvshmem_available": lambda: False, "set_backend": lambda _name: None,
        "get_backend": lambda _device=None: "CUDA",
    }  # fmt: skip
    return {**refusals(real, "symm_mem"), **ours}
