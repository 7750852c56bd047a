"""The rules of a script, as data and as sentences."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import KINDS

if TYPE_CHECKING:
    from asyncsim.trace.op import Op

VERBS = {
    verb: tuple(name for name, row in KINDS.items() if verb in row.done)
    for verb in dict.fromkeys(verb for row in KINDS.values() for verb in row.done)
}
"""What a rank *has done*, own and remote alike. (A kind by name, ``its remote_load``, is exactly that kind.)

Where things land late, a rank has stored when it has issued the store; ``landed`` is what its wires did.
"""

_KIND = "|".join(sorted(KINDS, key=len, reverse=True))
_PLACE = (
    r"(?: (?:of|to|from|on) (?P<{0}_place>\w+)(?:@(?P<{0}_owner>\d{{1,9}}))?)?(?: in call (?P<{0}_call>\d{{1,9}}))?"
)
_NTH = r"its (?:(?P<{0}_nth>\d{{1,9}})(?:st|nd|rd|th) )?(?P<{0}_kind>" + _KIND + ")"
_RULE = re.compile(
    r"hold rank (?P<b_rank>\d{1,9}) before " + _NTH.format("b") + _PLACE.format("b")
    + r" until rank (?P<u_rank>\d{1,9}) has (?:(?P<verb>" + "|".join(VERBS) + r")|done " + _NTH.format("u") + ")"
    + _PLACE.format("u"),
    re.ASCII,
)  # fmt: skip
_EXAMPLE = "hold rank 0 before its remote_load of data until rank 1 has stored to data"


@dataclass(frozen=True, slots=True)
class Step:
    """Which operations a rule means.

    Args:
        rank: whose: of any of its streams, or of its wires.
        kinds: any of these.
        place: of which window or signal, by name; where an operation has two, either; None for any.
        owner: at which rank; None for any.
        call: in which call, from 0; None for any.
        nth: the how many-th of them, from 1; None for each (or, after *until*, the first).

    """

    rank: int
    kinds: tuple[str, ...]
    _: KW_ONLY
    place: str | None = None
    owner: int | None = None
    call: int | None = None
    nth: int | None = None

    def matches(self, op: Op) -> bool:
        """Say whether it means `op`, the count left aside."""
        if op.actor.rank != self.rank or op.kind not in self.kinds or self.call not in (None, op.call):
            return False
        places = [(access.region.window, access.region.owner) for access in op.accesses]
        if op.cell is not None:
            places.append((op.cell.signal, op.cell.owner))
        if not places:  # such as a fence
            return self.place is None
        return any(self.place in (None, name) and self.owner in (None, owner) for name, owner in places)

    def text(self, joint: str) -> str:
        """Write what comes after the kind: ``of data@1 in call 0``."""
        owner = "" if self.owner is None else f"@{self.owner}"
        where = "" if self.place is None else f" {joint} {self.place}{owner}"
        return where + ("" if self.call is None else f" in call {self.call}")

    def named(self) -> str:
        """Write the count and the kind: ``its 3rd store``."""
        return f"its {'' if self.nth is None else _ordinal(self.nth) + ' '}{self.kinds[0]}"


@dataclass(frozen=True, slots=True)
class Hold:
    """One rule: a rank does not do this before somebody has done that."""

    before: Step
    until: Step

    @classmethod
    def parse(cls, text: str) -> Hold:
        """Read a rule: ``hold rank R before its [Nth] KIND [PLACE] [in call C] until rank R has DONE``.

        KIND is a kind of operation (`load`, `remote_store`, `notify`, …). PLACE is ``of data``, or
        ``of data@1`` for rank 1's; *to*, *from* and *on* will do as well. DONE is a verb of `VERBS`
        or ``done its [Nth] KIND``, again with a place and a call. Counts begin with 1, calls with 0.

        Raises:
            MisuseError: the sentence is not of this form.

        """
        match = _RULE.fullmatch(" ".join(text.split()))
        if match is None:
            raise MisuseError(f"script: {text.strip()!r} is no rule; one reads: {_EXAMPLE} [in call 1]")
        verb = match["verb"]
        return cls(
            _step(match, "b", (match["b_kind"],)), _step(match, "u", VERBS[verb] if verb else (match["u_kind"],))
        )

    def __str__(self) -> str:
        """Write the sentence that `parse` reads."""
        before, until = self.before, self.until
        verb = next((verb for verb, kinds in VERBS.items() if kinds == until.kinds and until.nth is None), None)
        done = f"done {until.named()}" if verb is None else verb
        return (
            f"hold rank {before.rank} before {before.named()}{before.text('of')} "
            f"until rank {until.rank} has {done}{until.text('to' if verb == 'stored' else 'of')}"
        )


def parse_rules(text: str) -> list[Hold]:
    """Read the rules of a script, separated by ``;`` or new lines.

    Raises:
        MisuseError: there is none, or one that is not of the form.

    """
    rules = [Hold.parse(part) for part in re.split(r"[;\n]", text) if part.strip()]
    if not rules:
        raise MisuseError(f"script: no rule; one reads: {_EXAMPLE}")
    return rules


def _step(match: re.Match[str], side: str, kinds: tuple[str, ...]) -> Step:
    def number(name: str) -> int | None:
        found = match[f"{side}_{name}"]
        return None if found is None else int(found)

    nth = number("nth")
    if nth == 0:
        raise MisuseError(f"script: {match[0]!r}: there is no 0th; counts begin with 1")
    return Step(
        int(match[f"{side}_rank"]), kinds, place=match[f"{side}_place"],
        owner=number("owner"), call=number("call"), nth=nth,
    )  # fmt: skip


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
