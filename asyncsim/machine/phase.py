"""Phases: labels for what a kernel does, seen in reports and traces."""

from __future__ import annotations

from typing import Protocol

from asyncsim.trace.errors import MisuseError


class _Labelled(Protocol):
    """A rank: it carries the labels of what it does now."""

    id: int
    phase_name: str


class Phase:
    """A label for what happens in a ``with`` block."""

    __slots__ = ("_name", "_outer", "_rank")

    def __init__(self, rank: _Labelled, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise MisuseError(f"rank {rank.id}: phase({name!r}); a phase is named by a short text")
        self._rank = rank
        self._name = name
        self._outer = ""

    def __enter__(self) -> None:
        """Put this label inside those that already hold."""
        self._outer = self._rank.phase_name
        self._rank.phase_name = f"{self._outer}/{self._name}" if self._outer else self._name

    def __exit__(self, *_: object) -> None:
        """Go back to the labels outside."""
        self._rank.phase_name = self._outer
