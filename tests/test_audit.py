"""What each barrier is for, measured; and the barrier that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from audits import box, check_witnesses, guards, numbers, source, verdicts

from asyncsim import Signal, Window, barrier, kernel
from asyncsim.checking.audit import audit
from asyncsim.checking.check import check
from asyncsim.checking.report import PROVED, REFUTED
from asyncsim.views.audit import audit_text
from kernels import all_reduce, recursive_doubling, reduce_scatter

# ---- the answers of the tutorial's questions


@pytest.fixture(scope="module")
def builtin():
    return audit(reduce_scatter.builtin, ranks=4)


def test_what_the_barriers_of_reduce_scatter_are_for(builtin):
    assert (builtin.report.verdict, builtin.once.verdict, builtin.refuted) == (PROVED, PROVED, False)
    ready, post, epilogue = builtin.rows
    assert source(ready).endswith("# ready: every chunk is staged")
    assert guards(ready) == [("RAW", "within the call", 1, 12)]
    assert source(post).endswith("# read: the next call may stage")
    assert verdicts(post) == [PROVED, REFUTED]
    assert guards(post) == [("WAR", "against the next call", 2, 12)]
    assert post.guards[0].finding.sides[1].phase == "stage"
    assert epilogue.part.kind == "credits"
    assert guards(epilogue) == [("credits", "", 1, 12), ("RAW", "within a later call", 2, 12)]
    assert {side.call for side in epilogue.guards[1].finding.sides} == {1}
    assert not any(row.redundant for row in builtin.rows)
    assert builtin.repairs == []


def test_every_line_of_it_is_backed_by_a_witness_that_replays(builtin):
    check_witnesses(builtin)


def test_it_reads_as_a_table(builtin):
    text = audit_text(builtin)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert text.startswith("PROVED  kernels.reduce_scatter:builtin, P = 4, 2 calls, sc\n  as it stands: one run of ")
    assert "part guards count witness" in lines
    ready, post, epilogue = (row.part.site[0] for row in builtin.rows)
    assert f"barrier {ready} RAW within the call 12 1" in lines
    assert f"barrier {post} nothing within one call 2" in lines
    assert any(line.endswith("WAR against the next call's stage 12 3") for line in lines)
    assert f"credits {epilogue} credits: some are left over 12 4" in lines
    assert any(line.endswith("RAW: the next call's wait passes early 12 5") for line in lines)
    assert text.count("    asyncsim replay as1.") == 5
    assert lines[-1].startswith("3 parts in ")


def test_the_second_barrier_of_a_mesh_guards_its_own_call():
    audited = audit(all_reduce.mesh, ranks=3)
    ready, post, epilogue = audited.rows
    assert guards(ready)[0] == ("RAW", "within the call", 1, 6)
    assert guards(post)[0] == ("WAR", "within the call", 1, 6)
    assert guards(epilogue)[0] == ("credits", "", 1, 6)
    check_witnesses(audited)


def test_barriers_inside_a_composite_are_told_apart():
    rows = audit(all_reduce.builtin, ranks=2).rows
    assert [row.part.kind for row in rows] == ["barrier", "barrier", "credits"]
    assert [guards(row)[0][0] for row in rows] == ["RAW", "WAR", "credits"]
    assert len({row.part.site[0] for row in rows}) == 1
    assert all(inner.startswith("asyncsim/collectives/all_reduce.py:") for row in rows for inner in row.part.site[1:])


def test_the_read_complete_barrier_of_a_ring_is_redundant_within_one_call():
    once = audit(all_reduce.ring_by_hand, ranks=3, calls=1)
    _, ready, _, read, _ = once.rows
    assert [row.part.kind for row in (ready, read)] == ["wait", "wait"]
    assert guards(ready)[0][:2] == ("RAW", "within the call")
    assert (guards(read), read.redundant) == ([], True)
    assert "nothing: redundant" in audit_text(once)
    check_witnesses(once)
    part = str(read.part.edit)
    assert check(all_reduce.ring_by_hand, ranks=3, edits=[part]).findings[0].title == "WAR race, next call"


def test_a_composite_after_another_makes_a_barrier_redundant():
    rows = audit(all_reduce.two_phase, ranks=2).rows
    assert [row.redundant for row in rows if row.part.kind == "barrier"] == [False, True, False]


def test_a_notify_guards_against_a_hang():
    audited = audit(recursive_doubling.two_syncs, ranks=2, calls=1)
    assert [(row.part.kind, row.guards[0].what) for row in audited.rows] == [
        ("notify", "deadlock"), ("wait", "RAW"), ("notify", "deadlock"), ("wait", "WAR"), ("credits", "credits"),
    ]  # fmt: skip
    check_witnesses(audited)


def test_finely_the_waits_and_notifies_of_a_barrier_are_parts_too():
    audited = audit(reduce_scatter.builtin, ranks=2, calls=1, fine=True)
    assert [(row.part.kind, guards(row)[:1]) for row in audited.rows[:3]] == [
        ("barrier", [("RAW", "within the call", 1, 2)]),
        ("notify", [("deadlock", "", 1, 2)]),
        ("wait", [("RAW", "within the call", 1, 2)]),
    ]
    assert audited.rows[1].part.site[0] == audited.rows[0].part.site[0]
    assert audited.rows[1].part.site[1].startswith("asyncsim/collectives/barrier.py:")


# ---- repair


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_missing_barrier_of_reduce_scatter_is_found(ranks):
    audited = audit(reduce_scatter.no_post_barrier, ranks=ranks)
    best = audited.repairs[0]
    (edit,) = best.edits
    (line,) = edit.site
    text = Path(reduce_scatter.__file__).read_text("utf-8").splitlines()[int(line.rpartition(":")[2]) - 1]
    assert text.strip() == "await rank.store(data[rank.id], acc)"  # behind the reduce, where `builtin` has it
    assert best.between == "between the reduce and the next call's stage"
    assert best.meetings == 2
    assert check(reduce_scatter.no_post_barrier, ranks=ranks, edits=[str(edit)]).verdict == PROVED
    check_witnesses(audited)
    shown = " ".join(audit_text(audited).split())
    assert f"repair PROVED with a barrier before {line}, between the reduce and the next call's stage" in shown
    assert "await barrier(rank, met, generation=n) there, where n is rank.call + 1" in shown


def test_what_the_repair_says_as_code_is_right():
    met = Signal("met", ("P", 1))

    @kernel(memory=[*reduce_scatter.hand.memory, met], inputs=reduce_scatter.inputs, golden=reduce_scatter.golden)
    async def repaired(rank, x, data, signal, met):
        result = await reduce_scatter.hand(rank, x, data, signal)
        await barrier(rank, met, generation=rank.call + 1)
        return result

    assert check(reduce_scatter.hand, ranks=3).verdict == REFUTED
    assert check(repaired, ranks=3, calls=3).verdict == PROVED


def test_a_race_in_a_loop_needs_a_barrier_each_time():
    audited = audit(recursive_doubling.in_place_one_sync, ranks=4, calls=1)
    (best, *_) = audited.repairs
    assert best.edits[0].every
    assert best.meetings == 2
    shown = " ".join(audit_text(audited).split())
    assert "with a barrier each time before " in shown
    assert "where n is how many such barriers there were" in shown


def test_two_races_may_need_two_barriers():
    audited = audit(reduce_scatter.hand_no_epilogue, ranks=2)
    assert len(audited.repairs[0].edits) == 2
    assert audited.repairs[0].between.count("between the ") == 2
    assert " and at the end of each call" in audit_text(audited) or "at the end of each call and " in audit_text(
        audited
    )
    check_witnesses(audited)


def test_what_no_barrier_repairs_is_said():
    audited = audit(reduce_scatter.zero_seed, ranks=2, calls=1)
    assert audited.repairs == []
    assert "repair  no barrier was found that makes it right" in audit_text(audited)


def test_a_place_to_which_only_some_ranks_come_is_none():
    @kernel(memory=[box], inputs=numbers)
    async def uneven(rank, x, box):
        """Rank 0 stores to all others: they do not come to that line, and have no other one before it."""
        if rank.id == 0:
            for peer in rank.peers:
                await rank.store(box.at(peer)[:], x)
        return await rank.load(box[:])

    audited = audit(uneven, ranks=3, calls=1)
    assert audited.report.findings[0].hazard == "RAW"
    number = uneven.program.__code__.co_firstlineno + 6  # the load, behind which rank 0 has stored
    assert [list(map(str, made.edits)) for made in audited.repairs] == [[f"barrier before test_audit.py:{number}"]]


def test_a_barrier_with_which_the_kernel_raises_is_no_repair():
    @kernel(memory=[box, Window("other", (1,), initialised=True)])
    async def wants_the_old_value(rank, box, other):
        """Rank 1 insists on what was there before rank 0 stored."""
        if rank.id == 0:
            for _ in range(3):
                await rank.load(other[0])
            await rank.store(box.at(1)[0], 1.0)
        await rank.load(other[0])
        if rank.id == 1 and await rank.load(box[0]) == 1.0:
            raise ValueError("too late")

    audited = audit(wants_the_old_value, ranks=2, calls=1)
    assert audited.refuted
    assert audited.repairs == []
