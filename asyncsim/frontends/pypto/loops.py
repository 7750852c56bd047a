"""Loops of the dialect, with values that are carried from one pass to the next; and what a kernel knows of itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.pypto.places import integer
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.guest.host import present

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class Frame:
    """What is kept of a kernel that runs.

    Args:
        extents: the dynamic ones that its arguments settle, by name.
        loops: those under way that carry values, the innermost last.

    """

    extents: dict[str, int] = field(default_factory=dict)
    loops: list[Carrying] = field(default_factory=list)


class Carrying:
    """A loop that carries values: each pass gets its number and what the pass before has yielded."""

    def __init__(self, numbers: range, values: tuple[Any, ...]) -> None:
        """Begin with these values."""
        self._numbers = numbers
        self._count = len(values)
        self.values = values

    def __iter__(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Give the number and the values of each pass."""
        loops = _loops()
        loops.append(self)
        try:
            for number in self._numbers:
                if len(self.values) != self._count:
                    raise refused(
                        f"the loop carries {self._count} values, init_values=(...), and its last pl.yield_ hands on "
                        f"{len(self.values)}; hand on as many"
                    )
                yield number, self.values
        finally:
            loops.remove(self)


def _loops() -> list[Carrying]:
    frame = present()
    if not isinstance(frame, Frame):
        raise refused(
            "pl.range(init_values=...) and pl.yield_ belong into a kernel; the host function loops over ranks"
        )
    return frame.loops


def count(*bounds: Any, init_values: Any = None, **_: Any) -> Any:  # noqa: ANN401 - checked here
    """Return the numbers from a start to a stop: ``pl.range``.

    Args:
        bounds: a stop; a start and a stop; or these and a step.
        init_values: what the first pass gets beside its number, as a tuple; `carry` says what the next one gets.

    Raises:
        RefusedError: they are more or fewer, or not integers.

    """
    if not 1 <= len(bounds) <= 3:  # noqa: PLR2004 - stop; start, stop; start, stop, step
        raise refused(f"pl.range takes a stop, a start and a stop, or these and a step; got {len(bounds)} numbers")
    numbers = range(*(integer("pl.range", "bound", bound) for bound in bounds))
    if init_values is None:
        return numbers
    if not isinstance(init_values, tuple | list):
        raise refused("pl.range takes init_values as a tuple: for i, (acc,) in pl.range(4, init_values=(start,))")
    return Carrying(numbers, tuple(init_values))


def carry(*values: Any) -> Any:  # noqa: ANN401 - whatever the author carries
    """Hand values to the next pass of the innermost loop that carries some, and return them: ``pl.yield_``.

    Args:
        values: as many as the loop carries; in a branch of an ``if`` before that, others.

    """
    loops = _loops()
    if loops:
        loops[-1].values = values
    return values[0] if len(values) == 1 else values


@contextmanager
def inline(*_: object, **__: object) -> Iterator[None]:
    """Run a block where it stands: ``with pl.at(level=pl.Level.CORE_GROUP):``, ``with pl.incore():``."""
    yield
