"""Plans of every operation are proved; without one of their synchronising operations they are refuted."""

import copy
import json
from functools import partial

import pytest
from plans import PLANS, allgather_put, allreduce_gather

from asyncsim.frontends.mscclpp import Launches, judge, parse_plan
from asyncsim.frontends.mscclpp.plan import NAMES

SYNCHRONISING = ("nop", "signal", "wait", "barrier", "sem_acquire", "sem_release", "flush")
SUPERFLUOUS = {
    "allgather_get": {"0.8"}, "reducescatter_max": {"0.7"}, "reducescatter_read": {"0.7"},
    "allreduce_read_send": {"0.7"}, "allreduce_switch": {"0.7"}, "allgather_switch": {"0.7"},
    "allgather_slices": {"0.8", "1.8"},
    "allgather_port": {"0.2"}, "allgather_port_pws": {"0.2"}, "allgather_port_pwsf": {"0.2"},
    "allreduce_scratch": {"0.2"},
    "allgather_semaphore": {"1.2"},
}  # fmt: skip
"""Nops that guard nothing: before the end of a kernel; between threads that push what they themselves waited for;
where the call before has said already that the scratch was read; before another nop."""


def judged(tree, **how):
    plan = parse_plan(json.dumps(tree), "plan.json")
    return judge(Launches((plan,) * (3 if plan.double else 2)), **how)


def without(tree, block, path, gpus):
    """Return a plan without one operation of a thread block, on these gpus; `path`: its number, and in a pipeline."""
    changed = copy.deepcopy(tree)
    for gpu in gpus:
        listed = changed["gpus"][gpu]["threadblocks"][block]["ops"]
        for number in path[:-1]:
            listed = listed[number]["ops"]
        del listed[path[-1]]
    return changed


def synchronising(tree):
    """Yield the thread block and the number of each synchronising operation of gpu 0."""
    for block, entry in enumerate(tree["gpus"][0]["threadblocks"]):
        for number, op in enumerate(entry["ops"]):
            if op["name"] in SYNCHRONISING:
                yield block, (number,)
            for inner, nested in enumerate(op.get("ops", ())):
                if nested["name"] in SYNCHRONISING:
                    yield block, (number, inner)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_right_plan_is_proved(name, ranks):
    found = judged(PLANS[name](ranks).tree())
    assert found.verdict == "PROVED"
    assert found.models == ("sc", "gpu")


def test_the_plans_have_every_operation():
    plans = [*PLANS.values(), partial(allgather_put, relaxed=True)]
    assert {op.name for make in plans for op in parse_plan(make(3).text()).operations(pipelines=True)} == set(NAMES)


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_relaxed_handshake_that_publishes_nothing_is_no_alarm(ranks):
    assert judged(allgather_put(ranks, relaxed=True).tree(), memory=["sc"]).verdict == "PROVED"
    assert judged(allgather_put(ranks, relaxed=True).tree(), memory=["gpu"], samples=5).verdict != "REFUTED"


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_stores_of_the_same_bytes_do_not_cost_the_proof(ranks):
    plan = allgather_put(ranks)
    for gpu in range(ranks):
        plan.add(gpu, 1, "copy", [("i", 0, 1)], [("o", gpu, 1)])
    found = judged(plan.tree())
    assert (found.verdict, found.models) == ("PROVED", ("sc", "gpu"))
    assert "ops[3] and gpus[0].threadblocks[1].ops[0] store the same bytes" in found.report.notes[-1]


@pytest.mark.parametrize("span", [("i", 1, 1), ("o", 1, 1)])
def test_stores_of_other_bytes_to_the_same_place_are_refuted(span):
    plan = allreduce_gather(2)
    plan.chunks = (2, 2, 4)
    plan.add(0, 1, "copy", [span], [("o", 0, 1)])
    assert judged({**plan.tree(), "collective": "custom"}, shrinking=0).verdict == "REFUTED"


def test_a_copy_that_comes_too_late_is_refuted_also_where_another_one_stores_the_same_bytes():
    plan = allgather_put(2)
    for gpu in range(2):
        plan.add(gpu, 1, "put", [("i", 0, 1)], [(1 - gpu, "o", gpu, 1)])
    assert judged(plan.tree(), shrinking=0).verdict == "REFUTED"


def test_a_relaxed_signal_that_publishes_data_is_refuted_under_gpu():
    plan = allgather_put(2)
    for gpu in range(2):
        plan.blocks[gpu, 0]["ops"][-2]["name"] = "rlxsignal"
    found = judged(plan.tree())
    assert (found.verdict, found.models) == ("REFUTED", ("gpu",))


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("everywhere", [True, False])
def test_without_a_synchronising_operation_a_plan_is_refuted(name, everywhere):
    tree = PLANS[name](2).tree()
    kept = {
        f"{block}.{'.'.join(map(str, path))}"
        for block, path in synchronising(tree)
        if judged(without(tree, block, path, range(2) if everywhere else [0]), shrinking=0).verdict != "REFUTED"
    }
    assert kept == SUPERFLUOUS.get(name, set())
