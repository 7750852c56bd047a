"""What a composite refuses before it does anything.

Where upstream refuses too, in its words (PyPTO's distributed dialect); where it leaves a mistake
unchecked, in words of the same kind that say what would be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.collectives.reduce import ReduceOp
from asyncsim.trace.errors import RefusedError
from asyncsim.trace.world import SignalView, WindowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.rank import Rank

LOWERED = (ReduceOp.Sum, ReduceOp.Max, ReduceOp.Min, ReduceOp.Prod)
"""The operators that upstream lowers for an all-reduce."""
_INT32 = (1 << 31) - 1
_MATRIX = 2


def shown_op(op: object) -> str:
    """Write an operator as upstream does, by its number; what is none, as it is."""
    return f"int {int(op)}" if isinstance(op, int) else repr(op)


def check_target(name: str, target: object) -> None:
    """Refuse a target that is no window.

    Raises:
        TypeError: it is none.

    """
    if not isinstance(target, WindowView):
        raise TypeError(f"{name} expects a DistributedTensor target (window-bound); got {type(target).__name__}")


def check_rows(name: str, target: WindowView, rank: Rank) -> None:
    """Refuse a target that does not have one row a rank."""
    check_target(name, target)
    if len(target.shape) != _MATRIX:
        raise RefusedError(f"{name} target must be 2D [NR, SIZE], got {len(target.shape)} dims")
    if target.shape[0] != rank.size:
        raise RefusedError(f"{name} target must have one row a rank: NR = {rank.size}, got {target.shape[0]} rows")


def check_signal(name: str, signal: SignalView, rank: Rank) -> None:
    """Refuse a signal without one cell a rank."""
    check_signal_shape(name, signal, "[NR, 1]")
    rows, columns = signal.shape
    if (rows, columns) != (rank.size, 1):
        raise RefusedError(f"{name} signal must be [NR, 1] = [{rank.size}, 1], got [{rows}, {columns}]")
    check_signal_dtype(name, signal)


def check_signal_shape(name: str, signal: SignalView, shape: str) -> None:
    """Refuse a signal that is none, or not of two dimensions; `shape` says what it should be."""
    if not isinstance(signal, SignalView):
        raise TypeError(f"{name} expects a signal of shape {shape}; got {type(signal).__name__}")
    if len(signal.shape) != _MATRIX:
        raise RefusedError(f"{name} signal must be 2D {shape}, got rank {len(signal.shape)}")


def check_signal_dtype(name: str, signal: SignalView) -> None:
    """Refuse a signal (of two dimensions, not empty) that does not count in 32 bits."""
    high = signal[0, 0].high
    if high != _INT32:
        raise RefusedError(f"{name} signal must have INT32 element type, got dtype INT{high.bit_length() + 1}")


def check_counts(name: str, counts: Sequence[int], which: str, capacity: int, rank: Rank) -> None:
    """Refuse counts that are not one a rank, or that do not fit a row of `capacity` elements."""
    if len(counts) != rank.size:
        raise RefusedError(f"{name} {which} must have one count a rank: NR = {rank.size}, got {len(counts)}")
    for peer, count in enumerate(counts):
        if not 0 <= count <= capacity:
            raise RefusedError(f"{name} {which}[{peer}] must be within a row, 0 to {capacity}, got {count}")
