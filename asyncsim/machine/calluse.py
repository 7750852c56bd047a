"""What a kernel does with the number of its call: for saying whether later calls will be as these were.

Two uses are harmless: modulo a constant (a buffer that takes turns), and as a threshold that grows by a
constant. Whatever else a kernel does with it, it may do something else in a call that nobody has run.
"""

from __future__ import annotations

import operator
from math import lcm
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class CallUse:
    """What was done with the numbers of a run's calls.

    Attributes:
        modulus: of all that the numbers were taken modulo, the least common multiple.
        otherwise: whether they were used in a way from which later calls cannot be foreseen.

    """

    def __init__(self) -> None:
        self.modulus = 1
        self.otherwise = False

    def number(self, call: int) -> CallNumber:
        """Return the number of a call, which tells of its use."""
        return CallNumber(call, self)

    def repeats_after(self, period: int) -> bool:
        """Say whether a kernel that used its numbers so does after `period` calls what it did before."""
        return not self.otherwise and period % self.modulus == 0


class CallNumber:
    """A number that tells of its use. No `int`: lists, ranges and texts ask an `int` for nothing.

    What it cannot do makes its kernel raise in the run that hands it out; then nothing is said of later
    calls. What is compared with a cell, or added to one, it gives by `as_threshold`.
    """

    __slots__ = ("_call", "_use")
    __array_ufunc__ = None

    def __init__(self, call: int, use: CallUse) -> None:
        self._call = call
        self._use = use

    def as_threshold(self) -> int:
        """Return the number, to be waited for or added."""
        return self._call

    @property  # type: ignore[misc]  # what is read here is never written
    def __class__(self) -> type:  # `isinstance` asks for it: is this an int?
        """Note that somebody asks what it is, and may do otherwise where it is a plain number."""
        self._use.otherwise = True
        return CallNumber

    def __reduce_ex__(self, _: object) -> tuple[type[int], tuple[int]]:
        """Be a plain number where it is copied or written down."""
        return int, (self._otherwise(),)

    def _otherwise(self) -> int:
        self._use.otherwise = True
        return self._call

    def _grown(self, how: Callable[[int, int], int], other: Any) -> Any:  # noqa: ANN401 - as the operator takes and gives
        """Return what grows by a constant from call to call; anything else is noted, and plain."""
        if type(other) is int:
            return CallNumber(how(self._call, other), self._use)
        return how(self._otherwise(), other)

    def __add__(self, other: Any) -> Any:  # noqa: ANN401 - as the operator takes and gives
        return self._grown(operator.add, other)

    def __sub__(self, other: Any) -> Any:  # noqa: ANN401 - as above
        return self._grown(operator.sub, other)

    def __mul__(self, other: Any) -> Any:  # noqa: ANN401 - as above
        return self._grown(operator.mul, other)

    __radd__ = __add__
    __rmul__ = __mul__

    def __mod__(self, other: Any) -> Any:  # noqa: ANN401 - as above
        """Note what it is taken modulo."""
        if type(other) is int and other > 0:
            self._use.modulus = lcm(self._use.modulus, other)
            return self._call % other
        return self._otherwise() % other

    def __and__(self, other: Any) -> Any:  # noqa: ANN401 - as above
        """Note what it is taken modulo, by a mask."""
        if type(other) is int and other > 0 and other & (other + 1) == 0:
            return self % (other + 1)
        return self._otherwise() & other

    def __hash__(self) -> int:
        """Be a key of a table, one whose later rows nobody has seen."""
        return hash(self._otherwise())


def _noting(how: Callable[..., Any], *, reversed_: bool = False) -> Callable[..., Any]:
    """Return a method that notes its use, and does what it does to a plain number."""

    def method(self: CallNumber, *others: Any) -> Any:  # noqa: ANN401 - as the operator takes and gives
        plain = self._otherwise()
        return how(*others, plain) if reversed_ else how(plain, *others)

    return method


_PLAIN: dict[str, Callable[..., Any]] = {
    "__eq__": operator.eq, "__ne__": operator.ne, "__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt,
    "__ge__": operator.ge, "__bool__": bool, "__int__": int, "__index__": int, "__float__": float, "__str__": str,
    "__repr__": repr, "__format__": format, "__abs__": abs, "__neg__": operator.neg, "__pos__": operator.pos,
    "__invert__": operator.invert, "__round__": round, "__divmod__": divmod, "__floordiv__": operator.floordiv,
    "__truediv__": operator.truediv, "__pow__": pow, "__or__": operator.or_, "__xor__": operator.xor,
    "__lshift__": operator.lshift, "__rshift__": operator.rshift,
}  # fmt: skip
_REVERSED: dict[str, Callable[..., Any]] = {
    "__rsub__": operator.sub, "__rmod__": operator.mod, "__rfloordiv__": operator.floordiv, "__rpow__": pow,
    "__rtruediv__": operator.truediv, "__rand__": operator.and_, "__ror__": operator.or_, "__rxor__": operator.xor,
    "__rlshift__": operator.lshift, "__rrshift__": operator.rshift, "__rdivmod__": divmod,
}  # fmt: skip
for _name, _how in _PLAIN.items():
    setattr(CallNumber, _name, _noting(_how))
for _name, _how in _REVERSED.items():
    setattr(CallNumber, _name, _noting(_how, reversed_=True))
