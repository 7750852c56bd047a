"""Memory that a script makes as it runs, as declarations: known after a run of it, so it runs until nothing is new.

A rank that comes to memory which is not declared yet says what it wants, and stands still for the rest of that run.
The next run has it. So a script is followed from one allocation to the next, and what is judged is a kernel like any
other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from asyncsim.trace.declare import Declaration

NEVER = Signal("never", (1,))
"""Nobody notifies it: a rank that waits for it stands still."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a rank wants.

    Args:
        name: what it should be called.
        count: how many elements; of ranks that want different numbers the largest counts.
        dtype: of them, by name.
        over: the key of the window that this one is another view of; None: of none.
        signal: it is a signal.
        initialised: it starts as zeros that may be read.

    """

    name: str
    count: int = 1
    dtype: str = "int64"
    over: Hashable = None
    signal: bool = False
    initialised: bool = False


@dataclass(slots=True)
class Layout:
    """What a script has made so far, in the order in which it is declared.

    Args:
        wanted: by key: what ranks wanted that is declared.
        marks: what else was learnt of the script, such as which elements are waited for.
        fresh: what was wanted or marked in the run under way and is not declared.
        notes: remarks of the script's runs, by what they are about.
        loops: the lines of the script that stand in a ``while``.

    """

    wanted: dict[Hashable, Wanted] = field(default_factory=dict)
    marks: set[Hashable] = field(default_factory=set)
    fresh: list[tuple[Hashable, Wanted | None]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    loops: frozenset[int] = frozenset()

    def settle(self) -> bool:
        """Declare what the last run wanted; say whether there was anything new."""
        changed = False
        for key, wanted in self.fresh:
            if wanted is None:
                changed = changed or key not in self.marks
                self.marks.add(key)
                continue
            known = self.wanted.get(key)
            if known is None:
                name, taken = wanted.name, {each.name for each in self.wanted.values()} | {NEVER.name}
                tries = (name if n == 1 else f"{name}_{n}" for n in range(1, len(taken) + 2))
                known = self.wanted[key] = replace(wanted, name=next(each for each in tries if each not in taken))
                changed = True
            if wanted.count > known.count:
                self.wanted[key] = replace(known, count=wanted.count)
                changed = True
        self.fresh.clear()
        return changed

    def declarations(self) -> tuple[Declaration, ...]:
        """Return them all, `NEVER` first."""
        return (NEVER, *map(self._declared, self.wanted.values()))

    def _declared(self, wanted: Wanted) -> Declaration:
        if wanted.signal:
            return Signal(wanted.name, (wanted.count,), wanted.dtype, wrap=True)
        if wanted.over is not None:
            return Window(wanted.name, (wanted.count,), wanted.dtype, over=self.wanted[wanted.over].name)
        return Window(wanted.name, (wanted.count,), wanted.dtype, initialised=wanted.initialised)

    def by_key(self, views: Sequence[Any]) -> dict[Hashable, Any]:
        """Return the views of a rank by the keys of what they are of, `NEVER`'s by None."""
        return dict(zip((None, *self.wanted), views, strict=True))
