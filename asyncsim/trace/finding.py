"""Findings: what is wrong with a kernel, as data; and what a known-bad kernel is expected to give."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.fields import COUNT, FLAG, TEXT, Field, Object, choice, list_of, nullable

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.trace.event import Event

PROVED, EXHAUSTED, SURVIVED, REFUTED = "PROVED", "EXHAUSTED", "SURVIVED", "REFUTED"
VERDICTS = (PROVED, EXHAUSTED, SURVIVED, REFUTED)
"""The words of a verdict, the strongest first."""

RACE, SUM, ATOMIC = "race", "order-dependent-sum", "order-dependent-atomic"
KINDS = (
    RACE, "signal-race", "unstable-wait", "deadlock", "unwritten-read", SUM, ATOMIC, "overflow",
    "wrong-result", "ranks-differ", "call-mismatch", "leftover-credit", "hidden-state", "step-limit",
)  # fmt: skip
HAZARDS = ("RAW", "WAR", "WAW")
SAME_CALL, NEXT_CALL = "same call", "next call"

_ANY: dict[str, Any] = {"default": None, "kept": True}
SIDE = Object(
    "a side",
    (
        Field("rank", COUNT, "whose operation it is"),
        Field("actor", TEXT, "who does it"),
        Field("call", COUNT, "of the kernel, from 0"),
        Field("phase", nullable(TEXT), "the path of phases", source=lambda side: side.phase or None, **_ANY),
        Field("op", TEXT, "what is done"),
        Field("region", TEXT, "where"),
        Field("file", nullable(TEXT), "of the source", **_ANY),
        Field("line", nullable(COUNT), "in it", **_ANY),
        Field("composite", nullable(TEXT), "the line inside a composite, with its file", default=None),
    ),
    more=True,
)
FINDING = Object(
    "a finding",
    (
        Field("kind", choice(*KINDS), "what is wrong"),
        Field("hazard", nullable(choice(*HAZARDS)), "of a race: RAW, WAR or WAW", **_ANY),
        Field("scope", nullable(TEXT), "same call, or next call", **_ANY),
        Field("window", nullable(TEXT), "the window or signal that it is about", **_ANY),
        Field("pairs", COUNT, "how many pairs of operations are the same but for rank and element"),
        Field("harmful", nullable(FLAG), "whether it was shown to do harm; null: not decided", **_ANY),
        Field(
            "sides", list_of(SIDE.type(), "a side"), "the operations", default=(), kept=True,
            source=lambda found: [side.to_json() for side in found.sides],
        ),
        Field("trace", nullable(TEXT), "the file of the witness", **_ANY),
        Field("token", nullable(TEXT), "the witness as a token", **_ANY),
        Field("why", TEXT, "the sentence that explains it"),
        Field("shown", nullable(TEXT), "what the witness showed", source=lambda found: found.shown or None, **_ANY),
    ),
    more=True,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Side:
    """One of the accesses of a finding: who, in which call and phase, what, and from which line.

    `actor` and `index` say which operation of which stream it is (the index counts from 0 within
    the actor's own operations, over all calls); they locate it in any run that gets so far.
    """

    actor: str
    index: int
    rank: int
    call: int
    phase: str
    op: str
    region: str
    at: tuple[str, ...]

    @classmethod
    def of(cls, event: Event, index: int, region: str | None = None) -> Side:
        """Describe an event; `region` names the overlapping one where an operation has two.

        Args:
            event: the step, or the pending operation.
            index: its place in its actor's stream, from 0.
            region: as text; None: the cell, else the first region.

        """
        op = event.op
        place = region or str(op.cell or (op.accesses[0].region if op.accesses else op.link))
        actor = op.actor
        return cls(actor.name, index, actor.rank, event.call, event.phase, op.kind, place, event.at)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this side."""
        file, _, line = (self.at[0] if self.at else "").rpartition(":")
        inner = self.at[1] if len(self.at) > 1 else None
        return SIDE.write(self, file=file or None, line=int(line) if line else None, composite=inner)

    @classmethod
    def of_json(cls, made: dict[str, Any]) -> Side:
        """Return the side that `to_json` wrote, as `SIDE` reads it. Where it stands in its stream is not known."""
        file, line, inner = made.pop("file"), made.pop("line"), made.pop("composite")
        at = () if file is None else (file if line is None else f"{file}:{line}",)
        return cls(**{**made, "phase": made["phase"] or "", "index": -1, "at": at if inner is None else (*at, inner)})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Args:
        kind: one of `KINDS`.
        why: the sentence that explains it.
        hazard: RAW, WAR or WAW for a race, by the order of its sides in the fair run.
        scope: "same call" or "next call", by the calls of its sides.
        window: the window or signal that it is about; of views of one memory, the window that they are over.
        pairs: how many pairs of operations (or places) are the same but for rank and element.
        harmful: True when shown to make a result wrong, change it, or hang; False when both
            orders give the same bits here; None when that was not decided.
        sides: the operations, in the order of the fair run; of a race that has a witness, those that come the
            other way round in it.
        trace: the file of the witness, if it was saved.
        token: the witness as a token, if there is one.
        shown: what the witness showed, in words.
        examples: the sides of some of the pairs (at most 32), to make witnesses from.
        whys: the sentence that explains each of them.

    """

    kind: str
    why: str
    _: KW_ONLY
    hazard: str | None = None
    scope: str | None = None
    window: str | None = None
    pairs: int = 1
    harmful: bool | None = None
    sides: tuple[Side, ...] = ()
    trace: str | None = None
    token: str | None = None
    shown: str = ""
    examples: tuple[tuple[Side, ...], ...] = ()
    whys: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Name it in a few words: ``WAR race, next call``."""
        words = f"{self.hazard} race" if self.hazard else self.kind
        return f"{words}, {self.scope}" if self.scope else words

    def with_(self, **changes: Any) -> Finding:  # noqa: ANN401 - any field
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this finding."""
        return FINDING.write(self)

    @classmethod
    def of_json(cls, value: Any) -> Finding:  # noqa: ANN401 - any JSON value
        """Return the finding that `to_json` wrote. Where its operations stand in their streams is not known.

        Raises:
            BadFieldError: it is not what that writes.

        """
        made = FINDING.read(value)
        return cls(**{**made, "sides": tuple(map(Side.of_json, made["sides"])), "shown": made["shown"] or ""})


@dataclass(frozen=True, slots=True)
class Expected:
    """The finding that a known-bad kernel must give, so that the exhibits test the tool.

    `kind` is one of `KINDS`, or "refused" for a kernel that raises; None in `scope` or `pairs`
    leaves that open. `pairs` is a function of P, for two calls.
    """

    kind: str
    hazard: str | None = None
    scope: str | None = None
    pairs: Callable[[int], int] | None = None

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, "refused"):
            raise MisuseError(f"no finding is called {self.kind!r}; the kinds are {', '.join(KINDS)}, and 'refused'")

    def __str__(self) -> str:
        words = self.hazard or self.kind
        return f"{words}, {self.scope}" if self.scope else words

    def matches(self, finding: Finding, ranks: int | None = None) -> bool:
        """Say whether `finding` is the expected one; with `ranks`, also by its count of pairs.

        Args:
            finding: a finding of a report.
            ranks: P, to compare the number of pairs too; None: not compared.

        """
        return (
            finding.kind == self.kind
            and self.hazard in (None, finding.hazard)
            and self.scope in (None, finding.scope)
            and (self.pairs is None or ranks is None or self.pairs(ranks) == finding.pairs)
        )


def RAW(scope: str | None = None, pairs: Callable[[int], int] | None = None) -> Expected:  # noqa: N802 - the field's name
    """Expect a read that can come before the write it needs.

    Args:
        scope: "same call" or "next call"; None: either.
        pairs: gives for P the number of pairs that two calls have; None: any.

    """
    return Expected("race", "RAW", scope, pairs)


def WAR(scope: str | None = None, pairs: Callable[[int], int] | None = None) -> Expected:  # noqa: N802
    """Expect a write that can come before the read it must not disturb.

    Args:
        scope: "same call" or "next call"; None: either.
        pairs: gives for P the number of pairs that two calls have; None: any.

    """
    return Expected("race", "WAR", scope, pairs)


def WAW(scope: str | None = None, pairs: Callable[[int], int] | None = None) -> Expected:  # noqa: N802
    """Expect two writes in either order.

    Args:
        scope: "same call" or "next call"; None: either.
        pairs: gives for P the number of pairs that two calls have; None: any.

    """
    return Expected("race", "WAW", scope, pairs)
