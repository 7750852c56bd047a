"""Parts: what a stretch of the schedules of an exploration showed, whoever ran them.

A part travels from a worker to its parent, and into the journal as JSON. Parts joined in the order of
their schedules make the same whole, however the schedules were cut into parts.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from asyncsim.trace.finding import Finding, Side

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON, complete: unlike in a report, its sides locate their operations."""
        finding = {key: value for key, value in asdict(self.finding).items() if key not in ("_", "examples")}
        choices = ",".join(self.choices)
        return {"finding": finding, "choices": choices, "scheduler": self.scheduler, "ending": self.ending}

    @classmethod
    def of_json(cls, made: Mapping[str, Any]) -> Failure:
        """Return what `to_json` was made of."""
        facts = dict(made["finding"])
        facts["sides"] = tuple(Side(**{**side, "at": tuple(side["at"])}) for side in facts["sides"])
        choices = tuple(made["choices"].split(",")) if made["choices"] else ()
        return cls(Finding(**facts), choices, made["scheduler"], made["ending"])


@dataclass(slots=True)
class Part:
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

    def join(self, later: Part) -> None:
        """Take in what came after."""
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
    def of_json(cls, made: Mapping[str, Any]) -> Part:
        """Return what `to_json` was made of."""
        text = made["behaviours"]
        return cls(
            made["start"], made["count"], made["other_bits"], dict(made["times"]),
            {key: Failure.of_json(failure) for key, failure in made["first"].items()},
            array("Q", (int(text[at : at + 16], 16) for at in range(0, len(text), 16))),
        )  # fmt: skip
