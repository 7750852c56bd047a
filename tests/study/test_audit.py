"""What each barrier is for, measured; and what is missing."""

from __future__ import annotations

import pytest
from audits import check_witnesses, guards, source, verdicts

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.study.audit import audit
from asyncsim.trace.finding import PROVED, REFUTED
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
def test_a_missing_barrier_of_reduce_scatter_is_repaired_by_less(ranks):
    audited = audit(reduce_scatter.no_post_barrier, ranks=ranks)
    best = audited.repairs[0]
    assert (best.kind, best.operations) == ("credit", 4 * ranks * (ranks - 1))
    assert best.between == "between the reduce and the next call's stage"
    check_witnesses(audited)
    shown = " ".join(audit_text(audited).split())
    assert "repair PROVED with a credit `credit`, with one to begin with, given behind line" in shown
    assert f"it adds {best.operations} operations to a run" in shown


def test_what_cannot_be_repaired_is_said():
    audited = audit(reduce_scatter.zero_seed, ranks=2, calls=1)
    assert audited.repairs == []
    assert "repair  no change was found that makes it right; what is wrong is not" in audit_text(audited)


def test_the_audit_is_made_under_the_model_that_refutes():
    audited = audit(locate("field.f27_flag_overtakes_data:buggy"), ranks=2)
    assert (audited.report.case.memory, audited.report.verdict) == ("ldst", REFUTED)
    assert audited.repairs[0].kind == "release"
    assert "repair  PROVED under sc, ldst and nic with a release in place of order=order" in audit_text(audited)
    assert "between the landing at kernels/field/f27_flag_overtakes_data.py:" in " ".join(audit_text(audited).split())
