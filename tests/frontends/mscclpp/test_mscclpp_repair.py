"""Refuted plans are repaired by edits of the plan, and an audit says what in a plan guards nothing."""

import json

import pytest
from plans import PLANS, allgather_put
from test_mscclpp_plans import judged, without

from asyncsim.frontends.mscclpp import load_plan
from asyncsim.frontends.mscclpp.repair import repair, superfluous

MODELS = ("sc", "gpu")


def repaired(tree):
    found = judged(tree, shrinking=0)
    assert found.verdict == "REFUTED"
    return repair(found, memory=MODELS)


@pytest.mark.parametrize(
    ("name", "block", "path", "edits"),
    [
        ("allgather_put", 0, (2,), ["thread block 0, op 3: a nop before put"]),
        ("allgather_put", 0, (5,), ["thread block 0, op 4: a nop after put"]),
        ("allgather_put", 0, (1,), ["thread block 0, op 0: a wait on its channels, and a nop, after signal"]),
        ("allgather_put", 0, (0,), ["thread block 0, op 0: a signal on its channels before wait"]),
        ("allgather_port", 0, (6,), ["thread block 0, op 4: a flush after put"]),
        ("allgather_port_pws", 0, (5,), ["thread block 0, op 4: pws -> pwsf"]),
        ("allreduce_scratch", 1, (0,), ["thread block 1, op 0: barrier 0 before res"]),
        ("allgather_pipeline", 0, (4, 1), ["thread block 0, op 4.0: a nop after put"]),
    ],
)
def test_what_was_taken_out_is_put_back(name, block, path, edits):
    found = repaired(without(PLANS[name](2).tree(), block, path, range(2)))
    assert [edit.text for edit in found.edits] == edits
    assert found.judged.verdict == "PROVED"


def test_a_handshake_that_is_not_there_at_all_is_put_in():
    tree = allgather_put(2).tree()
    for _ in range(3):
        tree = without(tree, 0, (0,), range(2))
    found = repaired(tree)
    assert [edit.text for edit in found.edits] == ["thread block 0: signal and wait on its channels, when it begins"]
    assert judged(found.plan.tree).verdict == "PROVED"


def test_one_scratch_for_packets_gets_two_halves():
    found = repaired({**PLANS["allreduce_packets"](2).tree(), "use_double_scratch_buffer": False})
    assert [edit.text for edit in found.edits] == ["use_double_scratch_buffer: true"]
    assert found.plan.double


def test_an_audit_names_what_guards_nothing_and_changes_nothing_else():
    found = judged(PLANS["allreduce_scratch"](2).tree())
    texts = [edit.text for edit, _ in superfluous(found, memory=MODELS)]
    first = "thread block 0, op 0: signal, with the wait at thread block 0, op 1"
    assert texts == [first, "thread block 0, op 2: nop"]
    assert list(superfluous(judged(PLANS["allgather_put"](2).tree()), memory=MODELS)) == []


def test_a_repaired_plan_is_one_that_can_be_read(tmp_path):
    found = repaired(without(allgather_put(2).tree(), 0, (2,), range(2)))
    path = tmp_path / "fixed.json"
    path.write_text(json.dumps(found.plan.tree), "utf-8")
    assert judged(load_plan(path).tree).verdict == "PROVED"
