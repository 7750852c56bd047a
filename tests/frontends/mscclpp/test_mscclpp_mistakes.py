"""Mistakes of an author, each in one place of a right plan: found, with the operations that it is about."""

import json

import pytest
from plans import allgather_put, allreduce_gather, allreduce_packets, allreduce_scratch, peers_of

from asyncsim.frontends.mscclpp import Launches, judge, parse_plan


def ops(plan, block=0, gpu=0):
    return plan.blocks[gpu, block]["ops"]


def signals_wrong_channel(ranks):
    """The last signal of a thread block is on the channels of the other one."""
    plan = allreduce_scratch(ranks)
    signal = ops(plan, 1)[3]
    signal["channel_ids"] = [plan.channel(0, 1, "memory", peer, 0) for peer in peers_of(ranks, 0)]
    return plan


def waits_on_wrong_channel(ranks):
    """The last wait of a thread block is on the channels of the other one."""
    plan = allreduce_scratch(ranks)
    wait = ops(plan, 1)[4]
    wait["channel_ids"] = [plan.channel(0, 1, "memory", peer, 0) for peer in peers_of(ranks, 0)]
    return plan


def puts_wrong_chunk(ranks):
    """A put is to the chunk of another gpu."""
    plan = allgather_put(ranks)
    ops(plan)[4]["dst_buff"][0]["index"] = 1
    return plan


def reads_wrong_chunk(ranks):
    """A put reads a chunk that is another gpu's."""
    plan = allreduce_scratch(ranks)
    ops(plan)[3]["src_buff"][0]["index"] = 0
    return plan


def packets_to_wrong_slot(ranks):
    """Packets go to a slot where none are waited for."""
    plan = allreduce_packets(ranks)
    ops(plan)[0]["dst_buff"][0]["index"] = 1
    return plan


def words_to_wrong_slot(ranks):
    """Words go to a slot that is not read; what is read there was never written."""
    plan = allreduce_gather(ranks)
    ops(plan)[0]["dst_buff"][0]["index"] = 1
    return plan


def packets_in_single_scratch(ranks):
    """The next launch's packets overwrite what is still read."""
    plan = allreduce_packets(ranks)
    plan.top["use_double_scratch_buffer"] = False
    return plan


def words_in_single_scratch(ranks):
    """The next launch's words overwrite what is still read."""
    plan = allreduce_gather(ranks)
    plan.top["use_double_scratch_buffer"] = False
    return plan


def publishes_relaxed(ranks):
    """The signal that publishes the data orders none."""
    plan = allgather_put(ranks)
    ops(plan)[-2]["name"] = "rlxsignal"
    return plan


def is_told_relaxed(ranks):
    """The wait for the data orders none."""
    plan = allgather_put(ranks)
    ops(plan)[-1]["name"] = "rlxwait"
    return plan


FOUND = {
    signals_wrong_channel: {"wait"},
    waits_on_wrong_channel: {"wait"},
    puts_wrong_chunk: {"put"},
    reads_wrong_chunk: {"res", "put"},
    packets_to_wrong_slot: {"repkt"},
    words_to_wrong_slot: {"re"},
    packets_in_single_scratch: {"ppkt", "repkt"},
    words_in_single_scratch: {"put", "re"},
    publishes_relaxed: {"put"},
    is_told_relaxed: {"put"},
}
"""Of each mistake: some names of operations, which findings about it have between them."""
QUICK = {"shrinking": 0, "budget": 0, "samples": 8}
ORDER_ALONE = (publishes_relaxed, is_told_relaxed)
"""What these get wrong makes no difference under `sc`."""


@pytest.mark.parametrize("memory", ["sc", "gpu"])
@pytest.mark.parametrize("ranks", [2, 4, 8])
@pytest.mark.parametrize("mistake", FOUND)
def test_a_mistake_is_found_with_the_operation(mistake, ranks, memory):
    plan = parse_plan(json.dumps(mistake(ranks).tree()))
    found = judge(Launches((plan,) * (3 if plan.double else 2)), memory=[memory], **QUICK)
    if memory == "sc" and mistake in ORDER_ALONE:
        assert found.verdict == "PROVED"
        return
    assert found.verdict == "REFUTED"
    names = {op.name for finding in found.report.findings for _, op in found.operations(finding)}
    assert names >= FOUND[mistake]
