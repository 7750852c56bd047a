"""Shards: what consecutive schedules of an exploration showed, in whatever process they ran.

A shard travels from a worker to its parent, and into the journal as JSON. Shards joined in the order of
their schedules make the same whole, however the schedules were cut into shards.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from asyncsim.trace.event import STOPPED
from asyncsim.trace.fields import COUNT, REQUIRED, TEXT, Field, Object, Type, by_name, list_of, whole
from asyncsim.trace.finding import FINDING, Finding, Side
from asyncsim.trace.strict import BadFieldError, integer_in, shown

DIES = "dies"
"""The key of the failure of a schedule that ends its process: it was run, and not judged."""
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Failure:
    """The first schedule that showed a kind of failure, and how many did.

    Args:
        finding: what it showed.
        choices: the schedule.
        scheduler: its scheduler, as text.
        ending: how the run ended.
        memory: the memory model under which it was run; empty: that of the case.

    """

    finding: Finding
    choices: tuple[str, ...]
    scheduler: str
    ending: str
    memory: str = ""

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
    def of_json(cls, made: Any) -> Failure:  # noqa: ANN401 - any JSON value
        """Return what `to_json` was made of.

        Raises:
            BadFieldError: it was not made by that.

        """
        facts = _FAILURE.read(made)
        finding, text = facts["finding"], facts["choices"]
        finding["sides"] = tuple(Side(**side) for side in finding["sides"])
        choices = tuple(text.split(",")) if text else ()
        return cls(Finding(**finding), choices, facts["scheduler"], facts["ending"])


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
    def of_json(cls, made: Any) -> Shard:  # noqa: ANN401 - any JSON value
        """Return what `to_json` was made of.

        Raises:
            BadFieldError: it was not made by that.

        """
        facts = _SHARD.read(made)
        count, times, text = facts["count"], facts["times"], facts.pop("behaviours")
        integer_in(facts["other_bits"], "'other_bits'", 0, count)
        for often in times.values():
            integer_in(often, "one of 'times'", 1, count)
        if facts["first"].keys() != times.keys():
            raise BadFieldError(f"the keys of 'first' are {shown(sorted(facts['first']))}; those of 'times' are others")
        behaviours = array("Q", (int(text[at : at + _DIGITS], 16) for at in range(0, len(text), _DIGITS)))
        shard = cls(**facts, behaviours=behaviours)
        if len(text) not in (0, _DIGITS * shard.judged):
            raise BadFieldError(f"the length of 'behaviours' is {len(text)}, for {shard.judged} schedules")
        return shard


_SIDE = Object(
    "a side",
    (
        *(Field(name, TEXT) for name in ("actor", "phase", "op", "region")),
        *(Field(name, whole(-1)) for name in ("index", "rank", "call")),  # -1: of no operation
        Field("at", list_of(TEXT, "a line")),
    ),
)
_COMPLETE = {"sides": list_of(_SIDE.type(), "a side"), "shown": TEXT, "pairs": whole(1)}
_FINDING = Object(
    "a finding",
    [replace(each, default=REQUIRED, type=_COMPLETE.get(each.name, each.type)) for each in FINDING.fields],
)
_FAILURE = Object(
    "a failure",
    (Field("finding", _FINDING.type()), *(Field(name, TEXT) for name in ("choices", "scheduler", "ending"))),
)
FAILURE = Type(lambda value, _: Failure.of_json(value), {}, "failure")
"""What a line of a journal holds that a worker has just found."""
_SHARD = Object(
    "a shard",
    (
        Field("start", COUNT), Field("count", whole(1)), Field("other_bits", COUNT),
        Field("times", by_name(COUNT)), Field("first", by_name(FAILURE)), Field("behaviours", TEXT),
    ),
)  # fmt: skip
