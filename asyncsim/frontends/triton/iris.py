"""``import iris``: AMD's symmetric heap, host and device, in its forms of 2025 and 2026.

Every rank has one heap; what is allocated in the same order lies at the same distance from its base everywhere, so a
pointer is translated by the difference of two bases. Loads and stores of the device order nothing, and atomics are
acq_rel at the scope of one GPU unless a kernel says otherwise, also towards a peer. Allocating with content does not
synchronise: a peer's store may come before the fill.

Source: ROCm iris, its host and device modules of 2025 and 2026.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.triton.cuda import PROPERTIES
from asyncsim.frontends.triton.distributed import broadcast, this_host, whole
from asyncsim.frontends.triton.libraries import tl, torch
from asyncsim.frontends.triton.space import base_of
from asyncsim.frontends.triton.stand_ins import StandIn
from asyncsim.guest.answers import answers
from asyncsim.guest.host import blocking

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Tensor = Any
Pointer = Any
_FILLS = ("zeros", "ones", "full", "randn", "rand", "arange", "linspace", "randint")


class Iris:
    """What ``iris.iris(heap_size)`` returns: a rank's symmetric heap.

    Args:
        heap_size: in bytes; is not looked at.

    """

    def __init__(self, heap_size: int = 1 << 30, **_: Any) -> None:
        self._host = this_host()
        self.heap_size = heap_size
        self.cur_rank, self.num_ranks = self._host.id, self._host.size
        self.heap_bases = self._host.bases
        self.device, self.gpu_id = "cuda", self._host.id

    def get_rank(self) -> int:
        """Return the rank."""
        return self.cur_rank

    def get_num_ranks(self) -> int:
        """Return P."""
        return self.num_ranks

    def get_heap_bases(self) -> Tensor:
        """Return a tensor of every rank's base, uint64."""
        return self.heap_bases

    def get_device(self) -> Any:
        """Return the device."""
        return torch.device("cpu")

    def get_cu_count(self) -> int:
        """Return how many compute units there are."""
        return int(PROPERTIES.multi_processor_count)

    def get_device_context(self) -> Tensor:
        """Return what `DeviceContext.initialize` takes: rank, P, and the bases, int64."""
        values = [self.cur_rank, self.num_ranks, *(base_of(rank) for rank in range(self.num_ranks))]
        made = torch.tensor(values, dtype=torch.int64)
        made.asyncsim_address = self._host.space.table(values)
        return made

    def empty(self, *size: Any, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
        """Allocate on the heap; it holds nothing.

        Args:
            size: extents, or one sequence of them.
            dtype: torch's; None: its default.
            device: there is one.

        """
        del device
        shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        return self._host.empty(tuple(shape), dtype or torch.get_default_dtype())

    def _filled(self, content: Tensor) -> Tensor:
        made = self._host.empty(tuple(content.shape), content.dtype)
        made.copy_(content)
        return made

    def zeros_like(self, tensor: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
        """Allocate zeros of a tensor's shape and dtype.

        Args:
            tensor: any.
            dtype: another one than the tensor's.

        """
        return self._filled(torch.zeros(tuple(tensor.shape), dtype=dtype or tensor.dtype))

    def uniform(self, size: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None) -> Tensor:
        """Allocate numbers drawn evenly.

        Args:
            size: extents.
            low: the least.
            high: the most.
            dtype: torch's; None: its default.

        """
        return self._filled(torch.empty(size, dtype=dtype).uniform_(low, high))

    def barrier(self, stream: Any = None, group: Any = None) -> None:
        """Wait until the device has done all, and until all ranks have come here.

        Args:
            stream: there is one.
            group: that of all ranks.

        """
        del stream
        whole(group)
        self._host.barrier()

    def device_barrier(self, group: Any = None) -> None:
        """Meet all ranks in a kernel: add to the own word, and read each peer's until it is as much.

        Args:
            group: that of all ranks.

        """
        whole(group)
        host = self._host
        words = host.kept.get("device_barrier")
        if words is None:
            words = host.kept["device_barrier"] = host.words(1, "int32", "device_barrier")
            host.kept["device_barriers"] = 0
        host.kept["device_barriers"] += 1
        found = [host.word(each) for each in host.peers(words)]
        blocking(host.rank.notify(found[host.id], 1, order="release", scope="world"))
        for word in found:
            blocking(host.rank.wait(word >= host.kept["device_barriers"], order="acquire", scope="world"))

    def broadcast(self, value: Any, source_rank: int = 0) -> Any:
        """Return what a rank has: a tensor, or a number.

        Args:
            value: a tensor, or a number.
            source_rank: whose counts.

        """
        tensor = value if isinstance(value, torch.Tensor) else torch.tensor(value)
        found = broadcast(tensor, source_rank)
        return found if isinstance(value, torch.Tensor) else found.item()

    def info(self, *_: Any) -> None:
        """Log nothing."""

    debug = warning = error = info


def _fill(name: str) -> Callable[..., Tensor]:
    def fill(
        self: Iris, *args: Any, dtype: Any = None, device: Any = None, requires_grad: Any = None, **more: Any
    ) -> Any:
        del device, requires_grad
        return self._filled(getattr(torch, name)(*args, dtype=dtype, **more))

    return fill


for _name in _FILLS:
    setattr(Iris, _name, _fill(_name))


# ---- the device


@answers
def translate(ptr: Pointer, cur_rank: Any, target_rank: Any, heap_bases: Pointer) -> Pointer:
    """Return where a pointer of one rank's heap points to in another's."""
    distance = tl.cast(ptr, tl.uint64) - tl.cast(tl.load(heap_bases + cur_rank), tl.uint64)
    return tl.cast(tl.cast(tl.load(heap_bases + target_rank), tl.uint64) + distance, ptr.dtype)


@answers
def load(
    ptr: Pointer, to_rank: Any, from_rank: Any, heap_bases: Pointer, mask: Any = None, other: Any = None, **_: Any
) -> Any:
    """Load from a rank's heap."""
    return tl.load(translate(ptr, to_rank, from_rank, heap_bases), mask=mask, other=other)


@answers
def store(
    ptr: Pointer, value: Any, from_rank: Any, to_rank: Any, heap_bases: Pointer, mask: Any = None, **_: Any
) -> None:
    """Store to a rank's heap."""
    tl.store(translate(ptr, from_rank, to_rank, heap_bases), value, mask=mask)


@answers
def get(
    from_ptr: Pointer, to_ptr: Pointer, from_rank: Any, to_rank: Any, heap_bases: Pointer, mask: Any = None, **_: Any
) -> None:
    """Load from a peer's heap, then store to the own memory."""
    tl.store(to_ptr, tl.load(translate(from_ptr, to_rank, from_rank, heap_bases), mask=mask), mask=mask)


@answers
def put(
    from_ptr: Pointer, to_ptr: Pointer, from_rank: Any, to_rank: Any, heap_bases: Pointer, mask: Any = None, **_: Any
) -> None:
    """Load from the own memory, then store to a peer's heap."""
    tl.store(translate(to_ptr, from_rank, to_rank, heap_bases), tl.load(from_ptr, mask=mask), mask=mask)


@answers
def copy(
    src_ptr: Pointer, dst_ptr: Pointer, from_rank: Any, to_rank: Any, cur_rank: Any, heap_bases: Pointer,
    mask: Any = None, **_: Any,
) -> None:  # fmt: skip
    """Load from one rank's heap, then store to another's."""
    found = tl.load(translate(src_ptr, cur_rank, from_rank, heap_bases), mask=mask)
    tl.store(translate(dst_ptr, cur_rank, to_rank, heap_bases), found, mask=mask)


def _atomic(name: str) -> Callable[..., Any]:
    def atomic(
        pointer: Pointer, val: Any, from_rank: Any, to_rank: Any, heap_bases: Pointer, mask: Any = None,
        sem: Any = None, scope: Any = None,
    ) -> Any:  # fmt: skip
        at = translate(pointer, from_rank, to_rank, heap_bases)
        return getattr(tl, name)(at, val, mask=mask, sem=sem, scope=scope)

    return atomic


@answers
def atomic_cas(
    pointer: Pointer, cmp: Any, val: Any, from_rank: Any, to_rank: Any, heap_bases: Pointer, sem: Any = None,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Compare and swap a word of a rank's heap; return what it held."""
    return tl.atomic_cas(translate(pointer, from_rank, to_rank, heap_bases), cmp, val, sem=sem, scope=scope)


_ATOMICS = ("add", "xchg", "xor", "and", "or", "min", "max")
_DEVICE: dict[str, Callable[..., Any]] = {
    "load": load, "store": store, "get": get, "put": put, "copy": copy, "atomic_cas": atomic_cas,
    **{f"atomic_{name}": _atomic(f"atomic_{name}") for name in _ATOMICS},
}  # fmt: skip


class DeviceContext:
    """The same operations, with the rank and the bases known.

    Args:
        rank: the own one.
        bases: a pointer to every rank's base.

    """

    def __init__(self, rank: Any, bases: Pointer) -> None:
        self.rank, self._bases = rank, bases

    @staticmethod
    @answers
    def initialize(context_tensor: Pointer, rank: Any, world_size: Any, **_: Any) -> DeviceContext:
        """Return the context of a kernel."""
        del world_size
        return DeviceContext(rank, context_tensor + 2)

    @answers
    def load(self, ptr: Pointer, from_rank: Any, **more: Any) -> Any:
        """Load from a rank's heap."""
        return load(ptr, self.rank, from_rank, self._bases, **more)

    @answers
    def store(self, ptr: Pointer, value: Any, to_rank: Any, **more: Any) -> None:
        """Store to a rank's heap."""
        store(ptr, value, self.rank, to_rank, self._bases, **more)

    @answers
    def get(self, from_ptr: Pointer, to_ptr: Pointer, from_rank: Any, **more: Any) -> None:
        """Load from a peer's heap, then store to the own memory."""
        get(from_ptr, to_ptr, from_rank, self.rank, self._bases, **more)

    @answers
    def put(self, from_ptr: Pointer, to_ptr: Pointer, to_rank: Any, **more: Any) -> None:
        """Load from the own memory, then store to a peer's heap."""
        put(from_ptr, to_ptr, self.rank, to_rank, self._bases, **more)

    @answers
    def copy(self, src_ptr: Pointer, dst_ptr: Pointer, from_rank: Any, to_rank: Any, **more: Any) -> None:
        """Load from one rank's heap, then store to another's."""
        copy(src_ptr, dst_ptr, from_rank, to_rank, self.rank, self._bases, **more)

    @answers
    def atomic_cas(self, pointer: Pointer, cmp: Any, val: Any, to_rank: Any, **more: Any) -> Any:
        """Compare and swap a word of a rank's heap."""
        return atomic_cas(pointer, cmp, val, self.rank, to_rank, self._bases, **more)


def _method(name: str) -> Callable[..., Any]:
    def atomic(self: DeviceContext, pointer: Pointer, val: Any, to_rank: Any, **more: Any) -> Any:
        return _DEVICE[name](pointer, val, self.rank, to_rank, self._bases, **more)

    return atomic


for _name in _ATOMICS:
    setattr(DeviceContext, f"atomic_{_name}", _method(f"atomic_{_name}"))


def iris_modules() -> dict[str, ModuleType]:
    """Return the modules by name."""
    context = StandIn("iris.context", {"TritonContext": DeviceContext, "DeviceContext": DeviceContext})
    names = {
        "iris": Iris, "Iris": Iris, "DeviceContext": DeviceContext, "context": context, "_translate": translate,
        "__translate": translate, "__version__": "0", **_DEVICE,
    }  # fmt: skip
    return {"iris": StandIn("iris", names), "iris.context": context, "iris.iris": StandIn("iris.iris", names)}
