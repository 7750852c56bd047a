"""Edits: what is removed from the run of a kernel, or added to it, as data and as text.

    skip SITE                   what waits at the site passes at once: it is not issued at all
    drop SITE                   notifies at the site are not sent
    relax SITE                  what synchronises at the site is relaxed
    narrow SITE                 it orders in a smaller scope: in the rank, not the world; in the block, not the rank
    barrier before SITE         all ranks meet before each rank's first operation at the site in a call
    barrier before every SITE   they meet each time a rank comes to the site
    barrier before return       they meet before they return from a call

A SITE is a source line, ``kernels/x.py:99``, and means all that happens inside it. A second line
narrows it: ``kernels/x.py:99 in asyncsim/collectives/barrier.py:31`` means the operations at line 31
of the barrier, where the kernel's line 99 called it, through whatever lines lie between.

A trace keeps the edits of its run in its header, and a token keeps them too, so that both replay.
"""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.declare import Signal
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.declare import Declaration
    from asyncsim.trace.world import World

SKIP, DROP, RELAX, NARROW, BARRIER = "skip", "drop", "relax", "narrow", "barrier"

_FORMS = (
    "write 'skip SITE', 'drop SITE', 'relax SITE', 'narrow SITE', 'barrier before [every] SITE' or "
    "'barrier before return'; "
    "a SITE is file:line, or file:line in file:line"
)
_TEXT = re.compile(r"(?P<what>skip|drop|relax|narrow|barrier before)(?P<every> every)? (?P<site>.+)", re.DOTALL)
_LINE = re.compile(r"(.+?:\d{1,9})(?: in |\Z)", re.ASCII | re.DOTALL)
_RETURN = "return"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of a run.

    Args:
        what: "skip", "drop", "relax", "narrow" or "barrier".
        site: source lines as ``file:line``, the outermost first; empty: the return from a call.
        every: a barrier each time that a rank comes to the site, not only the first time in a call.

    """

    what: str
    site: tuple[str, ...]
    _: KW_ONLY
    every: bool = False

    def __str__(self) -> str:
        """Write it as `edit_of` reads it."""
        before = f" before{' every' if self.every else ''}" if self.what == BARRIER else ""
        return f"{self.what}{before} {' in '.join(self.site) or _RETURN}"

    def reach(self, lines: Sequence[str]) -> int | None:
        """Return where its site ends among the lines that lead to an operation; None: that one is elsewhere.

        Args:
            lines: as ``file:line``, the outermost first.

        """
        at = -1
        for line in self.site:
            at = next((n for n in range(at + 1, len(lines)) if lines[n] == line), -1)
            if at < 0:
                return None
        return at if self.site else None


def edit_of(text: str) -> Edit:
    """Return the edit that a text names; see the top of this page.

    Raises:
        MisuseError: it names none.

    """
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise MisuseError(f"{text!r} is no edit; {_FORMS}")
    what, every, site = found["what"].partition(" ")[0], bool(found["every"]), found["site"]
    if site == _RETURN and what == BARRIER and not every:
        return Edit(what, ())
    lines = tuple(line[1] for line in _LINE.finditer(site))
    if " in ".join(lines) != site or (every and what != BARRIER):
        raise MisuseError(f"{text!r} is no edit; {_FORMS}")
    return Edit(what, lines, every=every)


def edits_of(texts: Sequence[str]) -> tuple[Edit, ...]:
    """Return the edits that some texts name, in that order.

    Raises:
        MisuseError: one of them names none, or the same one stands there twice.

    """
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise MisuseError(f"edits={texts!r}; give a list of texts: edits=['skip kernels/x.py:99']")
    edits = tuple(map(edit_of, texts))
    for n, edit in enumerate(edits):
        if edit in edits[:n]:
            raise MisuseError(f"the edit {str(edit)!r} is given twice")
    return edits


def added_memory(edits: Sequence[Edit]) -> tuple[Declaration, ...]:
    """Return the signals that edits add to a world, behind the kernel's own memory: one a barrier.

    Cell [p, 0] counts the credits from rank p, and never gives one back: the n-th meeting waits for n.
    """
    barriers = [edit for edit in edits if edit.what == BARRIER]
    return tuple(Signal(f"added_barrier_{number}", ("P", 1), np.int64) for number, _ in enumerate(barriers, 1))


def check_added(edits: Sequence[Edit], world: World) -> None:
    """Refuse a world that lacks what its edits add.

    Args:
        edits: the changes that are made to the kernel.
        world: of the changed kernel; its last signals must be those that the edits add, of shape (P, 1).

    Raises:
        MisuseError: it does.

    """
    added = [(signal.name, (world.ranks, 1)) for signal in added_memory(edits)]
    there = [(layout.name, layout.shape) for layout in world.layouts.values()]
    if there[len(there) - len(added) :] != added:
        names = ", ".join(f"{name} {shape}" for name, shape in added)
        raise MisuseError(f"the edits add the signals {names} behind all other memory; they are not declared there")
