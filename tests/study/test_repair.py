"""What is broken is repaired: the cheapest change of the source that is proved, and it is what is printed."""

from __future__ import annotations

import planted
import pytest
from repairs import changed, looked_for, pasted, printed

from asyncsim.checking.record.locate import all_kernels, locate
from asyncsim.checking.verdict.check import check
from asyncsim.study import repair as repairing
from asyncsim.study import siblings
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.views.audit import audit_text

# Repairs know signals, not words: those of `kernels.gpu` are not looked for.
EXHIBITS = {name: made for name, made in all_kernels().items() if made.finds and not name.startswith("gpu.")}
RANKS = {"field.f14": 2, "field.f15": 2, "field.f16": 4, "recursive_doubling": 4}
BEYOND = {
    "field.f10_parity_per_handle_slots_shared:buggy",
    "field.f14_zero_size_rank_skips_signals:buggy",
    "field.f15_divergent_trip_counts:buggy",
    "field.f16_group_index_used_as_rank:buggy",
    "field.f24_flag_of_another_block:buggy",
    "field.f25_two_streams_one_communicator:buggy",
    "field.f33_two_epochs_for_one_scratch:buggy",
    "field.f34_banks_of_two_strides:buggy",
    "field.f35_baseline_of_each_block:buggy",
    "field.f36_grid_barrier_without_a_round:buggy",
    "field.f38_pad_of_a_smaller_team:buggy",
    "field.f39_window_larger_than_the_ring:buggy",
    "field.f40_set_flag_of_many_producers:buggy",
    "field.f42_late_flag_of_an_epoch_given_up:buggy",
    "field.f43_each_survivor_its_own_dead:buggy",
    "field.f44_flags_cleaned_at_readmission:buggy",
    "field.f50_locks_zeroed_without_a_fence:buggy",
}
"""What no change of these kinds repairs: counters, epochs and indexes that are wrong from the ground up."""


def ranks_of(name):
    return next((ranks for start, ranks in RANKS.items() if name.startswith(start)), 3)


# ---- what is printed is what was judged


@pytest.mark.parametrize("name", [name for name, kernel in EXHIBITS.items() if "refused" not in map(str, kernel.finds)])
def test_the_printed_repair_of_an_exhibit_pasted_is_proved(name, tmp_path):
    audited = looked_for(EXHIBITS[name], ranks=ranks_of(name))
    if not audited.refuted or "not the order of operations" in audited.unrepaired:
        assert audited.repairs == []
        return
    assert bool(audited.repairs) == (name not in BEYOND)
    if audited.repairs:
        check_pasted(audited, tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        "all_to_one", "bare", "by_helper", "by_helper_with_a_barrier", "early", "early_by_a_line", "memory_elsewhere",
        "no_credit", "one_too_few", "relaxed", "source_reused", "streams", "streams_in_a_loop", "two_puts",
        "without_golden", "wrong_neighbour",
    ],
)  # fmt: skip
def test_the_printed_repair_of_a_mistake_pasted_is_proved(name, tmp_path):
    check_pasted(looked_for(getattr(planted, name), ranks=3), tmp_path)


def check_pasted(audited, folder):
    case, best = audited.report.case, audited.repairs[0]
    assert audited.report.verdict == REFUTED
    kernel = pasted(audited, folder)
    for model in best.report.models:
        again = check(kernel, ranks=case.ranks, calls=case.calls, memory=model)
        assert again.verdict == PROVED
        assert model != case.memory or again.steps == best.report.steps


# ---- each kind


def test_the_right_neighbour_is_named():
    audited = looked_for(planted.wrong_neighbour, ranks=3)
    assert [(made.kind, made.operations) for made in audited.repairs] == [("neighbour", 0)]
    assert changed(audited) == (["await rank.notify(free.at(right)[c], 1)"], ["await rank.notify(free.at(left)[c], 1)"])
    assert "PROVED under sc, ldst and nic with `left` for `right` at line" in audit_text(audited)
    assert "it adds no operation" in audit_text(audited)


def test_a_flag_to_the_wrong_rank_is_a_hang_and_is_repaired():
    audited = looked_for(planted.all_to_one, ranks=3)
    assert audited.report.findings[0].kind == "deadlock"
    assert changed(audited)[1] == ["await rank.notify(cell.at(right)[0], 1)"]


def test_a_credit_that_comes_back_is_waited_for():
    audited = looked_for(planted.no_credit, ranks=3)
    assert audited.repairs[0].kind == "credit"
    assert changed(audited) == ([], ["await rank.wait(free[c] >= 1, consume=True)"])
    assert "note: signal free is notified, first at planted.py:" in " ".join(audit_text(audited).split())


def test_a_line_that_is_too_early_is_moved():
    audited = looked_for(planted.early_by_a_line, ranks=3)
    assert audited.repairs[0].kind == "move"
    assert changed(audited)[1] == ["out = await rank.load(box[:])  # the box"]


def test_a_line_is_moved_behind_what_is_awaited_in_a_return():
    audited = looked_for(planted.early, ranks=3)
    assert audited.repairs[0].kind == "move"
    assert changed(audited)[1] == [
        "result = await rank.load(box[:])", "await rank.notify(read.at(left)[0], 1)", "return result",
    ]  # fmt: skip


def test_a_count_that_is_one_too_few_is_raised():
    audited = looked_for(planted.one_too_few, ranks=3)
    assert changed(audited)[1] == ["await rank.wait(arrived[0] >= rank.size - 1)"]


@pytest.mark.parametrize(
    ("kernel", "kind", "line"),
    [
        (planted.relaxed, "release", "await rank.notify(cell.at(right)[0], 1)"),
        (planted.two_puts, "fence", "await rank.fence()"),
        (planted.source_reused, "quiet", "await rank.quiet()"),
    ],
)
def test_what_lands_late_is_ordered_by_the_cheapest_word(kernel, kind, line):
    audited = looked_for(kernel, ranks=3)
    assert audited.repairs[0].kind == kind
    assert changed(audited)[1] == [line]


def test_streams_that_need_each_other_meet():
    audited = looked_for(planted.streams_in_a_loop, ranks=2)
    assert audited.repairs[0].kind == "sync"
    assert "both = rank.stream_barrier(2)" in changed(audited)[1]
    assert changed(audited)[1].count("await rank.sync(both)") == 2


def test_a_signal_for_each_place_and_one_credit_to_begin_with_against_the_next_call():
    audited = looked_for(planted.bare, ranks=3)
    declared = [line for line in changed(audited)[1] if "Signal(" in line]
    assert declared == ['credit_2 = Signal("credit_2", ("P",))', 'credit_3 = Signal("credit_3", ("P",), start=1)']
    waits = [line for line in changed(audited)[1] if "rank.wait" in line]
    assert [line.endswith(", consume=True)") for line in waits] == [True, True]  # so nobody counts how often


def test_a_helper_of_other_kernels_is_given_nothing():
    audited = looked_for(planted.by_helper, ranks=3)
    assert not any("half" in line for line in printed(audited) if line[0] == "+")


def test_other_kernels_of_the_same_program_are_judged_and_named():
    audited = looked_for(locate("all_gather:pull_no_end_barrier"), ranks=3)
    assert audited.repairs[0].siblings == ("pull",)
    assert "it changes pull, too, which is as good as before" in " ".join(audit_text(audited).split())


def test_other_kernels_that_were_not_judged_are_named(monkeypatch):
    monkeypatch.setattr(siblings, "MOST_CHECKS", 0)
    audited = looked_for.__wrapped__(locate("all_gather:pull_no_end_barrier"), ranks=3)
    assert audited.repairs[0].to_json()["unjudged"] == ["pull"]
    assert "it changes pull, too, which is not judged" in " ".join(audit_text(audited).split())


TWO = """
import numpy as np
from asyncsim import Signal, Window, kernel
box, cell = Window("box", (2,), np.int64), Signal("cell", (1,))

async def arrive(rank, box, cell, place):
    to = box.at((rank.id + 1 + place) % rank.size)
    await rank.store(to[place], rank.id)
    await rank.notify(cell.at((rank.id + 1 + place) % rank.size)[0], 1)

async def all_here(rank, cell):
    await rank.wait(cell[0] >= 1)

def golden(xs):
    return [(r + 2) % 3 + (r + 1) % 3 for r in range(3)]

@kernel(memory=[box, cell], inputs=lambda P, call, rng: [0] * P, golden=golden)
async def two(rank, x, box, cell):
    await arrive(rank, box, cell, 0)
    await arrive(rank, box, cell, 1)
    await all_here(rank, cell)
    return (await rank.load(box[0])) + (await rank.load(box[1]))
"""
ONE = """
@kernel(memory=[box, cell])
async def one(rank, box, cell):
    await arrive(rank, box, cell, 0)
    await all_here(rank, cell)
    return await rank.load(box[0])

@kernel(memory=[box, cell])
async def none(rank, box, cell):
    await arrive(rank, box, cell, 0)
"""


def repaired(folder, text):
    folder.mkdir()
    (folder / "mine.py").write_text(text, encoding="utf-8")
    return looked_for(locate(f"{folder}/mine.py:two"), ranks=3, calls=1, memory="sc")


def test_a_repair_that_breaks_another_kernel_of_the_file_is_not_offered(tmp_path):
    alone = repaired(tmp_path / "alone", TWO)
    assert changed(alone)[1] == ["await rank.wait(cell[0] >= 2)"]
    assert not alone.repairs[0].siblings
    both = repaired(tmp_path / "both", TWO + ONE)
    assert changed(both)[1] != ["await rank.wait(cell[0] >= 2)"]
    (tmp_path / "made").mkdir()
    assert check(pasted(both, tmp_path / "made"), ranks=3, calls=1).verdict == PROVED
    sibling = locate(f"{tmp_path}/made/mine.py:one")
    assert check(sibling, ranks=3, calls=1).verdict == PROVED
    assert "none" not in both.repairs[0].siblings  # the change does not reach it


def test_a_repair_that_holds_on_some_ranks_only_says_so():
    audited = looked_for(locate("recursive_doubling:in_place_one_sync"), ranks=4, calls=1)
    assert audited.repairs[0].fails == (3,)
    assert "it is not right on 3 ranks" in audit_text(audited)
    assert audited.repairs[0].to_json()["fails"] == [3]


# ---- where there is none


def test_what_is_wrong_in_every_schedule_is_no_matter_of_order():
    audited = looked_for(planted.wrong_anyhow, ranks=2)
    assert "no change was found that makes it right; what is wrong is not the order" in audit_text(audited)


def test_a_kernel_without_a_name_in_its_file_is_left_as_it_is():
    audited = looked_for(planted.made_inside(), ranks=2)
    assert audited.repairs == []
    assert audited.unrepaired == "none was looked for: it has no name of its own in the module of its program"


def test_what_was_not_tried_is_told(monkeypatch):
    monkeypatch.setattr(repairing, "TRIES", 1)
    audited = looked_for.__wrapped__(planted.bare, ranks=2)
    assert audited.repairs == []
    assert "of these kinds only 1 changes each were tried: move, credit, barrier" in audited.unrepaired
