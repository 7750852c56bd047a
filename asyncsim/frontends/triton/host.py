"""One rank's program as its author sees it: who it is, symmetric memory, barriers.

What a host does to symmetric memory is done on the machine, operation by operation, as what its kernels do. A rank's
own tensors are its own affair; a kernel that is given one works on a window that has the same content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.memory import Buffer, plain_dtype
from asyncsim.frontends.triton.space import OWN, Space, address, base_of, refused
from asyncsim.frontends.triton.tensors import FEW, device_tensor, from_numpy, to_numpy
from asyncsim.guest.host import blocking
from asyncsim.trace.cells import SET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.triton.memory import Memory
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.region import Word

Tensor = Any
"""A tensor of torch."""


class Host:
    """One rank.

    Args:
        machine: its `Rank`.
        memory: what is declared.
        views: of that.

    """

    def __init__(self, machine: Rank, memory: Memory, views: Sequence[Any]) -> None:
        self._machine = machine
        self._memory = memory
        self._barrier = views[0]
        self.space: Space = Space(machine.id, machine.size, memory, views)
        self._symmetric = 1  # a negative offset into the first is still this rank's
        self._own = 0
        self.kept: dict[str, Any] = {}
        """What a dialect keeps for the rank."""

    @property
    def rank(self) -> Rank:
        """The rank as the machine has it."""
        return self._machine

    @property
    def id(self) -> int:
        """Its number, from 0."""
        return self._machine.id

    @property
    def size(self) -> int:
        """P."""
        return self._machine.size

    @property
    def call(self) -> int:
        """The number of the present call, from 0."""
        return self._machine.call

    # Symmetric memory. All ranks allocate in the same order; in each call, the n-th is the same memory.

    def empty(
        self, shape: Sequence[int] | int, dtype: Any = None, name: str = "", *, start_zero: bool = False
    ) -> Tensor:
        """Allocate symmetric memory that holds nothing; returns a tensor.

        Args:
            shape: the same on all ranks.
            dtype: of torch's, or by name; None: float32.
            name: what reports call it.
            start_zero: it holds zeros before anybody comes to it.

        """
        extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        number, self._symmetric = self._symmetric, self._symmetric + 1
        kind = plain_dtype("float32" if dtype is None else dtype)
        held = Buffer(name or f"symmetric_{number}", extents or (1,), kind, initialised=start_zero)
        self._memory.add(number, held)
        return self.symmetric(number, self.id, extents, kind)

    def zeros(self, shape: Sequence[int] | int, dtype: Any = None, name: str = "") -> Tensor:
        """Allocate symmetric memory and fill it with zeros, which a fast peer's store may come before.

        Args:
            shape: of the tensor.
            dtype: of its elements; None: the default of torch.
            name: of the buffer, for reports.

        """
        made = self.empty(shape, dtype, name)
        made.zero_()
        return made

    def words(self, shape: Sequence[int] | int, dtype: Any = "int32", name: str = "") -> Tensor:
        """Allocate symmetric memory that holds zeros before anybody comes to it, as signal pads do.

        Args:
            shape: of the tensor.
            dtype: of its elements.
            name: of the buffer, for reports.

        """
        return self.empty(shape, dtype, name, start_zero=True)

    def symmetric(self, number: int, rank: int, shape: Sequence[int], dtype: np.dtype[Any], offset: int = 0) -> Tensor:
        """Return a tensor on some rank's symmetric buffer.

        Args:
            number: of the buffer.
            rank: whose it is.
            shape: of the tensor.
            dtype: of its elements.
            offset: where it begins, in bytes.

        """
        return device_tensor()(self, address(rank, number, offset), tuple(shape), dtype)

    def peer(self, tensor: Tensor, rank: int) -> Tensor:
        """Return a peer's tensor that corresponds to an own symmetric one.

        Args:
            tensor: the own one.
            rank: the peer.

        """
        at = self.symmetric_address(tensor) - base_of(self.id) + base_of(rank)
        return device_tensor()(self, at, tuple(tensor.shape), plain_dtype(tensor.dtype))

    def peers(self, tensor: Tensor) -> tuple[Tensor, ...]:
        """Return every rank's tensor that corresponds to an own symmetric one, by rank."""
        return tuple(self.peer(tensor, rank) for rank in range(self.size))

    def table(self, tensor: Tensor) -> int:
        """Return the address of a table, in device memory, of the addresses of all ranks' tensors."""
        return self.space.table([each.data_ptr() for each in self.peers(tensor)])

    @property
    def bases(self) -> Tensor:
        """A tensor of the addresses at which the ranks' heaps begin, by rank."""
        made = torch.tensor([base_of(rank) for rank in range(self.size)], dtype=torch.int64)
        made.asyncsim_address = self.space.table(made.tolist())
        return made

    @staticmethod
    def symmetric_address(tensor: Tensor) -> int:
        """Return where a tensor on symmetric memory begins.

        Raises:
            RefusedError: it is on no symmetric memory.

        """
        found = getattr(tensor, "asyncsim_address", None)
        if found is None:
            raise refused("a tensor that is not on symmetric memory; allocate it there")
        at: int = found
        return at

    def barrier(self) -> None:
        """Wait until all that this rank launched has ended, and until all ranks have come here."""
        blocking(self._meet())

    async def _meet(self) -> None:
        await barrier(self._machine, self._barrier)
        await settle(self._machine, self._barrier, credits=1)

    def word(self, tensor: Tensor, at: int = 0) -> Word:
        """Return a word of a tensor on symmetric memory, to synchronise on.

        Args:
            tensor: of integers.
            at: which of them.

        """
        where = np.array([self.symmetric_address(tensor) + at * tensor.element_size()], np.uint64)
        found = self.space.place(where, plain_dtype(tensor.dtype), "a flag")
        return found.word(int(found.places[0]))

    def set_word(self, tensor: Tensor, at: int, value: int) -> None:
        """Set a word, behind all that the host wrote before, as a copy engine's flags; a release.

        Args:
            tensor: of words, on symmetric memory.
            at: which of them.
            value: what it is set to.

        """
        blocking(self._machine.notify(self.word(tensor, at), value, SET))

    # A rank's own tensors.

    def own(self, name: str, tensor: Tensor) -> int:
        """Return the number of the buffer for an own tensor that a kernel is given.

        Args:
            name: of the kernel's parameter.
            tensor: of torch's.

        """
        number, self._own = OWN + self._own, self._own + 1
        size = tensor.untyped_storage().nbytes() // tensor.element_size()
        whole = tensor.is_contiguous() and tensor.numel() == size
        shape = tuple(tensor.shape) if whole and tensor.shape else (size,)
        self._memory.add(number, Buffer(name, shape, plain_dtype(tensor.dtype)))
        return number

    def address(self, number: int) -> int:
        """Return where an own buffer begins."""
        return address(self.id, number)

    async def write_own(self, number: int, tensor: Tensor) -> None:
        """Let the window of an own tensor hold what the tensor holds.

        Args:
            number: of its buffer.
            tensor: the tensor.

        """
        tile = to_numpy(_flat(tensor))
        view = self.space.views[self._memory.index(number, tile.dtype)]
        if number in self._memory.words and tile.dtype.kind in "iu" and tile.size <= FEW:
            for at, value in enumerate(tile.tolist()):
                word = view.word[tuple(int(each) for each in np.unravel_index(at, view.shape))]
                await self._machine.notify(word, value, SET, order="relaxed")
        elif tile.size == np.prod(view.shape):
            await self._machine.store(view[...] if tile.size else view[0:0], tile.reshape(view.shape))
        else:
            await self._machine.store(view[: tile.size], tile)

    async def read_own(self, number: int, tensor: Tensor) -> None:
        """Let an own tensor hold what its window holds.

        Args:
            number: of its buffer.
            tensor: the tensor.

        """
        flat = _flat(tensor)
        view = self.space.views[self._memory.index(number, plain_dtype(tensor.dtype))]
        whole = flat.numel() == np.prod(view.shape)
        tile = await self._machine.load(view[...] if whole else view[: flat.numel()])
        flat.copy_(from_numpy(np.ravel(tile), flat.dtype))


def _flat(tensor: Tensor) -> Tensor:
    """Return all that a tensor's storage holds, as one dimension."""
    storage = tensor.untyped_storage()
    size = storage.nbytes() // tensor.element_size()
    return torch.empty(0, dtype=tensor.dtype).set_(storage, 0, (size,), (1,))
