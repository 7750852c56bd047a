"""The members of a process group, and the group as one of them has it."""

from __future__ import annotations

from dataclasses import dataclass

BACKEND = "gloo"
"""The backend whose behaviour is followed, whichever is asked for."""


@dataclass(frozen=True, slots=True)
class Team:
    """The ranks of a process group, by their numbers in the world, ascending.

    Args:
        name: "world", or what reports call it.
        members: who.

    """

    name: str
    members: tuple[int, ...]

    def __str__(self) -> str:
        return "the world" if self.name == "world" else self.name


class ProcessGroup:
    """A group as one of its members has it.

    Args:
        team: the members.
        own: the world rank that has it.
        backend: what it was asked for as.

    """

    def __init__(self, team: Team, own: int, backend: str) -> None:
        self.team = team
        self.backend = backend
        self._own = own

    def rank(self) -> int:
        """Return this rank's number in the group."""
        return self.team.members.index(self._own)

    def size(self) -> int:
        """Return how many members it has."""
        return len(self.team.members)

    def name(self) -> str:
        """Return the backend's name."""
        return self.backend

    def __repr__(self) -> str:
        return f"ProcessGroup({self.team.name}, ranks={list(self.team.members)})"
