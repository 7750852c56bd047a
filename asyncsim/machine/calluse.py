"""What a kernel does with the number of its call: for saying whether later calls will be as these were.

Two uses are harmless: modulo a constant (a buffer that takes turns), and as a threshold that grows.
A kernel that compares the number, or asks whether it is zero, may do something else in a call that
nobody has run.
"""

from __future__ import annotations

from math import lcm
from typing import Any


class CallUse:
    """What was done with the numbers of a run's calls.

    Attributes:
        modulus: of all that the numbers were taken modulo, the least common multiple.
        otherwise: whether they were used in a way from which later calls cannot be foreseen.

    """

    def __init__(self) -> None:
        """Start unused."""
        self.modulus = 1
        self.otherwise = False

    def number(self, call: int) -> CallNumber:
        """Return the number of a call, which tells of its use."""
        made = CallNumber(call)
        made.use = self
        return made

    def repeats_after(self, period: int) -> bool:
        """Say whether a kernel that used its numbers so does after `period` calls what it did before."""
        return not self.otherwise and period % self.modulus == 0


class CallNumber(int):
    """An integer like every other, which tells of its use."""

    use: CallUse

    def _like(self, value: Any) -> Any:  # noqa: ANN401 - what int's own operator gave
        """Return a number that grows with the call: that is one, too."""
        if value.__class__ is int:
            return self.use.number(value)
        self._otherwise()  # a float would not tell what becomes of it
        return value

    def _otherwise(self) -> None:
        self.use.otherwise = True

    def __mod__(self, other: int) -> int:
        """Note what it is taken modulo."""
        if isinstance(other, int) and other > 0 and not isinstance(other, CallNumber):
            self.use.modulus = lcm(self.use.modulus, int(other))
        else:
            self._otherwise()
        return int.__mod__(self, other)

    def __and__(self, other: int) -> int:
        """Note what it is taken modulo, by a mask."""
        mask = isinstance(other, int) and other > 0 and other & (other + 1) == 0
        if mask:
            self.use.modulus = lcm(self.use.modulus, other + 1)
        else:
            self._otherwise()
        return int.__and__(self, other)

    def __add__(self, other: int) -> Any:  # noqa: ANN401 - a number that grows with the call
        """Stay a number that grows with the call."""
        return self._like(int.__add__(self, other))

    def __sub__(self, other: int) -> Any:  # noqa: ANN401 - as above
        """Stay a number that grows with the call."""
        return self._like(int.__sub__(self, other))

    def __mul__(self, other: int) -> Any:  # noqa: ANN401 - as above
        """Stay a number that grows with the call."""
        return self._like(int.__mul__(self, other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __hash__(self) -> int:
        """Be a key of a table: one whose later rows nobody has seen."""
        self._otherwise()
        return int.__hash__(self)


def _noting(name: str) -> Any:  # noqa: ANN401 - a method
    plain = getattr(int, name)

    def method(self: CallNumber, *others: Any) -> Any:  # noqa: ANN401 - int's own
        self.use.otherwise = True
        return plain(self, *others)

    method.__doc__ = plain.__doc__
    return method


for _name in (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__", "__divmod__", "__floordiv__", "__truediv__",
    "__pow__", "__neg__", "__invert__", "__or__", "__xor__", "__lshift__", "__rshift__", "__rsub__", "__rmod__",
    "__rfloordiv__", "__rtruediv__", "__rpow__", "__rand__", "__ror__", "__rxor__", "__float__", "bit_length",
):  # fmt: skip
    setattr(CallNumber, _name, _noting(_name))
