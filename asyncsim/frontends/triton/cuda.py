"""CUDA's lines of a script, on the CPU: tensors of a device are tensors, and launches end before the next line.

A side stream would let launches of one rank overlap, which is not followed here; so it is refused, and the current
stream is all that there is.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.stand_ins import attributes, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

PROPERTIES = SimpleNamespace(
    name="simulated", multi_processor_count=4, major=9, minor=0, total_memory=1 << 34, warp_size=32,
    max_threads_per_multi_processor=2048, gcnArchName="",
)  # fmt: skip


class _Stream:
    """The current stream."""

    cuda_stream = 0
    device = "cuda"

    def synchronize(self) -> None:
        """Return: everything has ended."""

    wait_stream = wait_event = record_event = query = lambda *_, **__: True

    def __enter__(self) -> None:
        """Be the current one."""

    def __exit__(self, *_: object) -> None:
        """Be it still."""


class _Event:
    """An event, for those who measure."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Be one."""

    record = wait = synchronize = lambda *_, **__: None

    def query(self) -> bool:
        """Say that it has come."""
        return True

    def elapsed_time(self, _end: Any) -> float:
        """Return a time; nothing takes any here."""
        return 1.0


_CURRENT = _Stream()


def _on_cpu(value: Any) -> Any:
    """Return the CPU for a device of CUDA; anything else as it is."""
    if isinstance(value, str) and value.partition(":")[0] in ("cuda", "hip"):
        return "cpu"
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


def _mode() -> Any:
    class OnCpu(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Moves what is said to be on a CUDA device to the CPU."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            del types
            name = getattr(func, "__name__", "")
            kwargs = {each: _on_cpu(value) if each == "device" else value for each, value in (kwargs or {}).items()}
            if name in ("cuda", "pin_memory"):
                return args[0]
            if name == "to":
                moved = tuple(map(_on_cpu, args))
                if moved != args and len(args) == 2 and not kwargs:  # noqa: PLR2004 - the tensor, and a device
                    return args[0]  # a tensor that is on the device is not copied
                args = moved
            kwargs.pop("pin_memory", None)
            return func(*args, **kwargs)

    return OnCpu()


@contextmanager
def cuda_answers(rank_of: Any) -> Iterator[None]:
    """Let the lines of CUDA mean something while the block runs.

    Args:
        rank_of: returns the number of the rank that runs, and P.

    """
    ours = {
        "set_device": lambda *_: None, "current_device": lambda: rank_of()[0], "device_count": lambda: rank_of()[1],
        "is_available": lambda: True, "synchronize": lambda *_: None, "empty_cache": lambda: None,
        "current_stream": lambda *_: _CURRENT, "default_stream": lambda *_: _CURRENT,
        "stream": nullcontext, "device": nullcontext,
        "get_device_properties": lambda *_: PROPERTIES, "get_device_name": lambda *_: PROPERTIES.name,
        "get_device_capability": lambda *_: (9, 0), "manual_seed": lambda *_: None,
        "manual_seed_all": lambda *_: None,
        "Stream": unknown("torch.cuda.Stream, a side stream,"), "Event": _Event, "init": lambda: None,
        "can_device_access_peer": lambda *_: True, "is_initialized": lambda: True, "_lazy_init": lambda: None,
    }  # fmt: skip
    with attributes(torch.cuda, ours), _mode():
        yield
