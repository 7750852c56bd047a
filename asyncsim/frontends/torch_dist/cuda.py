"""CUDA's lines of a script, on the CPU: a device's tensors are tensors of the CPU, each rank has a device of its own.

What is launched ends before the next line, so streams order nothing that is not in order already. That two streams of
one rank overlap is not followed: a script that makes a side stream is refused.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.session import participant
from asyncsim.frontends.torch_dist.torch_parts import FunctionBase, torch
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEMORY = 1 << 34
_PROPERTIES = SimpleNamespace(
    name="simulated", major=9, minor=0, total_memory=_MEMORY, multi_processor_count=132, warp_size=32
)


def _on_cpu(value: Any) -> Any:
    """Return a device as the CPU if it is one of CUDA's; all else as it is."""
    if isinstance(value, str) and value.partition(":")[0] == "cuda":
        return "cpu"
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


class OnCpu(FunctionBase):  # type: ignore[misc] # torch need not be installed
    """Sees every function of torch's that a rank calls."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do a function, with the CPU for a device."""
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name == "cuda":
            return args[0]
        if name == "pin_memory":
            return args[0]
        if name == "record_stream":
            return None
        if "device" in kwargs:
            kwargs["device"] = _on_cpu(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if name == "to":
            args = tuple(torch.device("cpu") if type(each) is int else _on_cpu(each) for each in args)
        return func(*args, **kwargs)


class _Stream:
    """The current stream, the only one."""

    cuda_stream = 0

    def __init__(self, *_: Any, current: bool = False, **__: Any) -> None:
        if not current:
            raise MisuseError(
                "torch.cuda.Stream: a side stream lets launches of one rank overlap, which is not followed; use the "
                "current stream, or leave the stream out where the device is simulated"
            )

    def query(self) -> bool:
        """Say that everything has ended."""
        return True

    def synchronize(self) -> None:
        """Return: everything has ended."""

    def record_event(self, event: Any = None) -> Any:
        """Return an event that has come."""
        return event or _Event()

    def wait_event(self, _event: Any) -> None:
        """Return: it has come."""

    wait_stream = wait_event


class _Event:
    """An event; everything before it has ended."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Be one."""

    def record(self, _stream: Any = None) -> None:
        """Come."""

    wait = record

    def synchronize(self) -> None:
        """Return: it has come."""

    def query(self) -> bool:
        """Say that it has come."""
        return True

    def elapsed_time(self, _end: Any) -> float:
        """Return a time in milliseconds; nothing takes any here."""
        return 1.0


def _device() -> int:
    me = participant()
    return 0 if me is None else me.device


def _set_device(device: Any) -> None:
    me = participant()
    if me is None:
        return
    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None:
        if not 0 <= index < me.session.ranks:
            raise RuntimeError(f"CUDA error: invalid device ordinal: {index} of {me.session.ranks} devices")
        me.device = index


def _count() -> int:
    me = participant()
    return 0 if me is None else me.session.ranks


@contextmanager
def _at_device(device: Any) -> Iterator[None]:
    before = _device()
    _set_device(device)
    try:
        yield
    finally:
        _set_device(before)


def _giving(value: Any) -> Any:
    """Return a function that gives a value: each name needs one of its own, as torch's compiler has it."""
    return lambda *_, **__: value


def table() -> list[tuple[Any, str, Any]]:
    """Return what replaces functions of ``torch.cuda``: module, name, and what is there instead."""
    current = _Stream(current=True)
    values: dict[str, Any] = {
        "is_available": lambda: participant() is not None,
        "is_initialized": lambda: participant() is not None,
        "device_count": _count,
        "current_device": _device,
        "set_device": _set_device,
        "device": _at_device,
        "synchronize": _giving(None),
        "current_stream": lambda *_: current,
        "default_stream": lambda *_: current,
        "stream": lambda *_: nullcontext(),
        "Stream": _Stream,
        "Event": _Event,
        "get_device_name": lambda *_: _PROPERTIES.name,
        "get_device_properties": lambda *_: _PROPERTIES,
        "get_device_capability": lambda *_: (9, 0),
        "mem_get_info": lambda *_: (_MEMORY, _MEMORY),
        "init": _giving(None),
        "is_bf16_supported": lambda *_, **__: True,
    }
    nothing = ("manual_seed", "manual_seed_all", "empty_cache", "reset_peak_memory_stats", "ipc_collect")
    values |= {name: _giving(None) for name in nothing}
    numbers = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    values |= {name: _giving(0) for name in numbers}
    present = torch.accelerator.current_accelerator

    def accelerator(*args: Any, **kwargs: Any) -> Any:
        return present(*args, **kwargs) if participant() is None else torch.device("cuda")

    return [
        (torch.accelerator, "current_accelerator", accelerator),
        *((torch.cuda, name, value) for name, value in values.items()),
    ]
