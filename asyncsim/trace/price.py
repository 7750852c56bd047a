"""What an operation costs in virtual time: the alpha-beta-gamma model of messages.

A message of n bytes takes alpha + beta n seconds of the task that issues it, a notify to a peer alpha;
reducing n bytes takes gamma n. What stays within a rank takes none, and being read or written costs
the owner nothing. Waits take as long as they wait.

Source: Hockney, "The communication challenge for MPP", 1994; with gamma as in Thakur, Rabenseifner and
Gropp, "Optimization of collective communication operations in MPICH", 2005.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.region import ADD, READ

if TYPE_CHECKING:
    from asyncsim.trace.op import Op

ALPHA, BETA, GAMMA = 1e-6, 1e-10, 0.0
"""A microsecond a message, ten gigabytes a second, and reductions that cost nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The three numbers of the model.

    Args:
        alpha: seconds a message or notify.
        beta: seconds a byte that is moved between ranks.
        gamma: seconds a byte that is reduced.

    """

    alpha: float = ALPHA
    beta: float = BETA
    gamma: float = GAMMA

    def __post_init__(self) -> None:
        for name in ("alpha", "beta", "gamma"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
                raise MisuseError(f"{name}={value!r}; give seconds, at least 0")

    def seconds(self, op: Op, *, reduces: bool = False) -> float:
        """Return how long an operation keeps its actor busy.

        Args:
            op: the operation. What lands later costs its issuer nothing, and its wire all.
            reduces: what it brings is reduced.

        """
        if op.deferred:
            return 0.0
        size = moved(op)
        reduced = size_of(op) if reduces or (op.accesses and op.accesses[-1].mode == ADD) else 0
        return (self.alpha if size or signals(op) else 0.0) + self.beta * size + self.gamma * reduced


def size_of(op: Op) -> int:
    """Return the bytes of the tile that an operation loads, stores or copies; 0 for one on a cell."""
    return sum(stop - start for start, stop in op.accesses[-1].region.spans) if op.accesses else 0


def moved(op: Op) -> int:
    """Return the bytes that an operation moves between ranks."""
    return size_of(op) if peer_of(op) is not None else 0


def peer_of(op: Op) -> int | None:
    """Return the rank that an operation reads from or writes to; None if it stays within its own."""
    peers = [access.region.owner for access in op.accesses if access.region.owner != op.actor.rank]
    return peers[0] if peers else None


def signals(op: Op) -> bool:
    """Say whether an operation changes a cell of a peer."""
    return op.cell is not None and op.cell.owner != op.actor.rank


def pulls(op: Op) -> bool:
    """Say whether an operation that moves bytes brings them to its own rank."""
    target = op.accesses[-1]
    return target.mode == READ or target.region.owner == op.actor.rank
