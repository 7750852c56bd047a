"""Litmus tests: tiny programs that say what each memory model allows, and their table.

They are the definition of the models in examples; `test_litmus` makes every run of every one of them on
the machine.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from late_toy import ELEMENTS, Program, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from late_brute import Final

MODELS = ("sc", "ldst", "nic")


@dataclass(frozen=True, slots=True)
class Litmus:
    """A program and an outcome that some model may allow.

    Args:
        name: the classical name, if it has one.
        text: the program, for `parse`.
        outcome: in words.
        shown: whether an end shows it.
        allowed: by which models.
        elements: who owns what.

    """

    name: str
    text: str
    outcome: str
    shown: Callable[[Final], bool]
    _: KW_ONLY
    allowed: tuple[str, ...] = ()
    elements: tuple[int, ...] = (1,)

    @property
    def program(self) -> Program:
        """The program."""
        return parse(self.text, elements=self.elements)

    @property
    def row(self) -> str:
        """The line of the table."""
        text = self.text.strip().removesuffix("||").strip().replace("||", "‖").replace("|", "\\|")
        homes = ", ".join(f"{ELEMENTS[n]}@{owner}" for n, owner in enumerate(self.elements))
        verdicts = " | ".join("possible" if model in self.allowed else "never" for model in MODELS)
        return f"| {self.name} | `{text}` | {homes} | {self.outcome} | {verdicts} |"


def _stale(rank: int) -> Callable[[Final], bool]:
    """Say whether the last load of an actor gave what was there at the start."""
    return lambda end: end.loaded[rank][-1] == 0


def _new_then_old(end: Final) -> bool:
    first, second = end.loaded[1]
    return first is not None and second is not None and first > second


LATE, NIC = ("ldst", "nic"), ("nic",)

LITMUS = (
    Litmus("message passing", "st x; c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1)),
    Litmus(
        "… relaxed notify", "st x; relaxed c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1), allowed=LATE,
    ),
    Litmus("… with a fence", "st x; fence; relaxed c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1)),
    Litmus(
        "… fence, data at a third rank", "st x; fence; relaxed c += 1 || wait c >= 1; ld x || ", "the load is stale",
        _stale(1), allowed=LATE, elements=(2,),
    ),
    Litmus(
        "… quiet, data at a third rank", "st x; quiet; relaxed c += 1 || wait c >= 1; ld x || ", "the load is stale",
        _stale(1), elements=(2,),
    ),
    Litmus("… local store", "st x; c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1), elements=(0,)),
    Litmus(
        "… flag in data", "st x; st y || ld y; ld x", "new y, old x",
        lambda end: bool(end.loaded[1][0]) and end.loaded[1][1] == 0, allowed=LATE, elements=(1, 1),
    ),
    Litmus("put with signal", "st x, c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1)),
    Litmus(
        "two puts, one signal", "st x; st y, c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1),
        allowed=LATE, elements=(1, 1),
    ),
    Litmus(
        "two puts with signal", "st x, c += 1; st y, c += 1 || wait c >= 1; ld x", "the load is stale", _stale(1),
        allowed=LATE, elements=(1, 1),
    ),
    Litmus(
        "… both awaited", "st x, c += 1; st y, c += 1 || wait c >= 2; ld x", "the load is stale", _stale(1),
        elements=(1, 1),
    ),
    Litmus(
        "store buffering", "st x; ld y || st y; ld x", "both loads are stale",
        lambda end: end.loaded == ((0,), (0,)), allowed=LATE, elements=(1, 0),
    ),
    Litmus(
        "… local stores", "st x; ld y || st y; ld x", "both loads are stale",
        lambda end: end.loaded == ((0,), (0,)), allowed=LATE, elements=(0, 1),
    ),
    Litmus(
        "… with quiet", "st x; quiet; ld y || st y; quiet; ld x", "both loads are stale",
        lambda end: end.loaded == ((0,), (0,)), elements=(1, 0),
    ),
    Litmus(
        "load buffering", "ld x; st y || ld y; st x", "both loads are new",
        lambda end: all(loaded[0] for loaded in end.loaded), elements=(0, 1),
    ),
    Litmus(
        "coherence, read-read", "st x; st x || ld x; ld x", "the later value, then the earlier", _new_then_old,
        allowed=NIC,
    ),
    Litmus(
        "coherence, write-write", "st x; st x || ", "the earlier value stays",
        lambda end: end.memory == (1 << 24,), allowed=NIC,
    ),
    Litmus("… with a fence", "st x; fence; st x || ", "the earlier value stays", lambda end: end.memory == (1 << 24,)),
    Litmus("own put, own load", "st x; ld x || ", "the load is stale", _stale(0), allowed=NIC),
    Litmus(
        "own local store, other stream", "st x; start 1; join 1 | ld x", "the load is stale", _stale(1), elements=(0,),
    ),
    Litmus(
        "own put, other stream", "st x; start 1; join 1 | ld x || ", "the load is stale", _stale(1), allowed=LATE,
    ),
    Litmus(
        "two Sets, relaxed", "relaxed c := 1; relaxed c := 2 || wait c >= 2", "waits for ever",
        lambda end: end.positions[1] == 0, allowed=NIC, elements=(),
    ),
    Litmus(
        "two Sets", "c := 1; c := 2 || wait c >= 2", "waits for ever", lambda end: end.positions[1] == 0, elements=(),
    ),
    Litmus(
        "write-to-read causality", "st x || ld x; st y || ld y; ld x", "new x at rank 1; new y, old x at rank 2",
        lambda end: bool(end.loaded[1][0]) and bool(end.loaded[2][0]) and end.loaded[2][1] == 0, elements=(0, 2),
    ),
    Litmus(
        "source of a non-blocking put", "y <~ x; st x; c += 1 || wait c >= 1; ld y", "what was stored later arrives",
        lambda end: bool(end.loaded[1][0]), allowed=LATE, elements=(0, 1),
    ),
    Litmus(
        "source of a blocking put", "y <- x; st x; c += 1 || wait c >= 1; ld y", "what was stored later arrives",
        lambda end: bool(end.loaded[1][0]), elements=(0, 1),
    ),
    Litmus(
        "non-blocking get, then a store", "x <~ y; fence; st x; quiet; ld x || ", "the store is lost",
        _stale(0), allowed=LATE, elements=(0, 1),
    ),
    Litmus("… with quiet", "x <~ y; quiet; st x; quiet; ld x || ", "the store is lost", _stale(0), elements=(0, 1)),
    Litmus(
        "source of a non-blocking get", "x <~ y; c += 1 || wait c >= 1; st y", "what was stored later is got",
        lambda end: end.memory[0] != 0, allowed=NIC, elements=(0, 1),
    ),
    Litmus(
        "own local store, later get", "st x; x <~ y; quiet; ld x || ", "the store stays",
        lambda end: end.loaded[0] != (0,), elements=(0, 1),
    ),
    Litmus(
        "… by another stream", "st x; start 1; join 1; ld x | x <~ y; quiet || ", "the store stays",
        lambda end: end.loaded[0] != (0,), elements=(0, 1),
    ),
    Litmus(
        "own local store, later atomic add", "st x; ad x", "the add is lost", lambda end: end.memory == (1 << 24,),
        elements=(0,),
    ),
    Litmus("put to oneself", "put x; ld x", "the load is stale", _stale(0), allowed=NIC, elements=(0,)),
    Litmus("… with quiet", "put x; quiet; ld x", "the load is stale", _stale(0), elements=(0,)),
    Litmus(
        "put with signal to oneself", "st y; put x <~ y, c += 1; wait c >= 1; ld x", "the load is stale", _stale(0),
        elements=(0, 0),
    ),
    Litmus(
        "put and notify to oneself", "st y; put x <~ y; c += 1; wait c >= 1; ld x", "the load is stale", _stale(0),
        elements=(0, 0),
    ),
    Litmus(
        "… relaxed notify", "st y; put x <~ y; relaxed c += 1; wait c >= 1; ld x", "the load is stale", _stale(0),
        allowed=LATE, elements=(0, 0),
    ),
    Litmus(
        "quiet after another stream's put", "start 1; join 1; quiet; relaxed c += 1 | put x || wait c >= 1; ld x",
        "the load is stale", _stale(2), allowed=LATE,
    ),
    Litmus(
        "… quiet of the rank", "start 1; join 1; quiet rank; relaxed c += 1 | put x || wait c >= 1; ld x",
        "the load is stale", _stale(2),
    ),
    Litmus(
        "meeting that completes no put", "put x; st y; stores c += 1 || wait c >= 1; ld x", "the load is stale",
        _stale(1), allowed=LATE, elements=(1, 0),
    ),
    Litmus(
        "… the store", "put x; st y; stores c += 1 || wait c >= 1; ld y", "the load is stale", _stale(1),
        elements=(1, 0),
    ),
)  # fmt: skip


def table() -> str:
    """Return the table as Markdown."""
    head = f"| test | program | homes | outcome | {' | '.join(MODELS)} |"
    return "\n".join((head, "|---|---|---|---|" + "---|" * len(MODELS), *(litmus.row for litmus in LITMUS)))
