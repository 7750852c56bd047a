"""A call of a collective by one rank: what it brings, what it gets, and whether it fits its peers'."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.reduce import ReduceOp
from asyncsim.frontends.torch_dist.line import Line
from asyncsim.frontends.torch_dist.team import Team

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.frontends.torch_dist.tensors import Array

BARRIER, BROADCAST, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL = (
    "barrier", "broadcast", "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
)  # fmt: skip
"""What a call becomes on the machine."""
SEND, RECV = "send", "recv"
"""The two calls that one transfer is made of."""
MAKING = ("init_process_group", "new_group")
"""What makes groups, and meets all ranks only to do so."""

_NOBODY, _NOWHERE = Team("", ()), Line("", 0, "")


@dataclass(slots=True, eq=False)
class Call:
    """One rank's part in a collective.

    Args:
        name: what the script called, by its name in torch.
        kind: what that becomes on the machine.
        facts: what must be the same on all members, by name: op, dtype, elements, root.
        shape: of what was given; shown, but only the number of elements must agree.
        dtype: of the elements; int32 where there are none.
        op: the operator.
        root: the member that a broadcast reads, by its number in the group.
        sent: the pieces that this rank brings, each of one dimension.
        lengths: of the pieces that it gets.
        deliver: takes what it gets, one piece after the other, in one dimension.
        asynchronous: made with ``async_op=True``.

    """

    name: str
    kind: str
    _: KW_ONLY
    facts: Mapping[str, Any] = field(default_factory=dict)
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.int32))
    op: ReduceOp = ReduceOp.Sum
    root: int = 0
    sent: Sequence[Array] = ()
    lengths: Sequence[int] = ()
    deliver: Callable[[Array], None] | None = None
    asynchronous: bool = False
    # What the session fills in when the call is made.
    rank: int = -1
    team: Team = _NOBODY
    number: int = -1
    line: Line = _NOWHERE
    done: bool = False
    awaited: bool = False

    @property
    def told(self) -> dict[str, Any]:
        """All facts, as reports show them."""
        shape = {} if self.shape is None else {"shape": self.shape}
        return {**self.facts, **shape, "seq": self.number}

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={_text(value)}" for name, value in sorted(self.told.items()))
        return f"{self.name}({facts})"


def _text(value: object) -> str:
    return f"({', '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def disagreement(calls: Mapping[int, Call]) -> str | None:
    """Return the end of a sentence that says how the calls of all members do not fit; None if they do.

    Args:
        calls: by rank.

    """
    first, *others = calls.values()
    if any(call.name != first.name for call in others) and {call.name for call in calls.values()} != {SEND, RECV}:
        return ""
    known = dict.fromkeys(name for call in calls.values() for name in call.facts)
    names = [name for name in known if any(call.facts.get(name) != first.facts.get(name) for call in others)]
    if names:
        return f", in its {' and '.join(names)}"
    if first.kind == ALL_TO_ALL:
        return _lost_transfer(list(calls.values()))
    return None


def _lost_transfer(calls: Sequence[Call]) -> str | None:
    """Say which two members of an all-to-all expect different numbers of elements of each other."""
    for r, receiver in enumerate(calls):
        for sender, expected in zip(calls, receiver.lengths, strict=True):
            if (sent := sender.sent[r].size) != expected:
                return f": rank {sender.rank} sends {sent} elements to rank {receiver.rank}, which expects {expected}"
    return None


def spoken(calls: Sequence[Call]) -> str:
    """Say who called what, rank by rank, with the lines; those who said the same together."""
    same: dict[tuple[str, Line], list[int]] = {}
    for call in calls:
        same.setdefault((str(call), call.line), []).append(call.rank)
    return "; ".join(f"{who(ranks)} {text} at {line}" for (text, line), ranks in same.items())


def who(ranks: Sequence[int]) -> str:
    """Return ``rank 0 calls`` or ``ranks 0, 1 call``."""
    if len(ranks) == 1:
        return f"rank {ranks[0]} calls"
    return f"ranks {', '.join(map(str, ranks))} call"
