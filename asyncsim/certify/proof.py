"""The run replayed, and the cuts: what cannot happen while an event has not."""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from asyncsim.certify.cells import Epoch, can_pass, fold, passes, take, values
from asyncsim.certify.reading import LARGEST, RejectedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.certify.events import Event, Program
    from asyncsim.certify.reading import Lines

DOWN, ALWAYS = "down", "always"
"""How a wait can be read: what is taken away are its credits; it is true whatever comes."""


class Cut(NamedTuple):
    """How far the actors can get before what is held; `known` are steps of wires that were found to be in it."""

    held: Event
    positions: list[int]
    known: set[Event]

    def has(self, event: Event) -> bool:
        """Say whether an event is in it: an actor's by its position, a wire's as soon as all that it needs is."""
        stack = [event]
        met: set[Event] = set()
        while stack:
            one = stack.pop()
            if one is self.held or (one.issue is None and one.index >= self.positions[one.thread]):
                return False
            if one.issue is not None and one not in self.known and one not in met:
                met.add(one)
                stack += one.needs
        self.known.update(met)
        return True


class Window(NamedTuple):
    """An epoch that can be current while a wait is pending; what the wait is sure of in it, and what else can come."""

    number: int
    epoch: Epoch
    sure: int
    come: list[Event]


class Proof:
    """A program with a run and cuts.

    Attributes:
        run: the events in their order.
        history: the epochs of each cell.
        epochs: those in which each wait on a cell with Sets may pass.
        ways: of waits that are not read as their comparison says: DOWN or ALWAYS.
        cuts: by thread, the (index, cut) of what is held, ascending.

    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.run: list[Event] = []
        self.history = [[Epoch(start)] for _, start, _, _ in program.cells]
        self.epochs: dict[Event, set[int]] = {}
        self.ways: dict[Event, str] = {}
        self.cuts: dict[int, list[tuple[int, Cut]]] = defaultdict(list)
        self._sure: dict[tuple[Event, int], int] = {}

    def hold_of(self, event: Event) -> Cut | None:
        """Return the cut of an event, or the nearest of a later one of its thread, before which it comes."""
        held = self.cuts.get(event.thread, [])
        at = bisect_left(held, event.index, key=operator.itemgetter(0))
        return held[at][1] if at < len(held) else None

    def before(self, x: Event, y: Event) -> bool:
        """Say whether y cannot happen, in any schedule, while x has not."""
        if x.thread == y.thread:
            return x.index <= y.index
        if x in y.needs or (y.issue is not None and y.issue.thread == x.thread and x.index <= y.issue.index):
            return True
        cut = self.hold_of(x)
        return cut is not None and not cut.has(y)

    def relation(self, wait: Event, change: Event) -> str:
        """Say what a change of its cell is to a wait: "sure", "after" it, or "free" to come at any time.

        Own changes before the wait are sure if they act at once, are forwarded, or a quiet awaited them. What is
        queued behind a copy is not forwarded.
        """
        issue = change.issue or change
        if issue.thread != wait.thread:
            return "free"
        if issue.index >= wait.index:
            return "after"
        quiets = self.program.quiets[wait.thread]
        at = bisect_left(quiets, (issue.index + 1, 0))
        quiet = at < len(quiets) and quiets[at][1] < wait.index
        forwarded = self.program.forwarding and not change.queued
        return "sure" if change.issue is None or forwarded or quiet else "free"

    def sign(self, wait: Event) -> int:
        """Return 1 if what is added is a credit to the wait, -1 if what is taken away is."""
        return -1 if wait.how in ("Le", "Lt") or self.ways.get(wait) == DOWN else 1

    def sure(self, wait: Event, number: int) -> int:
        """Return what a wait sees in an epoch before any free credit has come.

        Changes of others against its direction count as in the run: S2 sees that they are ordered with the wait.
        """
        if (wait, number) not in self._sure:
            epoch, sign = self.history[wait.cell][number], self.sign(wait)
            sure = []
            for add in epoch.adds:
                relation = self.relation(wait, add)
                against = epoch.opposes(add, sign)
                if relation == "sure" or (relation == "free" and against and add.step < wait.step):
                    sure.append(add)
            self._sure[wait, number] = fold(epoch.kind, epoch.base, sure)
        return self._sure[wait, number]

    def free(self, wait: Event, epoch: Epoch) -> list[Event]:
        """Return the credits of an epoch of which the wait does not know whether they have come."""
        sign = self.sign(wait)
        return [add for add in epoch.adds if epoch.helps(add, sign) and self.relation(wait, add) == "free"]

    def current(self, wait: Event) -> Iterator[Window]:
        """Yield the epochs that can be current while a wait is pending, with what is sure and what can come.

        Without cuts all can be, with all credits.
        """
        cut = self.hold_of(wait)
        for number, epoch in self.open(wait):
            come = [add for add in self.free(wait, epoch) if cut is None or cut.has(add)]
            yield Window(number, epoch, self.sure(wait, number), come)

    def open(self, wait: Event) -> Iterator[tuple[int, Epoch]]:
        """Yield the epochs that can be current while a wait is pending, with their numbers."""
        cut, epochs = self.hold_of(wait), self.history[wait.cell]
        for number, epoch in enumerate(epochs):
            if cut is not None and not self.has_begun(wait, epoch, cut):
                continue
            closers = epochs[number + 1].openers if number + 1 < len(epochs) else []
            if not any(self._is_over(wait, closer) for closer in closers):
                yield number, epoch

    def has_begun(self, wait: Event, epoch: Epoch, cut: Cut) -> bool:
        """Say whether an epoch has begun on a cut, in the eyes of a wait.

        Args:
            wait: on the cell.
            epoch: of that cell.
            cut: what has happened at most.

        """
        begins = (self.relation(wait, opener) == "sure" or cut.has(opener) for opener in epoch.openers)
        return not epoch.openers or any(begins)

    def _is_over(self, wait: Event, closer: Event) -> bool:
        """Say whether what ends an epoch has come whenever the wait is reached."""
        over = self.hold_of(closer)
        return self.relation(wait, closer) == "sure" or (over is not None and over.positions[wait.thread] < wait.index)

    def extent(self, wait: Event, epoch: Epoch) -> tuple[int, int]:
        """Return the least and the most that a pending wait, or a test, can see in an epoch, whatever its direction."""
        cut = self.hold_of(wait)
        surely: list[Event] = []
        maybe: list[Event] = []
        for add in epoch.adds:
            relation = self.relation(wait, add)
            if relation == "after" or (relation == "free" and cut is not None and not cut.has(add)):
                continue
            (surely if relation == "sure" or self.before_reaching(add, wait) else maybe).append(add)
        low = high = fold(epoch.kind, epoch.base, surely)
        if epoch.sums:
            return low + sum(min(add.change, 0) for add in maybe), high + sum(max(add.change, 0) for add in maybe)
        if any(not epoch.way(add) for add in maybe):
            _, _, lowest, highest = self.program.cells[wait.cell]
            return lowest, highest
        low, high = sorted((low, fold(epoch.kind, high, maybe)))
        return low, high

    def before_reaching(self, x: Event, y: Event) -> bool:
        """Say whether y cannot even be next, with all that it needs, while x has not happened."""
        cut = self.hold_of(x)
        return cut is not None and not (cut.positions[y.thread] >= y.index and all(cut.has(other) for other in y.needs))


def replay(proof: Proof, run: Sequence[tuple[int, int]]) -> None:
    """Take every step of the run, and keep what becomes of each cell.

    Args:
        proof: nothing was replayed in it before.
        run: (thread, how many of its next events), in order.

    Raises:
        RejectedError: the run takes more steps of a thread than it has, leaves some out, or a step cannot be taken.

    """
    threads = proof.program.threads
    at = [0] * len(threads)
    for thread, count in run:
        if not 0 <= thread < len(at) or not 0 < count <= len(threads[thread]) - at[thread]:
            raise RejectedError(f"the run takes more steps of thread {thread} than there are")
        for event in threads[thread][at[thread] : at[thread] + count]:
            _take(proof, event)
        at[thread] += count
    if at != list(map(len, threads)):
        raise RejectedError("the run does not take every step")


def _take(proof: Proof, event: Event) -> None:
    if not is_due(event):
        raise RejectedError(f"the run takes {event} before what it needs")
    if event.kind == "wait" and not passes(event, seen(proof, event)):
        raise RejectedError(f"the run takes {event} where it has to wait")
    if event.kind == "compare_exchange" and not passes(event, seen(proof, event)):
        event.update, event.change = "", 0  # it fails, and is a read
    event.step = len(proof.run)
    proof.run.append(event)
    if event.update:
        take(proof.history[event.cell], event, awaited=event.cell in proof.program.awaited)


def is_due(event: Event) -> bool:
    """Say whether all that an event needs was executed."""
    return all(other.step >= 0 for other in event.needs)


def seen(proof: Proof, wait: Event) -> int:
    """Return a cell's present value in the eyes of a wait: with its own pending changes, if they are forwarded.

    Args:
        proof: replayed as far as the wait.
        wait: a wait or a test.

    """
    value = proof.history[wait.cell][-1].value
    for own in proof.program.signals[wait.thread, wait.cell] if proof.program.forwarding else ():
        if own.issue is not None and own.step < 0 <= own.issue.step and not own.queued:
            value = own.change if own.sets else value + own.change
    return value


def take_epochs(proof: Proof, lines: Lines) -> None:
    """Take what is claimed of waits on cells with Sets.

    Args:
        proof: replayed.
        lines: each with the number that it has in the file; "wait" names one, "epochs" are their numbers, from 0.

    Raises:
        RejectedError: an event is no wait, stands there twice, or has no such epoch.

    """
    for number, line in lines:
        wait = _event(proof, line["wait"], number)
        if wait.kind != "wait" or wait in proof.epochs:
            raise RejectedError(f"{wait} is no wait, or stands here twice", number)
        if not all(0 <= epoch < len(proof.history[wait.cell]) for epoch in line["epochs"]):
            raise RejectedError(f"the cell of {wait} is not Set so often", number)
        proof.epochs[wait] = set(line["epochs"])


def take_ways(proof: Proof, lines: Lines) -> None:
    """Take how waits are read: an Eq or Ne may be read downwards, and any wait may be claimed always to be true.

    Args:
        proof: replayed.
        lines: each with the number that it has in the file; "wait" names one, "way" is `DOWN` or `ALWAYS`.

    Raises:
        RejectedError: an event is no wait, stands there twice, or cannot be read so.

    """
    for number, line in lines:
        wait = _event(proof, line["wait"], number)
        fits = line["way"] == ALWAYS or (line["way"] == DOWN and wait.how in ("Eq", "Ne"))
        if wait.kind != "wait" or wait in proof.ways or not fits:
            raise RejectedError(f"{wait} is no wait, stands here twice, or is not read so", number)
        proof.ways[wait] = line["way"]


def take_cuts(proof: Proof, lines: Lines) -> None:
    """Take the cuts, if they are closed.

    Args:
        proof: replayed, with its epochs and ways.
        lines: each with the number that it has in the file; "cut" is a position a stream, "hold" names events.

    Raises:
        RejectedError: a cut does not fit the streams or is not closed, or an event is held twice.

    """
    threads = proof.program.threads
    taken: set[Event] = set()
    for number, line in lines:
        positions = line["cut"]
        inside = (0 <= at <= len(stream) for at, stream in zip(positions, threads, strict=False))
        if len(positions) != proof.program.actors or not all(inside):
            raise RejectedError("a cut is one position in the stream of each actor", number)
        for place in line["hold"]:
            cut = Cut(_event(proof, place, number), positions, set())
            if cut.held in taken:
                raise RejectedError(f"{cut.held} is held twice", number)
            taken.add(cut.held)
            proof.program.spend(len(positions))
            leak = escapes(proof, cut)
            if leak is not None:
                raise RejectedError(f"{leak} can leave the cut before {cut.held}", number)
            proof.cuts[cut.held.thread].append((cut.held.index, cut))
    for cuts in proof.cuts.values():
        cuts.sort(key=operator.itemgetter(0))


def _event(proof: Proof, place: list[int], line: int) -> Event:
    thread, index = place
    threads = proof.program.threads
    if not 0 <= thread < len(threads) or not 0 <= index < len(threads[thread]):
        raise RejectedError(f"there is no event {index} of thread {thread}", line)
    return threads[thread][index]


def escapes(proof: Proof, cut: Cut) -> Event | None:
    """Return what can leave a cut before what it holds; None if the cut is closed.

    Wires stay inside by themselves: they are in the cut as far as what they need is.

    Args:
        proof: replayed, with its epochs and ways.
        cut: the positions, and what is held.

    """
    held = cut.held
    if held.issue is None and cut.positions[held.thread] > held.index:
        return held
    for actor, at in enumerate(cut.positions):
        for event in proof.program.threads[actor][at : at + 1]:
            stopped = event is held or not all(cut.has(other) for other in event.needs)
            if not stopped and (event.kind != "wait" or is_open(proof, event, cut)):
                return event
    return None


def is_open(proof: Proof, wait: Event, cut: Cut) -> bool:
    """Say whether a wait is true on a cut: in some epoch that has begun, enough free credits have come.

    Args:
        proof: replayed, with its epochs and ways.
        wait: a wait; it is not asked for a test, which never blocks.
        cut: what has happened at most.

    """
    epochs = proof.history[wait.cell]
    if proof.ways.get(wait) == ALWAYS:
        return True
    for number in proof.epochs.get(wait, ()) if len(epochs) > 1 else (0,):
        epoch = epochs[number]
        if proof.has_begun(wait, epoch, cut):
            come = [add for add in proof.free(wait, epoch) if cut.has(add)]
            if _can_have_passed(proof, wait, Window(number, epoch, proof.sure(wait, number), come)):
                return True
    return False


def _can_have_passed(proof: Proof, wait: Event, window: Window) -> bool:
    """Say whether a wait can pass before, or as soon as, all of these credits have come: the more, the sooner."""
    sure, sign = window.sure, proof.sign(wait)
    if not window.epoch.sums:
        return can_pass(wait, window.epoch.kind, sure, window.come)
    ends = sorted((sure, sign * LARGEST))
    enough = [value for value in values(wait, *ends)[::sign] if abs(value) < LARGEST and passes(wait, value)]
    return bool(enough) and sign * (sure + sum(add.change for add in window.come)) >= sign * enough[0]
