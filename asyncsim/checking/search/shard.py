"""Shards: what consecutive schedules of an exploration showed, in whatever process they ran.

A shard travels from a worker to its parent, and into the journal as JSON. Shards joined in the order of
their schedules make the same whole, however the schedules were cut into shards.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.trace.event import STOPPED
from asyncsim.trace.finding import HAZARDS, KINDS, Finding, Side

if TYPE_CHECKING:
    from collections.abc import Mapping

DIES = "dies"
"""The key of the failure of a schedule that ends its process: it was run, and not judged."""
_DIGITS = 16
_TEXTS = ("actor", "phase", "op", "region")
_NUMBERS = ("index", "rank", "call")
_OPTIONAL = ("scope", "window", "trace", "token")


@dataclass(frozen=True, slots=True)
class Failure:
    """The first schedule that showed a kind of failure, and how many did.

    Args:
        finding: what it showed.
        choices: the schedule.
        scheduler: its scheduler, as text.
        ending: how the run ended.

    """

    finding: Finding
    choices: tuple[str, ...]
    scheduler: str
    ending: str

    @property
    def kind(self) -> str:
        """What distinguishes failures of an exhaustive exploration."""
        return {STOPPED: "raises", "": DIES}.get(self.ending, self.finding.kind)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, complete: unlike in a report, its sides locate their operations."""
        finding = {key: value for key, value in asdict(self.finding).items() if key not in ("_", "examples", "whys")}
        choices = ",".join(self.choices)
        return {"finding": finding, "choices": choices, "scheduler": self.scheduler, "ending": self.ending}

    @classmethod
    def of_json(cls, made: Mapping[str, Any]) -> Failure:
        """Return what `to_json` was made of.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it was not made by that.

        """
        facts = dict(made["finding"])
        facts["sides"] = tuple(_side(side) for side in facts["sides"])
        finding = Finding(**facts)
        _check("a finding's kind", finding.kind, fits=finding.kind in KINDS)
        _check("a finding's hazard", finding.hazard, fits=finding.hazard in (None, *HAZARDS))
        _check("a finding's harm", finding.harmful, fits=finding.harmful is None or isinstance(finding.harmful, bool))
        for name in _OPTIONAL:
            _check(f"a finding's {name}", facts[name], fits=facts[name] is None or isinstance(facts[name], str))
        int_of_json("a finding's pairs", facts["pairs"], least=1)
        text_of_json("what a finding says", finding.why)
        text_of_json("what a finding shows", finding.shown)
        text = text_of_json("the choices", made["choices"])
        choices = tuple(text.split(",")) if text else ()
        return cls(
            finding, choices, text_of_json("a scheduler", made["scheduler"]), text_of_json("an ending", made["ending"])
        )


@dataclass(slots=True)
class Shard:
    """What some schedules showed that follow one another in the plan.

    Args:
        start: the number of the first, from 0.
        count: how many were run.
        other_bits: how many gave right results in other bits than the fair one.
        times: how many showed each failure, by the key of its cause.
        first: the first that did.
        behaviours: the number of each one's behaviour; empty if they are not counted.

    """

    start: int
    count: int = 0
    other_bits: int = 0
    times: dict[str, int] = field(default_factory=dict)
    first: dict[str, Failure] = field(default_factory=dict)
    behaviours: array[int] = field(default_factory=lambda: array("Q"))

    @property
    def stop(self) -> int:
        """The number of the schedule after the last."""
        return self.start + self.count

    @property
    def judged(self) -> int:
        """How many were judged: those that did not end their process."""
        return self.count - min(self.count, self.times.get(DIES, 0))

    def join(self, later: Shard) -> None:
        """Add the shard that follows."""
        self.count += later.count
        self.other_bits += later.other_bits
        for key, times in later.times.items():
            self.times[key] = self.times.get(key, 0) + times
        for key, failure in later.first.items():
            self.first.setdefault(key, failure)
        self.behaviours.extend(later.behaviours)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON; behaviours are sixteen hex digits each, in one text."""
        return {
            "start": self.start, "count": self.count, "other_bits": self.other_bits, "times": self.times,
            "first": {key: failure.to_json() for key, failure in self.first.items()},
            "behaviours": "".join(f"{number:016x}" for number in self.behaviours),
        }  # fmt: skip

    @classmethod
    def of_json(cls, made: Mapping[str, Any]) -> Shard:
        """Return what `to_json` was made of.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: it was not made by that.

        """
        start, count = int_of_json("start", made["start"]), int_of_json("count", made["count"], least=1)
        other_bits = int_of_json("other_bits", made["other_bits"], most=count)
        times = {key: int_of_json("times", often, least=1, most=count) for key, often in dict(made["times"]).items()}
        first = {key: Failure.of_json(failure) for key, failure in made["first"].items()}
        _check("the keys of first", sorted(first), fits=first.keys() == times.keys())
        text = text_of_json("behaviours", made["behaviours"])
        behaviours = array("Q", (int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS)))
        shard = cls(start, count, other_bits, times, first, behaviours)
        _check("the length of behaviours", len(text), fits=len(text) in (0, _DIGITS * shard.judged))
        return shard


def int_of_json(what: str, made: object, *, least: int = 0, most: int | None = None) -> int:
    """Return an integer of JSON, if it is one that can be.

    Args:
        what: its name, for the message.
        made: any JSON value; a boolean is not an integer.
        least: the least that is right.
        most: the most; None: no bound.

    Raises:
        ValueError: it is another thing, too small or too large.

    """
    if isinstance(made, bool) or not isinstance(made, int) or made < least or (most is not None and made > most):
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise ValueError(f"{what} is {made!r:.40}, not an integer {bounds}")
    return made


def text_of_json(what: str, made: object) -> str:
    """Return a text of JSON.

    Args:
        what: its name, for the message.
        made: any JSON value.

    Raises:
        ValueError: it is another thing.

    """
    if not isinstance(made, str):
        raise ValueError(f"{what} is {made!r:.40}, not a text")  # noqa: TRY004 - of the file, not of the program
    return made


def _side(made: Mapping[str, Any]) -> Side:
    for name in _TEXTS:
        text_of_json(f"a side's {name}", made[name])
    for name in _NUMBERS:
        int_of_json(f"a side's {name}", made[name], least=-1)  # -1: of no operation
    _check("a side's at", made["at"], fits=isinstance(made["at"], list))
    return Side(**{**made, "at": tuple(text_of_json("a line", line) for line in made["at"])})


def _check(what: str, made: object, *, fits: bool) -> None:
    if not fits:
        raise ValueError(f"{what} cannot be {made!r:.40}")
