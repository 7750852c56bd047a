"""``torch.profiler`` in a script whose ranks are threads of one process: it is accepted, and measures nothing.

Torch's own profiler is one for the process, and ends it where several threads begin it at once.
"""

from __future__ import annotations

from typing import Any, Self

from asyncsim.frontends.torch_dist.torch_parts import torch


class Averages(list[Any]):
    """No events."""

    def table(self, *_: object, **__: object) -> str:
        """Return a table without rows."""
        return "(not measured: ranks are simulated)"

    def total_average(self) -> Averages:
        """Return the same."""
        return self


class Profile:
    """A profiler that measures nothing."""

    profiler = None
    step_num = 0

    def __init__(self, *_: object, **__: object) -> None:
        """Take what torch's takes."""

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""

    def step(self) -> None:
        """Count a step."""
        self.step_num += 1

    def add_metadata(self, _key: str, _value: str) -> None:
        """Keep nothing."""

    add_metadata_json = add_metadata

    def key_averages(self, *_: object, **__: object) -> Averages:
        """Return no events."""
        return Averages()

    def events(self) -> Averages:
        """Return no events."""
        return Averages()

    function_events = property(events)

    def table(self, *_: object, **__: object) -> str:
        """Return a table without rows."""
        return Averages().table()

    def export_chrome_trace(self, _path: str) -> None:
        """Write nothing."""

    export_stacks = export_memory_timeline = export_chrome_trace


def table() -> list[tuple[Any, str, Any]]:
    """Return what replaces torch's profilers: module, name, and what is there instead."""
    autograd = torch.autograd.profiler
    return [
        (torch.profiler, "profile", Profile), (autograd, "profile", Profile), (autograd, "emit_nvtx", Profile),
        (autograd, "emit_itt", Profile),
    ]  # fmt: skip
