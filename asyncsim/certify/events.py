"""The events of a certificate: steps of actors, what they leave to land, and the edges between them.

A landing of an actor waits for
    L1  the data of its own operation, if it is the signal of a put with signal;
    L2  older landings of the actor at the same place (where places keep order; adds commute);
    L3  older landings of the actor at the same rank, from before a fence;
    L4  all older landings of the actor, if it is a release; all its older stores, if it is ordered after stores;
    L6  older local stores of its rank at the same place;
and L5: a fetch waits for older landings of the actor on what it reads, where writes are forwarded.
None waits for a non-blocking get, but a release where writes are forwarded; and a get waits for no fence.

Where writes are forwarded an actor sees its own signals from their issue on, but those that come behind a
non-blocking copy: of these it sees, as all others do, no more than what has landed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from asyncsim.certify.reading import LARGEST, RejectedError, UnreadableError
from asyncsim.certify.updates import ADDS, SET, UPDATES

MODELS = {"sc": (False, True, True), "ldst": (True, True, True), "nic": (True, False, False)}
"""Effects land late; an actor sees its own pending writes; its writes to one place land in order."""
READ, WRITE, ADD = "read", "write", "add"
COMPARISONS = ("Eq", "Ne", "Gt", "Ge", "Lt", "Le")
LOADS, STORES, COPIES = ("load", "remote_load"), ("store", "remote_store"), ("get", "put", "put_signal")
PUTS = ("put", "put_signal")
SIGNALLING, LINKED = ("notify", "put_signal"), ("start", "join", "sync")
ATOMIC, COMPARING = "atomic", ("wait", "test", "compare_exchange", "arrive")
GIVES = {"test": "answer", "arrive": "answer", "read": "value", ATOMIC: "value", "compare_exchange": "value"}
"""What the program gets of what never stands."""
RANK, AFTER_STORES = "rank", "stores"
"""The link of a quiet of all streams of a rank; of a notify that lands after what its actor stored, and no put."""
ALL, OWN, PEERS = "all", "own", "peers"
"""In whose eyes an access happens: a local store is seen by its own rank at once, by peers when it lands."""
MOST = 5_000_000
"""So many events, edges and spans are looked at: a small file can ask for a large world."""


class Access(NamedTuple):
    """Bytes of a window, what is done to them, and in whose eyes."""

    window: int
    spans: tuple[tuple[int, int], ...]
    mode: str
    eyes: str = ALL

    def overlaps(self, other: Access) -> bool:
        """Say whether two accesses to one window share a byte."""
        i = j = 0
        while i < len(self.spans) and j < len(other.spans):
            (a, b), (c, d) = self.spans[i], other.spans[j]
            if max(a, c) < min(b, d):
                return True
            i, j = (i + 1, j) if b <= d else (i, j + 1)
        return False


@dataclass(slots=True, eq=False)
class Event:
    """What happens at once: the step of an operation, or a step of a wire (a fetch, a landing).

    Args:
        thread: whose; actors first, then wires.
        index: its place in that thread.
        rank: of the actor.
        kind: of the operation; "fetch" or "land" for a wire.
        issue: the step that a wire belongs to.
        needs: what must have happened before, beside what precedes it in its thread.
        accesses: what it touches.
        cell: what it compares or changes; -1 for none.
        how: a comparison.
        amount: what it compares with.
        update: how it changes the cell: by the name of an update; empty if it does not.
        change: what it adds to the cell, puts there, or combines with what is there.
        sets: it puts that there, whatever was there before.
        gives: what its program gets: "answer" of the comparison, or the "value" that the cell held.
        queued: a signal behind a copy, which its own actor sees no earlier than others.
        step: its place in the run.

    """

    thread: int
    index: int
    rank: int
    kind: str
    issue: Event | None = None
    needs: list[Event] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)
    cell: int = -1
    how: str = ""
    amount: int = 0
    update: str = ""
    change: int = 0
    sets: bool = False
    gives: str = ""
    queued: bool = False
    step: int = -1

    def __str__(self) -> str:
        at = self.issue or self
        return f"{'' if at is self else f'the {self.kind} of '}operation {at.index} of actor {at.thread}"


class Program:
    """All events of a certificate, by thread.

    Attributes:
        actors: how many of the threads are actors.
        signals: the landings at a cell, by actor and cell, in the order of issue.
        quiets: of each actor's quiets the index of the first operation that they do not await, and their own.
        rank_quiets: the quiets of whole ranks.
        awaited: the cells that some wait is on.

    """

    def __init__(self, header: dict[str, Any], streams: list[dict[str, Any]]) -> None:
        """Spell out what lands late, and what orders it."""
        name, colon, atom = header["memory"].partition(":atom=")
        whole = atom.isascii() and atom.isdecimal() and int(atom[:20]) > 0
        if name not in MODELS or bool(colon) > (whole and name != "sc"):
            raise UnreadableError(f"no memory model is called {header['memory'][:40]!r}", 1)
        self.late, self.forwarding, self.place_order = MODELS[name]
        self.atom = int(atom[:20]) if colon else LARGEST
        self.windows: list[list[int]] = header["windows"]
        self.cells: list[list[int]] = header["cells"]
        ranks = [rank for rank, *_ in self.windows + self.cells] + [stream["rank"] for stream in streams]
        if not all(0 <= rank < header["ranks"] for rank in ranks) or any(size < 1 for _, size, _ in self.windows):
            raise RejectedError("a window, cell or actor belongs to no rank, or an element has no bytes")
        self.actors = len(streams)
        self.threads: list[list[Event]] = [[] for _ in streams]
        self.signals: dict[tuple[int, int], list[Event]] = defaultdict(list)
        self.quiets: list[list[tuple[int, int]]] = [[] for _ in streams]
        self.rank_quiets: list[Event] = []
        self.awaited: set[int] = set()
        self._room = MOST
        for number, stream in enumerate(streams):
            walk = _Walk(self, number, stream["rank"])
            for op in stream["ops"]:
                walk.step(op)

    def spend(self, amount: int) -> None:
        """Refuse what is too large."""
        self._room -= amount
        if self._room < 0:
            raise RejectedError("too large to be checked")

    def need(self, event: Event, others: list[Event]) -> None:
        """Add edges; they count towards the work that a certificate may cost.

        Args:
            event: what comes later.
            others: what must have happened before.

        Raises:
            RejectedError: there are more than are checked.

        """
        self.spend(len(others))
        event.needs += others


class _Walk:
    """One actor, operation by operation, with what orders its landings."""

    def __init__(self, program: Program, number: int, rank: int) -> None:
        self.program = program
        self.number = number
        self.rank = rank
        self.unordered: list[Event] = []
        self.got: list[Event] = []
        self.stored: list[Event] = []
        self.landings: list[Event] = []
        """All landings that no quiet has awaited so far."""
        self.counted: list[int] = []
        """The copies that a quiet may leave pending: puts, and non-blocking gets."""
        self.data: dict[int, list[tuple[Event, Access]]] = defaultdict(list)
        self.now: dict[int, list[Event]] = defaultdict(list)
        self.fenced: dict[int, list[Event]] = {}
        self.copies: set[Event] = set()
        """Landings of copies, and of signals behind them, since the last quiet."""
        self.copied: set[int] = set()
        """The ranks where these land, gets aside, since the last fence, and..."""
        self.fenced_copied: set[int] = set()
        """... before it."""

    def step(self, op: dict[str, Any]) -> None:
        """Take the next operation."""
        program, stream = self.program, self.program.threads[self.number]
        program.spend(1)
        kind, cell, amount = op["kind"], op.get("cell", -1), op.get("amount", 0)
        event = Event(self.number, len(stream), self.rank, kind, cell=cell, how=op.get("how", ""), amount=amount)
        stream.append(event)
        accesses = [self._access(*access) for access in op.get("access", ())]
        if not _makes_sense(op, [access.mode for access in accesses]) or cell >= len(program.cells):
            raise RejectedError(f"{event} makes no sense")
        if program.late and _is_sc_alone(op):
            raise RejectedError(f"{event} is certified under sc alone: no theorem speaks of it where writes land late")
        event.gives = "value" if op.get("result") else GIVES.get(kind, "")
        if kind == "wait":
            program.awaited.add(cell)
        self._order(event, op)
        if not program.late or kind in (*LOADS, "wait", "test"):
            event.accesses = accesses
            if kind in SIGNALLING or kind == ATOMIC:
                event.update, event.change, event.sets = event.how, amount, event.how == SET
            elif op.get("update"):
                event.update, event.change = op["update"], op.get("operand", 0)
            return
        landings = self._copy(event, accesses, late=op.get("late", False)) if accesses else []
        self.stored += landings if kind in STORES or any(one.eyes == OWN for one in event.accesses) else []
        if kind in SIGNALLING:
            landings.append(self._signal(event, landings, op))
            event.cell = -1
        self.landings += landings
        self.counted += [event.index] if kind in PUTS or (kind == "get" and op.get("late")) else []
        for landing in landings:
            (self.got if is_get(landing) and not program.forwarding else self.unordered).append(landing)

    def _order(self, event: Event, op: dict[str, Any]) -> None:
        program = self.program
        if op.get("consume"):
            event.update, event.change = ADDS, -event.amount
            if program.late and program.place_order:  # it acts at once, and must not overtake
                program.need(event, [other for other in program.signals[self.number, event.cell] if other.sets])
        elif event.kind == "quiet" and event.amount:
            self._await(event)
        elif event.kind == "quiet":
            program.need(event, self.unordered + self.got)
            self.unordered, self.got, self.stored, self.landings = [], [], [], []
            self.copies, self.copied, self.fenced_copied = set(), set(), set()
            program.quiets[self.number].append((event.index, event.index))
            if op.get("link"):
                program.rank_quiets.append(event)
        elif event.kind == "fence":
            self.fenced |= self.now
            self.fenced_copied |= self.copied
            self.copied = set()
            self.now = defaultdict(list)

    def _await(self, quiet: Event) -> None:
        """Let a quiet come after what was issued before the first of its actor's last copies, so many of them."""
        program = self.program
        end = (*self.counted[-quiet.amount :], quiet.index)[0]
        program.spend(len(self.landings))
        awaited = [landing for landing in self.landings if landing.issue is not None and landing.issue.index < end]
        program.need(quiet, awaited)
        del self.landings[: len(awaited)]
        quiets = program.quiets[self.number]
        quiets.append((max(end, quiets[-1][0] if quiets else 0), quiet.index))

    def _access(self, window: int, mode: str, ends: list[int]) -> Access:
        program = self.program
        program.spend(len(ends))
        spans = tuple(zip(ends[::2], ends[1::2], strict=False))
        rising = all(a < b for a, b in spans) and all(a[1] <= b[0] for a, b in pairwise(spans))
        if not 0 <= window < len(program.windows) or mode not in (READ, WRITE, ADD) or len(ends) % 2 or not rising:
            raise RejectedError(f"actor {self.number} touches what is no place in a window")
        return Access(window, spans, mode)

    def _copy(self, issue: Event, accesses: list[Access], *, late: bool) -> list[Event]:
        """Do what a store, put or get does at its step, and let the data become wires."""
        target = accesses[-1]
        own = target.mode == WRITE and self.program.windows[target.window][0] == self.rank and not late
        local = own and (issue.kind not in PUTS or self.program.forwarding)  # else it goes through an adapter
        issue.accesses = [] if late else accesses[:-1]
        if target.mode == READ:  # a copy of elements onto themselves
            issue.accesses.append(target)
            return []
        if local:
            issue.accesses.append(target._replace(eyes=OWN))
        pieces = self._pieces(target._replace(eyes=PEERS if local else ALL))
        sources: list[Access | None] = [*self._pieces(accesses[0])] if late else [None] * len(pieces)
        if len(sources) != len(pieces):
            raise RejectedError(f"{issue} copies to another number of elements")
        return [self._land(issue, *parts) for parts in zip(pieces, sources, strict=True)]

    def _land(self, issue: Event, target: Access, source: Access | None) -> Event:
        program, number = self.program, len(self.program.threads)
        wire: list[Event] = []
        if source is not None:
            wire.append(Event(number, 0, self.rank, "fetch", issue, [issue], [source]))
            if program.forwarding:  # L5
                older = [(other, at) for other, at in self.data[source.window] if not is_get(other)]
                program.need(wire[0], [other for other, at in older if at.overlaps(source)])
        landing = Event(number, len(wire), self.rank, "land", issue, wire[:] or [issue], [target])
        older = self.data[target.window]
        for other, at in older:
            ordered = (program.place_order and not is_get(other)) or at.eyes == PEERS  # L2, L6
            if ordered and not at.mode == target.mode == ADD and at.overlaps(target):
                program.need(landing, [other])
        older.append((landing, target))
        program.threads.append([*wire, landing])
        if wire:
            self.copies.add(landing)
        if not is_get(landing):
            self._fence(landing, program.windows[target.window][0])
        return landing

    def _signal(self, issue: Event, data: list[Event], op: dict[str, Any]) -> Event:
        program, cell, sets = self.program, issue.cell, issue.how == SET
        release = issue.kind == "notify" and not op.get("relaxed")
        landing = Event(
            len(program.threads), 0, self.rank, "land", issue, [issue], cell=cell, update=issue.how,
            change=issue.amount, sets=sets,
        )  # fmt: skip
        program.threads.append([landing])
        program.need(landing, data)  # L1
        if release:  # L4
            program.need(landing, self.unordered)
            self.unordered = []
        if op.get("link") == AFTER_STORES:  # L4
            program.need(landing, self.stored)
        older = program.signals[self.number, cell]
        program.need(landing, [other for other in older if program.place_order and (other.sets or sets)])  # L2
        older.append(landing)
        self._fence(landing, program.cells[cell][0], held=op.get("link") != AFTER_STORES)
        return landing

    def _fence(self, landing: Event, destination: int, *, held: bool = True) -> None:
        if held:
            self.program.need(landing, self.fenced.get(destination, []))  # L3
        self.now[destination].append(landing)
        if self._is_behind(landing, destination):
            landing.queued = True
            self.copies.add(landing)
        if landing in self.copies:
            self.copied.add(destination)

    def _is_behind(self, landing: Event, destination: int) -> bool:
        """Say whether a signal comes behind a copy, in a model where otherwise its actor would see it at once."""
        if landing.cell < 0 or not self.program.forwarding:
            return False
        return destination in self.fenced_copied or any(other in self.copies for other in landing.needs)

    def _pieces(self, access: Access) -> list[Access]:
        """Cut what is touched into the pieces that land by themselves."""
        size = self.program.windows[access.window][1] * self.program.atom
        pieces: list[list[tuple[int, int]]] = [[]]
        room = size
        for low, high in access.spans:
            self.program.spend((high - low) // size + 1)
            at = low
            while at < high:
                if not room:
                    pieces.append([])
                    room = size
                end = min(high, at + room)
                pieces[-1].append((at, end))
                at, room = end, room - (end - at)
        return [access._replace(spans=tuple(piece)) for piece in pieces]


def _makes_sense(op: dict[str, Any], modes: list[str]) -> bool:
    """Say whether an operation of this kind has these fields."""
    kind, how, late = op["kind"], op.get("how", ""), op.get("late", False)
    if kind in LOADS:
        fits = modes == [READ]
    elif kind in STORES:
        fits = modes in ([WRITE], [ADD])
    elif kind in COPIES:
        fits = modes[:-1] == [READ] or (len(modes) == 1 and not late)
    else:
        fits = not modes and kind in ("notify", "wait", "fence", "quiet", *GIVES, *LINKED)
    link = op.get("link", "")
    linked = bool(link) if kind in LINKED else link in ("", _WORDS.get(kind, ""))
    known = tuple(UPDATES) if kind in (*SIGNALLING, ATOMIC) else COMPARISONS if kind in COMPARING else ("",)
    placed = (how != "" or kind == "read") == (op.get("cell", -1) >= 0) and (kind == "wait" or not op.get("consume"))
    fits = fits and how in known and placed and linked and (link != AFTER_STORES or op.get("relaxed", False))
    fits = fits and (kind != "quiet" or 0 <= op.get("amount", 0) < (1 if link else LARGEST))
    return fits and _updates_fit(op)


def _updates_fit(op: dict[str, Any]) -> bool:
    """Say whether an operation changes its cell, and has a result, as one of its kind may."""
    kind, update = op["kind"], op.get("update", "")
    wanted = {"compare_exchange": (SET,), "arrive": (ADDS,), "wait": ("", *UPDATES)}.get(kind, ("",))
    alone = not update or not op.get("consume")
    operand = bool(update) or not op.get("operand")
    return update in wanted and alone and operand and (kind == "wait" or not op.get("result"))


def _is_sc_alone(op: dict[str, Any]) -> bool:
    """Say whether an operation is more than a sum, a Set, a plain wait or a test."""
    plain = op["kind"] not in GIVES or op["kind"] == "test"
    more = op.get("update") or op.get("result") or op.get("how", "") in UPDATES.keys() - {ADDS, SET}
    return not plain or bool(more)


_WORDS = {"quiet": RANK, "notify": AFTER_STORES}


def is_get(landing: Event) -> bool:
    """Say whether a landing brings what a non-blocking get fetched."""
    return landing.index > 0 and landing.issue is not None and landing.issue.kind == "get"
