"""Certificates: what the analysis found of a clean run, so that who does not trust it can check it.

A certificate lists the operations, the run, and *cuts*: of an event that is held, how far the others get,
as the frontiers (or clocks, where they decided) say. `asyncsim.certify` says how it is checked and why that is enough,
and `asyncsim.certify.reading` what the lines look like. It knows nothing of this module, nor this of it.

Only those events are held of which something must be known: the earlier of two conflicting accesses, the
changes and waits of cells that are Set, changes by others against the waits of their cell, comparisons
that more credits can make false, tests, and the changes of a cell whose range is tight.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.edges import edges_of, within_ranks
from asyncsim.analysis.order import order_of
from asyncsim.analysis.scopes import less_ordering
from asyncsim.analysis.streams import ALWAYS, DOWN, Streams
from asyncsim.trace.cells import UNSTABLE
from asyncsim.trace.conflict import present_accesses
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE
from asyncsim.trace.kinds import ARRIVE, ATOMIC, COMPARE_EXCHANGE, EXCHANGING, POLLING, SIGNALLING, STARTING
from asyncsim.trace.region import ADD, READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.analysis.analyse import Analysis
    from asyncsim.analysis.guards import Guards
    from asyncsim.analysis.precede import Order
    from asyncsim.analysis.streams import History, Place
    from asyncsim.trace.event import Trace
    from asyncsim.trace.op import Op
    from asyncsim.trace.region import Region

FORMAT = "asyncsim certificate 1"
_KNOWN = frozenset({ARRIVE, ATOMIC, COMPARE_EXCHANGE})
_TELLING = SIGNALLING | STARTING
"""Comparisons that more credits can make false."""


def certificate(trace: Trace, analysis: Analysis) -> list[str]:
    """Return the lines of the certificate of a clean run.

    Args:
        trace: the run.
        analysis: what was said of it.

    Raises:
        MisuseError: there is none: the analysis found something, the run did not complete, it polls data, it has an
            operation or an order that the checker does not know, or the kernel was edited.

    """
    if trace.header.edits:
        raise MisuseError(
            "a run of an edited kernel has no certificate: the file would name the kernel without the edits"
        )
    streams = Streams(trace)
    if not analysis.clean or streams.ending != COMPLETE:
        raise MisuseError("only a complete run in which the analysis found nothing has a certificate")
    if trace.footer is not None and trace.footer.pending:
        standing = trace.footer.pending[0].op.actor.title
        raise MisuseError(f"{standing} stands where the run ends, and a certificate is of operations that are executed")
    if any(event.op.kind in POLLING for event in trace.events):
        raise MisuseError("it polls data, and a certificate says nothing of what a predicate accepts")
    if less_ordering(trace):
        raise MisuseError("it says orders or scopes that matter, and a certificate knows nothing of them")
    strange = next((event.op.kind for event in trace.events if event.op.kind in EXCHANGING - _KNOWN), None)
    if strange is not None:
        raise MisuseError(f"of what reads and changes a cell in one step a certificate knows no {strange!r}")
    if any(event.op.cell is not None and event.op.cell.region is not None for event in trace.events):
        raise MisuseError("it synchronises on words of windows, and a certificate knows the cells of signals alone")
    if trace.header.world.mixed:
        raise MisuseError("windows of different dtypes share memory; a certificate knows one size of element a window")
    return certificate_lines(streams, *order_of(streams))


def operations_lines(trace: Trace) -> list[dict[str, Any]]:
    """Return what a certificate of this run would say before it proves anything: its header, and a line an actor."""
    streams = Streams(trace)
    writer = _Writer(streams)
    lines = [writer.stream(number) for number, issuer in enumerate(streams.issuer) if issuer is None]
    return [writer.header(), *lines]


def certificate_lines(streams: Streams, order: Order, guards: Guards) -> list[str]:
    """Return the lines; they prove something only of a clean run.

    Args:
        streams: of the run.
        order: what precedes what in every schedule; its cuts are written down.
        guards: in which epochs each wait may pass.

    """
    writer = _Writer(streams)
    lines = [writer.stream(number) for number, issuer in enumerate(streams.issuer) if issuer is None]
    lines.append({"run": _run(streams)})
    for history in streams.histories.values():
        lines += [
            {"wait": wait.place, "way": wait.way} for wait in history.waits
            if wait.way == ALWAYS or (wait.way == DOWN and wait.event.op.how in UNSTABLE)
        ]  # fmt: skip
        if len(history.epochs) > 1:
            local = {epoch.number: number for number, epoch in enumerate(history.epochs)}
            for wait in history.waits:
                epochs = sorted(local[number] for number in guards.goals[wait.place])
                lines.append({"wait": wait.place, "epochs": epochs})
    lines += _holds(streams, order)
    return [json.dumps(line, separators=(",", ":")) for line in (writer.header(), *lines)]


class _Writer:
    """Numbers the windows and cells that are used, and writes operations as plain data."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._world = streams.trace.header.world
        self._windows: dict[int, int] = {}
        self._cells: dict[int, int] = {}
        self._window_lines: list[list[Any]] = []
        self._cell_lines: list[list[int]] = []

    def header(self) -> dict[str, Any]:
        """Return the header; the streams come first, because they say what is used."""
        head = self._streams.trace.header
        return {
            "format": FORMAT, "kernel": head.kernel, "source": head.source, "ranks": head.world.ranks,
            "calls": head.calls, "memory": head.memory, "seed": head.seed,
            "windows": self._window_lines, "cells": self._cell_lines,
        }  # fmt: skip

    def stream(self, number: int) -> dict[str, Any]:
        """Return the line of an actor."""
        actor = self._streams.actors[number]
        ops = [self._op(event.op) for event in self._streams.events[number]]
        return {"actor": actor.name, "rank": actor.rank, "ops": ops}

    def _op(self, op: Op) -> dict[str, Any]:
        fields: dict[str, Any] = {"kind": op.kind}
        if op.accesses:
            fields["access"] = [[self._window(one.region), one.mode, _ends(one.region)] for one in op.accesses]
        if op.cell is not None:
            fields |= {"cell": self._cell(op), "how": op.how}
        fields |= {
            name: value
            for name, value in (
                ("amount", op.amount), ("consume", op.consume), ("relaxed", op.relaxed), ("late", op.late),
                ("link", op.link), ("update", op.update), ("operand", op.operand), ("result", op.result),
            )
            if value
        }  # fmt: skip
        return fields

    def _window(self, region: Region) -> int:
        if region.slot not in self._windows:
            self._windows[region.slot] = len(self._windows)
            self._window_lines.append([region.owner, region.dtype.itemsize, region.dtype.kind in "biu"])
        return self._windows[region.slot]

    def _cell(self, op: Op) -> int:
        cell = op.cell
        assert cell is not None  # noqa: S101 - for the type checker: asked for by its caller
        if cell.slot not in self._cells:
            self._cells[cell.slot] = len(self._cells)
            self._cell_lines.append([cell.owner, self._world.start_of(cell), cell.low, cell.high])
        return self._cells[cell.slot]


def _ends(region: Region) -> list[int]:
    return [end for span in region.spans for end in span]


def _run(streams: Streams) -> list[list[int]]:
    """Return the run as [thread, how often] pairs."""
    runs: list[list[int]] = []
    for event in streams.trace.events:
        number = streams.number[event.op.actor.order]
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def _holds(streams: Streams, order: Order) -> list[dict[str, Any]]:
    """Return the lines of what is held, one for all that share a cut."""
    tasks = [number for number, issuer in enumerate(streams.issuer) if issuer is None]
    cuts: dict[tuple[int, ...], list[Place]] = {}
    held = {*_data(streams), *_cells(streams)}
    for actor, index in sorted(held):
        cut = tuple(order.reach(actor, index, other) for other in tasks)
        cuts.setdefault(cut, []).append((actor, index))
    return [{"hold": places, "cut": cut} for cut, places in cuts.items()]


def _data(streams: Streams) -> Iterator[Place]:
    """Yield what to hold for accesses: the operation that ends the stretch in which one conflicts with a later one.

    Up to the next operation that can let somebody else go on, others get equally far whatever is held. So
    that one is held for all before it; for a landing, itself.
    """
    enabling = _enabling(streams)
    for number, index in _early(streams):
        if streams.issuer[number] is not None:
            yield number, index
            continue
        at = bisect_left(enabling[number], index)
        if at < len(enabling[number]):
            yield number, enabling[number][at]


def _enabling(streams: Streams) -> list[list[int]]:
    """Return by actor the indexes of the operations that can let others go on."""
    edges = edges_of(streams)
    sources = {
        source for place, needs in edges.items() if streams.issuer[place[0]] is None
        for source in needs if source[0] != place[0]
    }  # fmt: skip
    downwards = {slot for slot, history in streams.histories.items() if history.is_read_downwards}
    sources |= {streams.issue(landing) for landing, _ in within_ranks(streams)}
    return [
        [
            index
            for index, event in enumerate(stream)
            if event.op.kind in _TELLING
            or event.op.update
            or (event.op.consume and (event.op.amount < 0 or _slot(event.op) in downwards))
            or (number, index) in sources
        ]
        for number, stream in enumerate(streams.events)
    ]


def _slot(op: Op) -> int:
    return -1 if op.cell is None else op.cell.slot


def _early(streams: Streams) -> Iterator[Place]:
    """Yield each access that a later one in the run, of another thread, conflicts with."""
    touched: dict[int, set[int]] = defaultdict(set)
    touches: list[tuple[Place, int, list[tuple[Region, str]]]] = []
    for number, stream in enumerate(streams.events):
        for index, event in enumerate(stream):
            both = (*present_accesses(event.op, own=True), *present_accesses(event.op, own=False))
            accesses = [(one.region, one.mode) for one in dict.fromkeys(both)]
            touches.append(((number, index), event.step or 0, accesses))
            for region, _ in accesses:
                touched[region.slot].update(_ends(region))
    bounds = {slot: sorted(ends) for slot, ends in touched.items()}
    later: dict[tuple[int, int], dict[str, set[int]]] = defaultdict(lambda: {READ: set(), WRITE: set(), ADD: set()})
    for place, _, accesses in sorted(touches, key=lambda touch: -touch[1]):
        clashes = False
        for region, mode in accesses:
            for low, high in region.spans:
                ends = bounds[region.slot]
                for part in range(bisect_left(ends, low), bisect_left(ends, high)):
                    known = later[region.slot, part]
                    clashes = clashes or any(
                        known[other] - {place[0]}
                        for other in known
                        if not (mode == other == READ or (mode == other == ADD and region.dtype.kind in "biu"))
                    )
                    if len(known[mode]) < 2:  # noqa: PLR2004 - of two threads one is another than any
                        known[mode].add(place[0])
        if clashes:
            yield place


def _cells(streams: Streams) -> Iterator[Place]:
    """Yield what to hold for S1 to S5."""
    for history in streams.histories.values():
        changes = [place for place, _, _ in history.updates] + history.sets
        always = any(wait.way == ALWAYS for wait in history.waits)
        free = {
            place for wait in history.waits for place in history.against(wait.sign)
            if streams.relation(wait.place, place) == "free"
        }  # fmt: skip
        results = history.tests or any(wait.event.op.result for wait in history.waits)
        if len(history.epochs) > 1 or results or always or not history.is_sum or _is_tight(history):
            yield from changes
        yield from free
        yield from (test.place for test in history.tests)
        for wait in history.waits:
            plain = len(history.epochs) == 1 and history.is_sum and not wait.event.op.result
            if not plain or free or wait.way == ALWAYS or wait.event.op.how in UNSTABLE:
                yield wait.place


def _is_tight(history: History) -> bool:
    """Say whether all adds of an epoch together, or all subtractions, would leave the cell's range."""
    for epoch in history.epochs:
        if not epoch.is_sum:
            continue
        amounts = [amount for tally in epoch.tallies.values() for amount in tally.amounts]
        low, high = (epoch.base + sum(amount for amount in amounts if amount * sign > 0) for sign in (-1, 1))
        if low < history.cell.low or high > history.cell.high:
            return True
    return False
