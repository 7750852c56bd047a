"""What a kernel says of when things land, and the note that it means nothing under ``sc``."""

from __future__ import annotations

import numpy as np
import pytest
from played import CELL, KNOWN, ROW, Played, only

from asyncsim import Signal, Window, check, kernel
from asyncsim.collectives.allgather import allgather
from asyncsim.trace.columns import Columns
from asyncsim.trace.late import models_said

SAID = {
    "put": lambda rank, row, cell: rank.put(row.at(1)[0], 7),
    "put with signal": lambda rank, row, cell: rank.put_signal(row.at(1)[0], 7, cell.at(1)[0]),
    "non-blocking get": lambda rank, row, cell: rank.get(row[0], row.at(1)[1], nbi=True),
    "relaxed notify": lambda rank, row, cell: rank.notify(cell.at(1)[0], order="relaxed"),
    "fence": lambda rank, row, cell: rank.fence(),
    "quiet": lambda rank, row, cell: rank.quiet(),
}
UNSAID = {
    "remote store": lambda rank, row, cell: rank.store(row.at(1)[0], 7),
    "blocking get": lambda rank, row, cell: rank.get(row[0], row.at(1)[1]),
    "release notify": lambda rank, row, cell: rank.notify(cell.at(1)[0]),
}


SCOPED = {
    "scoped notify": lambda rank, row, cell: rank.notify(cell.at(1)[0], scope="rank"),
    "relaxed read": lambda rank, row, cell: rank.read(cell.at(1)[0], order="relaxed"),
    "acquire fence": lambda rank, row, cell: rank.fence(order="acquire"),
}


@pytest.mark.parametrize("word", [*SAID, *UNSAID, *SCOPED])
@pytest.mark.parametrize("model", ["sc", "nic"])
def test_words_of_when_things_land_are_known_by_their_run(word, model):
    events = Played(only(0, {**SAID, **UNSAID, **SCOPED}[word]), [KNOWN, CELL], model=model).events
    models = ("ldst", "nic") if word in SAID else ("gpu",) if word in SCOPED else ()
    assert models_said(events) == models
    assert models_said(Columns.of(events)) == models


@pytest.mark.parametrize(
    ("model", "order", "notes"), [("sc", "relaxed", 1), ("sc", "release", 0), ("ldst", "relaxed", 0)]
)
def test_a_check_says_that_sc_does_not_hear_them(model, order, notes):
    @kernel(memory=[ROW, CELL])
    async def push(rank, row, cell):
        if rank.id == 0:
            await rank.store(row.at(1)[0], 7)
            await rank.notify(cell.at(1)[0], order=order)

    report = check(push, ranks=2, calls=1, memory=model)
    assert len([note for note in report.notes if "means nothing under sc; try --memory ldst" in note]) == notes


def test_what_a_composite_says_is_not_its_callers_word():
    async def gather(rank, rows, signal):
        await allgather(rank, np.zeros(3, np.int32), rows, signal)

    rows, signal = Window("rows", ("P", 3), np.int32), Signal("signal", ("P", 1))
    events = Played(gather, [rows, signal]).events
    assert any(event.op.kind == "put" for event in events)
    assert not models_said(events)
    assert not models_said(Columns.of(events))


def test_where_an_order_is_said_relaxed_and_fence_are_words_of_gpu():
    async def push(rank, row, cell):
        await rank.fence(order="release")
        await rank.notify(cell.at(1)[0], order="relaxed")

    events = Played(only(0, push), [KNOWN, CELL]).events
    assert models_said(events) == models_said(Columns.of(events)) == ("gpu",)


def test_a_kernel_is_judged_under_gpu_where_it_says_an_order():
    @kernel(memory=[ROW, CELL], inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [7] * len(xs))
    async def push(rank, _, row, cell):
        peer = 1 - rank.id
        await rank.store(row.at(peer)[0], 7)
        await rank.notify(cell.at(peer)[0])
        await rank.wait(cell[0] >= 1, order="relaxed")
        return await rank.load(row[0])

    assert check(push, ranks=2, calls=1, memory="sc").verdict == "PROVED"
    report = check(push, ranks=2, calls=1)
    assert (report.verdict, report.models) == ("REFUTED", ("gpu",))
    notes = check(push, ranks=2, calls=1, memory="sc").notes
    assert any("try --memory gpu" in each for each in notes)
