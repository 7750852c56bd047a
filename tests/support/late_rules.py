"""What a toy program leaves to land under a memory model, what orders the landings, and which transitions conflict.

A write that is *late* changes nothing when it is issued; it becomes a pending landing, and may go when

    L1  the data of its own put has landed, for the signal of a put with signal;
    L2  no older own one to the same place is pending, unless both add (where places keep order);
    L3  no older own one to the same rank from before a fence is pending;
    L4  no older own one at all is pending, for a release; no older own store, for a notify after stores;
    L5  (of the fetch of a copy) no older own write to what it reads is pending (where writes are forwarded);
    L6  no local store to the same place issued earlier on this rank is pending.

What a non-blocking get brings is awaited by a quiet alone: it holds nothing back by these rules, but a release where
writes are forwarded (there an actor makes the get itself), and no fence holds it back.

All but L6 are known from the text of the program, and are written down here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from late_toy import ADD, COPIES, FENCE, LATE_COPY, LOAD, NOTIFY, QUIET, RANK_QUIET, SET, STORE, WRITING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from late_toy import Op, Program

Step = tuple[int, int, str]
"""A transition: the number of the actor, the index of the operation in its stream, and what of it."""
STEP, FETCH, LAND, SIGNAL = "step", "fetch", "land", "signal"
Pair = frozenset[Step]


@dataclass(frozen=True, slots=True)
class Rules:
    """A memory model.

    Args:
        late: writes land later; otherwise they happen at their step and the rest is meaningless.
        forwarding: an actor sees its own pending writes.
        place_order: one actor's writes to one place land in order.

    """

    late: bool = True
    forwarding: bool = True
    place_order: bool = True


SC, LDST, NIC = Rules(late=False), Rules(), Rules(forwarding=False, place_order=False)
FORWARDED, ORDERED = Rules(place_order=False), Rules(forwarding=False)


class Landing(NamedTuple):
    """What an operation leaves to happen later.

    Args:
        issue: the actor, and the index of the operation.
        rank: the actor's.
        destination: the rank where it lands.
        place: the element or cell that it changes.
        on_cell: it is a cell.
        adds: it adds; otherwise it writes or sets.
        amount: what it adds or sets, for a cell.
        source: the element that is fetched later; None if the value is fixed at the issue.
        local: a local store, seen by its own rank at once.
        stored: what a store brings, not a put.
        got: what a non-blocking get brings.
        seen_late: a signal that comes behind a non-blocking copy, which nobody sees before it lands.
        after: the landings of its actor that must be done before (L1 to L4).
        fetched_after: those that must be done before it fetches (L5).

    """

    issue: tuple[int, int]
    rank: int
    destination: int
    place: int
    on_cell: bool
    adds: bool
    amount: int = 0
    source: int | None = None
    local: bool = False
    stored: bool = False
    got: bool = False
    seen_late: bool = False
    after: frozenset[int] = frozenset()
    fetched_after: frozenset[int] = frozenset()


class Touch(NamedTuple):
    """What a transition does to an element.

    Args:
        actor: whose eyes and hands these are; -1 for a fetch, past which nothing of its own actor is forwarded.
        rank: its rank.
        element: which.
        mode: r, w or a (atomic add).
        landing: for a write, the landing that brings it.
        issues: this is the issue of a local store, which its own rank sees at once.

    """

    actor: int
    rank: int
    element: int
    mode: str
    landing: Landing | None = None
    issues: bool = False


class Layout:
    """All that is known of a program under a memory model before it runs.

    Attributes:
        landings: by number, older ones of an actor first.
        issued: the numbers of the landings of each operation.
        awaited: the numbers of the landings that each quiet waits for, but one of the whole rank.
        touches: what each transition that touches memory does to it.

    """

    def __init__(self, program: Program, rules: Rules) -> None:
        """Lay out every operation."""
        self.program = program
        self.rules = rules
        self.landings: list[Landing] = []
        self.issued: dict[tuple[int, int], range] = {}
        self.awaited: dict[tuple[int, int], range] = {}
        self.touches: dict[Step, list[Touch]] = {}
        for actor, ops in enumerate(program.streams):
            self._lay_out(actor, ops)
            for index, op in enumerate(ops):
                self.touches.update(self._touches(actor, index, op))

    def conflicts(self) -> list[Pair]:
        """Return the pairs of transitions of different actors or wires whose order can matter."""
        steps = list(self.touches.items())
        return [
            frozenset((one, other))
            for n, (one, touched) in enumerate(steps)
            for other, touching in steps[:n]
            if one[:2] != other[:2] and any(_conflict(x, y, self.rules) for x in touched for y in touching)
        ]

    def _lay_out(self, actor: int, ops: tuple[Op, ...]) -> None:
        """Write down what each operation of an actor leaves to land, and what orders it."""
        fences = quiets = 0
        begin = len(self.landings)
        copies: list[int] = []  # by copy, how many landings there were before it
        older: list[tuple[int, int, int]] = []  # the landings of this actor, each with the fences and quiets before it
        for index, op in enumerate(ops):
            fences += op.kind == FENCE
            quiets += op.kind in (QUIET, RANK_QUIET) and not op.value
            first = len(self.landings)
            if op.kind == QUIET:
                left = copies[-op.value :] if op.value else []
                self.awaited[actor, index] = range(begin, min(left, default=first))
            if self._is_copy(actor, op):
                copies.append(first)
            for landing in self._left_by(actor, index, op):
                after, fetched_after, behind = set(), set(), False
                for number, generation, quieted in older:
                    other, fenced = self.landings[number], generation < fences
                    if self._comes_first(other, landing, op, fenced=fenced):
                        after.add(number)
                    if self.rules.forwarding and not other.on_cell and other.place == landing.source and not other.got:
                        fetched_after.add(number)
                    behind = behind or (quieted == quiets and self._hides(other, landing, op, fenced=fenced))
                older.append((len(self.landings), fences, quiets))
                done = landing._replace(after=frozenset(after), fetched_after=frozenset(fetched_after))
                self.landings.append(done._replace(seen_late=behind and self.rules.forwarding))
            self.issued[actor, index] = range(first, len(self.landings))

    def _is_copy(self, actor: int, op: Op) -> bool:
        """Say whether a quiet may leave it: a put, or a non-blocking get."""
        gets = op.kind in COPIES and not op.puts and self.program.elements[op.place] == self.program.actors[actor][0]
        return op.kind == LATE_COPY if gets else op.puts or op.kind in COPIES

    def _left_by(self, actor: int, index: int, op: Op) -> Iterator[Landing]:
        program, issue = self.program, (actor, index)
        rank = program.actors[actor][0]
        if op.kind in WRITING:
            to = program.elements[op.place]
            source = op.source if op.kind == LATE_COPY and self.rules.late else None
            # Where an actor does not see what it has under way, an adapter makes its puts, also to its own rank.
            local = to == rank and op.kind not in (ADD, LATE_COPY) and (self.rules.forwarding or not op.puts)
            yield Landing(
                issue, rank, to, op.place, on_cell=False, adds=op.kind == ADD, source=source, local=local,
                stored=local or (op.kind in (STORE, ADD) and not op.puts),
                got=source is not None and to == rank and not op.puts,
            )  # fmt: skip
        if op.change is not None:
            change = op.change
            to = program.cells[change.cell]
            yield Landing(issue, rank, to, change.cell, on_cell=True, adds=change.how != SET, amount=change.value)

    def _comes_first(self, older: Landing, landing: Landing, op: Op, *, fenced: bool) -> bool:
        """Apply L1 to L4 to two landings of one actor; `op` leaves the later one."""
        if older.issue == landing.issue:
            return True
        releases = landing.on_cell and op.kind == NOTIFY and not op.relaxed and not op.stores
        if older.got:
            return releases and self.rules.forwarding
        if releases or (op.stores and older.stored):
            return True
        if self.rules.place_order and _same_place(older, landing):
            return True
        return fenced and older.destination == landing.destination and not landing.got

    def _hides(self, older: Landing, landing: Landing, op: Op, *, fenced: bool) -> bool:
        """Say whether a signal comes behind an older landing that is a copy, or comes behind one itself."""
        if not landing.on_cell:
            return False
        copy = older.source is not None
        if older.issue == landing.issue or (op.kind == NOTIFY and not op.relaxed and not op.stores):
            return copy
        if fenced and older.destination == landing.destination and (older.seen_late or (copy and not older.got)):
            return True
        return self.rules.place_order and older.seen_late and _same_place(older, landing)

    def _touches(self, actor: int, index: int, op: Op) -> Iterator[tuple[Step, list[Touch]]]:
        """Yield what each transition of an operation does to memory."""
        rank = self.program.actors[actor][0]
        landings = [self.landings[n] for n in self.issued[actor, index] if not self.landings[n].on_cell]
        fetches = any(landing.source is not None for landing in landings)
        now = [Touch(actor, rank, op.place, "r")] if op.kind == LOAD else []
        now += [Touch(actor, rank, op.source, "r")] if op.kind in COPIES and not fetches else []
        for landing in landings:
            done = Touch(actor, rank, landing.place, "a" if landing.adds else "w", landing)
            if not self.rules.late:
                now.append(done)
                continue
            yield (actor, index, LAND), [done]
            if landing.local:
                now.append(done._replace(issues=True))
            if landing.source is not None:
                yield (actor, index, FETCH), [Touch(-1, rank, landing.source, "r")]
        if now:
            yield (actor, index, STEP), now


def _same_place(one: Landing, other: Landing) -> bool:
    """Say whether two landings change one place and do not commute."""
    return (one.on_cell, one.place) == (other.on_cell, other.place) and not (one.adds and other.adds)


def _conflict(x: Touch, y: Touch, rules: Rules) -> bool:
    """Say whether two transitions touch one element, are not both reads nor both atomic adds, and see each other."""
    if x.element != y.element or x.mode == y.mode != "w":
        return False
    return _is_seen(x, y, rules) and _is_seen(y, x, rules)


def _is_seen(x: Touch, y: Touch, rules: Rules) -> bool:
    """Say whether x changes something in the eyes of y, if it is a write."""
    if x.landing is None or not rules.late:
        return True
    if x.landing.local:
        # Loads and issues of the same rank meet the issue, everybody else meets the landing.
        at_issue = x.rank == y.rank and (y.landing is None or y.landing.local)
        return at_issue if x.issues else not at_issue
    forwarded = rules.forwarding and x.landing.source is None and y.mode == "r" and y.actor == x.actor
    return not forwarded
