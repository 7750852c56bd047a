"""The golden as an oracle: what the outputs would be if some inputs were others.

That works for every kernel with a golden, whatever it computes, and claims nothing about how the
kernel does it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.machine.case import copied
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.case import Case

    Array = np.ndarray[Any, Any]

FEWEST, MOST = 16, 300
"""How many other inputs of one kind are tried, at least and at most."""
ELEMENTS = 1 << 22
"""Between the two, as many as hold so many elements together: a golden may be slow on large inputs."""


class Oracle:
    """Answers what the golden makes of changed inputs; remembers its answers.

    Args:
        case: whose kernel has a golden.

    """

    def __init__(self, case: Case) -> None:
        """Start with no answer."""
        self.case = case
        self._answers: dict[tuple[Any, ...], list[Any] | None] = {}

    @cached_property
    def limit(self) -> int:
        """How many changes of one kind are worth trying: inputs of so many elements, no more."""
        elements = sum(part.size for x in self.case.inputs[0] for part in leaves(x) or ())
        return min(max(ELEMENTS // max(elements, 1), FEWEST), MOST)

    def golden(self, call: int, rank: int) -> Any:  # noqa: ANN401 - any output
        """Return what the output must be."""
        goldens = self.case.goldens
        return None if goldens is None else goldens[call][rank]

    def given(self, call: int, rank: int, change: tuple[Any, ...], inputs: Callable[[], list[Any] | None]) -> Any:  # noqa: ANN401
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
        return None if answers is None else answers[rank]

    def _ask(self, call: int, xs: list[Any] | None) -> list[Any] | None:
        if xs is None:
            return None
        try:
            with np.errstate(all="ignore"):
                return self.case.kernel.make_goldens(copied(xs), call)
        except MisuseError:
            return None  # a golden need not take inputs that the kernel's author did not think of


def leaves(value: Any) -> list[Array] | None:  # noqa: ANN401 - an input or an output
    """Return the arrays of a value; None if it holds anything that is no number."""
    if isinstance(value, list | tuple):
        parts = [leaves(part) for part in value]
        return None if any(part is None for part in parts) else [leaf for part in parts for leaf in part or ()]
    if value is None or isinstance(value, str):
        return None
    array = np.asarray(value)
    return None if array.dtype.kind in "OUSM" else [array]


def each(x: Any, change: Callable[[Array], Array]) -> Any:  # noqa: ANN401 - an input
    """Change the arrays of an input; the integers among them only if there is nothing else.

    Beside floating numbers integers are counts or offsets, which no data race touches.
    """
    numbers = leaves(x)
    counts = numbers is not None and any(leaf.dtype.kind not in "biu" for leaf in numbers)

    def changed(part: Any) -> Any:  # noqa: ANN401 - a part of an input
        if isinstance(part, list | tuple):
            parts = [changed(one) for one in part]
            return part._make(parts) if hasattr(part, "_make") else type(part)(parts)
        if not isinstance(part, np.ndarray) or (counts and part.dtype.kind in "biu"):
            return part
        return change(part)

    return changed(x)
