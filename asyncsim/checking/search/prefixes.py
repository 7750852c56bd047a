"""Prefixes: parts of an exhaustive exploration as data, so that they can be searched elsewhere, or later.

A prefix names who goes at each step, and who went there in executions that are another part's. Which
operations sleep below it follows from these names when the steps are taken again: operations never travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.checking.search.dependence import Place


@dataclass(frozen=True, slots=True)
class Step:
    """What is decided at one state.

    Args:
        chosen: the actor that goes next.
        done: those whose going next there was explored, or is for others to explore.
        planned: those that go next in some execution of this part, the chosen one and done ones included.

    """

    chosen: str
    done: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a search learns of a case on its way, and has to know from the start.

    Args:
        tight: slots of cells whose range some execution can leave.
        adding: actors that add, late, to what their own rank owns, each with the place.
        lowered: slots of cells that a consuming wait adds to.

    """

    tight: frozenset[int] = frozenset()
    adding: frozenset[tuple[str, Place]] = frozenset()
    lowered: frozenset[int] = frozenset()

    def __or__(self, other: Learnt) -> Learnt:
        """Return all that one of the two knows."""
        return Learnt(self.tight | other.tight, self.adding | other.adding, self.lowered | other.lowered)


@dataclass(frozen=True, slots=True)
class Prefix:
    """A part of the tree of schedules: all below some steps, but for what sleeps there.

    Args:
        learnt: what is known of the case. It decides what sleeps.
        fixed: the steps; nothing else is explored at their states.
        path: how far a search below them has come, if it was left off; else empty.

    """

    learnt: Learnt
    fixed: tuple[Step, ...] = ()
    path: tuple[Step, ...] = ()
