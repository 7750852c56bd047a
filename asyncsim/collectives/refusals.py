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

    Args:
        name: of the collective, for the message.
        target: what was given for it.

    Raises:
        TypeError: it is none.

    """
    if not isinstance(target, WindowView):
        raise TypeError(f"{name} expects a DistributedTensor target (window-bound); got {type(target).__name__}")


def check_rows(name: str, target: WindowView, rank: Rank) -> None:
    """Refuse a target that does not have one row a rank.

    Args:
        name: of the collective, for the message.
        target: of shape (P, size), if it is right.
        rank: the caller; its `size` is P.

    Raises:
        TypeError: the target is no window.
        RefusedError: it does not have two dimensions, or not P rows.

    """
    check_target(name, target)
    if len(target.shape) != _MATRIX:
        raise RefusedError(f"{name} target must be 2D [NR, SIZE], got {len(target.shape)} dims")
    if target.shape[0] != rank.size:
        raise RefusedError(f"{name} target must have one row a rank: NR = {rank.size}, got {target.shape[0]} rows")


def check_signal(name: str, signal: SignalView, rank: Rank) -> None:
    """Refuse a signal without one cell a rank.

    Args:
        name: of the collective, for the message.
        signal: of shape (P, 1) and INT32, if it is right.
        rank: the caller; its `size` is P.

    Raises:
        TypeError: it is no signal.
        RefusedError: it has another shape or dtype.

    """
    check_signal_shape(name, signal, "[NR, 1]")
    rows, columns = signal.shape
    if (rows, columns) != (rank.size, 1):
        raise RefusedError(f"{name} signal must be [NR, 1] = [{rank.size}, 1], got [{rows}, {columns}]")
    check_signal_dtype(name, signal)


def check_signal_shape(name: str, signal: SignalView, shape: str) -> None:
    """Refuse a signal that is none, or not of two dimensions; `shape` says what it should be.

    Args:
        name: of the collective, for the message.
        signal: what was given for it.
        shape: as the message shows it, such as ``[NR, 1]``.

    Raises:
        TypeError: it is no signal.
        RefusedError: it does not have two dimensions.

    """
    if not isinstance(signal, SignalView):
        raise TypeError(f"{name} expects a signal of shape {shape}; got {type(signal).__name__}")
    if len(signal.shape) != _MATRIX:
        raise RefusedError(f"{name} signal must be 2D {shape}, got rank {len(signal.shape)}")


def check_signal_dtype(name: str, signal: SignalView) -> None:
    """Refuse a signal (of two dimensions, not empty) that does not count in 32 bits.

    Args:
        name: of the collective, for the message.
        signal: its first cell is looked at.

    Raises:
        RefusedError: its cells hold another number of bits.

    """
    high = signal[0, 0].high
    if high != _INT32:
        raise RefusedError(f"{name} signal must have INT32 element type, got dtype INT{high.bit_length() + 1}")


def check_counts(name: str, counts: Sequence[int], which: str, capacity: int, rank: Rank) -> None:
    """Refuse counts that are not one a rank, or that do not fit a row of `capacity` elements.

    Args:
        name: of the collective, for the message.
        counts: in elements, one a rank.
        which: the name of the argument, for the message.
        capacity: how many elements a row has.
        rank: the caller; its `size` is P.

    Raises:
        RefusedError: there are more or fewer than P, or one is below 0 or above `capacity`.

    """
    if len(counts) != rank.size:
        raise RefusedError(f"{name} {which} must have one count a rank: NR = {rank.size}, got {len(counts)}")
    for peer, count in enumerate(counts):
        if not 0 <= count <= capacity:
            raise RefusedError(f"{name} {which}[{peer}] must be within a row, 0 to {capacity}, got {count}")
