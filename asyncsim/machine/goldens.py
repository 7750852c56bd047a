"""Goldens of kernels whose order is free: several right results, or a predicate that accepts them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.digest import check_nesting
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.guest import call as author_call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Results = list[Any]
    """One output a rank."""

MOST = 10_000
"""So many right results of one call are compared one by one; more are a predicate's business."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class AnyOf:
    """Several right results: what all ranks return in a call must be one of them, whichever it is.

    A result is that of all ranks together: rank 0's from the one and rank 1's from another is wrong. Of one golden
    alone, ``AnyOf(sums)``, it says that other bits within the tolerance are right, too: a sum whose order is left to
    atomics.

    Args:
        goldens: each gives, for the inputs of all ranks, one right output a rank.
        several: gives, for the inputs of all ranks, any number of right results, each with one output a rank.

    Raises:
        MisuseError: there is none, or one of them cannot be called.

    """

    goldens: tuple[Callable[[Any], Iterable[Any]], ...]
    several: Callable[[Any], Iterable[Iterable[Any]]] | None

    def __init__(
        self,
        *goldens: Callable[[Any], Iterable[Any]],
        several: Callable[[Any], Iterable[Iterable[Any]]] | None = None,
    ) -> None:
        if not goldens and several is None:
            raise MisuseError("AnyOf() has no right result; give it goldens, or several=")
        for golden in (*goldens, *(() if several is None else (several,))):
            if not callable(golden):
                raise MisuseError(f"AnyOf: {golden!r} is not a function; give functions of the inputs of all ranks")
        object.__setattr__(self, "goldens", goldens)
        object.__setattr__(self, "several", several)

    def results(self, kernel: str, xs: Sequence[Any], call: int) -> list[Results]:
        """Return the right results for these inputs.

        Args:
            kernel: its name, for messages.
            xs: the input of each rank, by rank.
            call: from 0, for messages.

        Raises:
            MisuseError: a function raised, gave not one output a rank, no result at all, or too many.

        """
        made = []
        for golden in self.goldens:
            which = f"golden {named(golden)}" if len(self.goldens) > 1 else "golden"
            outputs = author_call(f"{kernel}: {which}, for call {call},", _listed, golden, xs)
            made.append(_one_a_rank(f"{kernel}:", which, call, outputs, len(xs)))
        if self.several is not None:
            which = f"golden's several={named(self.several)}"
            results = author_call(f"{kernel}: {which}, for call {call},", _lists, self.several, xs)
            if not results:
                raise MisuseError(f"{kernel}: {which} gave no right result for call {call}")
            if len(results) > MOST:
                raise MisuseError(
                    f"{kernel}: {which} gave more than {MOST} right results; say what makes them right: Predicate(...)"
                )
            made += [_one_a_rank(f"{kernel}:", which, call, outputs, len(xs)) for outputs in results]
        return made

    @property
    def rule(self) -> str:
        """What makes a result right, in words."""
        one = "within the tolerance of the golden, in whatever bits" if len(self.goldens) == 1 else ""
        known = one or f"one of {len(self.goldens)} right results"
        return known if self.several is None else f"one of those that {named(self.several)} gives"


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """What makes the results of a call right: a predicate of all ranks' inputs and all ranks' results.

    It is asked of calls that every rank completes, and must answer alike for the same inputs and results.

    Args:
        accepts: ``accepts(xs, ys) -> bool``: the inputs and the results of all ranks, two lists by rank.

    Raises:
        MisuseError: it is not a function.

    """

    accepts: Callable[[Any, Any], bool]

    def __post_init__(self) -> None:
        if not callable(self.accepts):
            raise MisuseError(f"Predicate({self.accepts!r}): give a function of all inputs and all results")

    def holds(self, what: str, xs: Sequence[Any], ys: Sequence[Any]) -> bool:
        """Return whether the results of a call are right.

        Args:
            what: names the kernel and the call, for messages.
            xs: the input of each rank; the predicate may keep or change it.
            ys: the result of each rank, likewise.

        Raises:
            MisuseError: the predicate raised, or gave something else than True or False.

        """
        answer = author_call(f"{what}: the predicate {self}", self.accepts, xs, ys)
        if not isinstance(answer, bool | np.bool_):
            raise MisuseError(
                f"{what}: the predicate {self} gave {type(answer).__name__} {str(answer)[:60]}; it must give True or "
                "False (of an array: its .all())"
            )
        return bool(answer)

    @property
    def rule(self) -> str:
        """What makes the results right, in words."""
        return f"what the predicate {self} accepts"

    def __str__(self) -> str:
        return named(self.accepts)


def named(function: Callable[..., Any]) -> str:
    """Return what a function of the author's is called, and the line it stands on: ``agree (union.py:31)``."""
    name = getattr(function, "__name__", type(function).__name__)
    code = getattr(function, "__code__", None)
    shown = "lambda" if name == "<lambda>" else name
    return shown if code is None else f"{shown} ({Path(code.co_filename).name}:{code.co_firstlineno})"


def _one_a_rank(kernel: str, which: str, call: int, made: list[Any], ranks: int) -> Results:
    """Return what a golden gave as arrays, if it is one output a rank, and none is nested too deep."""
    if len(made) != ranks:
        raise MisuseError(f"{kernel} {which} gave {len(made)} outputs for {ranks} ranks; give one a rank")
    for rank, y in enumerate(made):
        check_nesting(y, f"{kernel} what {which} gave rank {rank} (call {call})")
    plain: Results = author_call(f"{kernel} what {which} gave for call {call}", _plain, made)
    return plain


def _listed(golden: Callable[[Any], Iterable[Any]], xs: Sequence[Any]) -> list[Any]:
    return list(golden(xs))


def _lists(several: Callable[[Any], Iterable[Iterable[Any]]], xs: Sequence[Any]) -> list[list[Any]]:
    return [list(result) for result in islice(several(xs), MOST + 1)]


def _plain(value: Any) -> Any:  # noqa: ANN401 - what a golden gave
    """Return an array for what can be made one: whatever it takes to make it is done here, once."""
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value] if type(value) in (list, tuple) else value
    return value if value is None or isinstance(value, str | np.ndarray | np.generic) else np.asarray(value)
