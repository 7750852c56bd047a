"""The golden as an oracle: what the outputs would be if some inputs were others.

That works for every kernel with a golden, whatever it computes, and assumes nothing about how the
kernel does it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.machine.case import copied
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.case import Case

    Array = np.ndarray[Any, Any]

FEWEST, MOST = 16, 128
"""How many changes of one kind are tried, at least and at most."""
ELEMENTS = 1 << 22
"""Between the two, as many as have so many input elements together: a golden of large inputs may be slow."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """An output as plain numbers.

    Args:
        flat: all elements in row-major order: floating ones in double precision, integers as they are.
        shapes: of the arrays it is made of.
        dtype: the arrays' own; None if they differ.

    """

    flat: Array
    shapes: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any] | None

    @property
    def exact(self) -> bool:
        """Whether they are integers or booleans, which have no tolerance."""
        return self.flat.dtype.kind in "biu"


class Oracle:
    """Says what the golden makes of changed inputs, and remembers it.

    Args:
        case: whose golden is asked.

    """

    def __init__(self, case: Case) -> None:
        """Start with no answer."""
        self.case = case
        self.said: dict[tuple[Any, ...], str | None] = {}
        """What was said of wrong results before."""
        self._answers: dict[tuple[Any, ...], list[Any] | None] = {}
        self._numbers: dict[tuple[Any, ...], Numbers | None] = {}

    @cached_property
    def limit(self) -> int:
        """How many changes of one kind are tried."""
        elements = sum(part.size for x in self.case.inputs[0] for part in leaves(x) or ())
        return min(max(ELEMENTS // max(elements, 1), FEWEST), MOST)

    def golden(self, call: int, rank: int) -> Numbers | None:
        """Return what the output must be; None if there is no golden, or it is no number.

        Args:
            call: from 0.
            rank: from 0.

        """
        return self.given(call, rank, ("golden",), lambda: self.case.inputs[call])

    def given(
        self, call: int, rank: int, change: tuple[Any, ...], inputs: Callable[[], list[Any] | None]
    ) -> Numbers | None:
        """Return what the output would be; None if the golden does not take such inputs.

        Args:
            call: of which the inputs are changed.
            rank: whose output is asked for.
            change: names the change.
            inputs: makes the changed inputs of all ranks; None: they cannot be changed so.

        """
        key = (call, *change)
        if key not in self._answers:
            self._answers[key] = self._ask(call, inputs())
        answers = self._answers[key]
        if answers is None:
            return None
        place = (rank, *key)
        if place not in self._numbers:
            self._numbers[place] = numbers_of(answers[rank])
        return self._numbers[place]

    def _ask(self, call: int, xs: list[Any] | None) -> list[Any] | None:
        kernel = self.case.kernel
        if kernel.golden is None or xs is None:
            return None
        try:
            with np.errstate(all="ignore"):
                return kernel.make_goldens(copied(xs), call)
        except MisuseError:
            return None  # a golden need not take inputs that its author did not think of


def leaves(value: Any) -> list[Array] | None:  # noqa: ANN401 - an input or an output
    """Return the arrays that a value is made of; None if it holds anything that is no number."""
    if isinstance(value, list | tuple):
        parts = [leaves(part) for part in value]
        return None if None in parts else [leaf for part in parts for leaf in part or ()]
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return None
    array = np.asarray(value)
    return None if array.dtype.kind in "OUSmM" else [array]


def numbers_of(value: Any) -> Numbers | None:  # noqa: ANN401 - an output
    """Return an output as plain numbers; None if it is none, or empty."""
    arrays = leaves(value)
    if not arrays or not any(array.size for array in arrays):
        return None
    dtypes = {array.dtype for array in arrays}
    kinds = {array.dtype.kind for array in arrays}
    flat = np.concatenate([array.reshape(-1) for array in arrays]) if kinds <= set("biu") else _wide(arrays, kinds)
    return Numbers(flat, tuple(array.shape for array in arrays), dtypes.pop() if len(dtypes) == 1 else None)


def _wide(arrays: list[Array], kinds: set[str]) -> Array:
    wide = np.complex128 if "c" in kinds else np.float64
    return np.concatenate([array.reshape(-1).astype(wide) for array in arrays])


def each(x: Any, change: Callable[[Array], Array]) -> Any:  # noqa: ANN401 - an input
    """Change the arrays of an input; the integers among them only if it holds nothing else.

    Integers beside floating numbers are counts or offsets, and no share of the result.

    Args:
        x: an array, or nested lists and tuples of arrays; all else in it stays.
        change: gives a new array for an array.

    """
    kinds = {leaf.dtype.kind for leaf in leaves(x) or ()}
    counts = set("biu") if kinds - set("biu") else set()

    def changed(part: Any) -> Any:  # noqa: ANN401 - a part of an input
        if isinstance(part, list | tuple):
            parts = [changed(one) for one in part]
            return part._make(parts) if hasattr(part, "_make") else type(part)(parts)
        return change(part) if isinstance(part, np.ndarray) and part.dtype.kind not in counts else part

    return changed(x)
