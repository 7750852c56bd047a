"""Prefixes: parts of an exhaustive exploration as data, so that they can be searched elsewhere, or later.

A prefix names who goes at each step, and who went there in executions that are another part's. Which
operations sleep below it follows from these names when the steps are taken again: operations never travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.checking.search.dependence import Location


@dataclass(frozen=True, slots=True)
class Decision:
    """What is decided at one state.

    Args:
        chosen: the actor that goes next.
        done: those whose going next there was explored, or is for others to explore.
        source_set: those that go next in some execution of this part, the chosen one and done ones included.

    """

    chosen: str
    done: tuple[str, ...] = ()
    source_set: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refinement:
    """What a search learns of a case on its way, and has to know from the start.

    Args:
        tight: slots of cells whose range some execution can leave.
        own_adds: actors that add, late, to what their own rank owns, each with the place.
        added_by_waits: slots of cells that a consuming wait adds to.

    """

    tight: frozenset[int] = frozenset()
    own_adds: frozenset[tuple[str, Location]] = frozenset()
    added_by_waits: frozenset[int] = frozenset()

    def __or__(self, other: Refinement) -> Refinement:
        """Return all that one of the two knows."""
        return Refinement(
            self.tight | other.tight, self.own_adds | other.own_adds, self.added_by_waits | other.added_by_waits
        )


@dataclass(frozen=True, slots=True)
class Prefix:
    """A part of the tree of schedules: all below some steps, but for what sleeps there.

    Args:
        refinement: what is known of the case. It decides what sleeps.
        fixed: the steps; nothing else is explored at their states.
        path: how far a search below them has come, if it was left off; else empty.

    """

    refinement: Refinement
    fixed: tuple[Decision, ...] = ()
    path: tuple[Decision, ...] = ()
