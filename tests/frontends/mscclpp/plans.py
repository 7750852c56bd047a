"""Plans written for the tests, each right: for P gpus, P > 1. Between them they have every operation."""

from functools import partial

from builder import Builder


def peers_of(ranks, gpu):
    return [(gpu + step) % ranks for step in range(1, ranks)]


def handshake(plan, gpu, block, peers, **how):
    """Let a gpu tell its peers that it has begun, and wait until they have."""
    relaxed = "rlx" if how.pop("relaxed", False) else ""
    plan.add(gpu, block, f"{relaxed}signal", to=peers, **how)
    plan.add(gpu, block, f"{relaxed}wait", to=peers, **how)
    plan.add(gpu, block, "nop")


def allgather_put(ranks, *, blocks=False, relaxed=False):
    """Put the own chunk into each peer's output, between two handshakes.

    Args:
        ranks: P.
        blocks: a thread block a peer.
        relaxed: the first handshake, which publishes nothing, orders nothing either.

    """
    plan = Builder(ranks, "allgather", (1, ranks, 0))
    for gpu in range(ranks):
        for number, listed in enumerate([[p] for p in peers_of(ranks, gpu)] if blocks else [peers_of(ranks, gpu)]):
            handshake(plan, gpu, number, listed, relaxed=relaxed)
            if number == 0:
                plan.add(gpu, number, "copy", [("i", 0, 1)], [("o", gpu, 1)])
            for peer in listed:
                plan.add(gpu, number, "put", [("i", 0, 1)], [(peer, "o", gpu, 1)])
            plan.add(gpu, number, "nop")
            plan.add(gpu, number, "signal", to=listed)
            plan.add(gpu, number, "wait", to=listed)
    return plan


def allreduce_packets(ranks):
    """Send the input as packets to each peer's slot of its scratch, which has two halves, and reduce what came."""
    plan = Builder(ranks, "allreduce", (1, 1, ranks), protocol="LL", use_double_scratch_buffer=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        plan.add(gpu, 0, "ppkt", [("i", 0, 1)] * len(peers), [(peer, "s", gpu, 1) for peer in peers])
        plan.add(gpu, 0, "repkt", [("i", 0, 1), *[("s", peer, 1) for peer in peers]], [("o", 0, 1)])
    return plan


def allgather_get(ranks):
    """Read each peer's input, between two handshakes."""
    plan = Builder(ranks, "allgather", (1, ranks, 0))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("o", gpu, 1)])
        plan.add(gpu, 0, "get", [(peer, "i", 0, 1) for peer in peers], [("o", peer, 1) for peer in peers])
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
    return plan


def reducescatter_read(ranks, *, reduce="sum"):
    """Add up the peers' inputs, in place, between two handshakes."""
    plan = Builder(ranks, "reducescatter", (ranks, 1, 0), inplace=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        reads = [(peer, "i", gpu, 1) for peer in peers]
        plan.add(gpu, 0, "rre", [("i", gpu, 1), *reads], [("o", 0, 1)], reduce_op=reduce)
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
    return plan


def allreduce_read_send(ranks):
    """Add up one chunk of the peers' inputs, and write it to all outputs, in place."""
    plan = Builder(ranks, "allreduce", (ranks, ranks, 0), inplace=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        reads, writes = [[(peer, buffer, gpu, 1) for peer in peers] for buffer in "io"]
        plan.add(gpu, 0, "rres", [("i", gpu, 1), *reads], [("o", gpu, 1), *writes])
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
    return plan


def allreduce_scratch(ranks):
    """Put chunks into the owners' scratch, reduce there in a second thread block, and send the sum to all."""
    plan = Builder(ranks, "allreduce", (ranks, ranks, ranks))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        for peer in peers:
            plan.add(gpu, 0, "put", [("i", peer, 1)], [(peer, "s", gpu, 1)])
        plan.add(gpu, 0, "nop")
        plan.add(gpu, 0, "signal", to=peers)
        plan.add(gpu, 0, "wait", to=peers)
        plan.add(gpu, 0, "barrier", barrier_id=0, num_threadblocks=2)
        plan.add(gpu, 1, "barrier", barrier_id=0, num_threadblocks=2)
        sources = [("i", gpu, 1), *[("s", peer, 1) for peer in peers]]
        plan.add(gpu, 1, "res", sources, [("o", gpu, 1), *[(peer, "o", gpu, 1) for peer in peers]])
        plan.add(gpu, 1, "nop")
        plan.add(gpu, 1, "signal", to=peers, nth=1)
        plan.add(gpu, 1, "wait", to=peers, nth=1)
    return plan


def allgather_port(ranks, *, how="flush"):
    """Put the own chunk through port channels; `how`: flush, pws with a flush, or pwsf."""
    plan = Builder(ranks, "allgather", (1, ranks, 0))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers, kind="port")
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("o", gpu, 1)])
        name = {"flush": "put", "pws": "pws", "pwsf": "pwsf"}[how]
        plan.add(gpu, 0, name, [("i", 0, 1)] * len(peers), [(p, "o", gpu, 1) for p in peers], kind="port", to=peers)
        if how == "flush":
            plan.add(gpu, 0, "signal", kind="port", to=peers)
        if how != "pwsf":
            plan.add(gpu, 0, "flush", kind="port", to=peers)
        plan.add(gpu, 0, "wait", kind="port", to=peers)
    return plan


def alltoall_port_packets(ranks):
    """Make packets in the own scratch, and let the proxy copy them to the peers' scratch, which has two halves."""
    plan = Builder(ranks, "alltoall", (ranks, ranks, 2 * ranks), protocol="LL", use_double_scratch_buffer=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        plan.add(gpu, 0, "copy", [("i", gpu, 1)], [("o", gpu, 1)])
        for peer in peers:
            plan.add(gpu, 0, "cpkt", [("i", peer, 1)], [("s", peer, 1)])
        plan.add(gpu, 0, "nop")
        plan.add(gpu, 0, "ppkt", [("s", peer, 1) for peer in peers], [(peer, "s", ranks + gpu, 1) for peer in peers],
                 kind="port", to=peers)  # fmt: skip
        for peer in peers:
            plan.add(gpu, 0, "upkt", [("s", ranks + peer, 1)], [("o", peer, 1)])
    return plan


def allreduce_packets_twice(ranks):
    """Send each chunk to its owner as packets, reduce there, send the sum as packets, unpack it."""
    plan = Builder(ranks, "allreduce", (ranks, ranks, 2 * ranks), protocol="LL", use_double_scratch_buffer=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        for peer in peers:
            plan.add(gpu, 0, "ppkt", [("i", peer, 1)], [(peer, "s", gpu, 1)])
        sums = [(peer, "s", ranks + gpu, 1) for peer in peers]
        packets = [("s", peer, 1) for peer in peers]
        if gpu % 2:
            plan.add(gpu, 0, "respkt", [("i", gpu, 1), *packets], [("o", gpu, 1), *sums])
        else:
            plan.add(gpu, 0, "recspkt", [("i", gpu, 1), *packets], [("o", gpu, 1), ("s", ranks + gpu, 1), *sums])
        for peer in peers:
            plan.add(gpu, 0, "upkt", [("s", ranks + peer, 1)], [("o", peer, 1)])
    return plan


def allgather_ring_packets(ranks, *, kind="memory"):
    """Hand packets on around a ring; each gpu unpacks what passes."""
    plan = Builder(ranks, "allgather", (1, ranks, ranks), protocol="LL", use_double_scratch_buffer=True)
    for gpu in range(ranks):
        right = (gpu + 1) % ranks
        via = {"kind": kind, "to": [right]} if kind == "port" else {}
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("o", gpu, 1)])
        plan.add(gpu, 0, "ppkt", [("i", 0, 1)], [(right, "s", gpu, 1)])
        for step in range(1, ranks):
            held = (gpu - step) % ranks
            if step < ranks - 1:
                plan.add(gpu, 0, "rppkt", [("s", held, 1)], [(right, "s", held, 1)], **via)
            plan.add(gpu, 0, "upkt", [("s", held, 1)], [("o", held, 1)])
    return plan


def allreduce_switch(ranks):
    """Add up and store each chunk through the switch, in place."""
    plan = Builder(ranks, "allreduce", (ranks, ranks, 0), inplace=True, groups=[("i", list(range(ranks)))])
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        plan.add(gpu, 0, "glres", [("switch", 0, gpu, 1)], [("switch", 0, gpu, 1)], kind="switch")
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
    return plan


def allgather_switch(ranks):
    """Store the own chunk to all outputs through the switch."""
    plan = Builder(ranks, "allgather", (1, ranks, 0), groups=[("o", list(range(ranks)))])
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        plan.add(gpu, 0, "gstore", [("i", 0, 1)], [("switch", 0, gpu, 1)], kind="switch")
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
    return plan


def allgather_switch_packets(ranks, *, blocks=1):
    """Make packets, store them to all scratch buffers through the switch, the own slot too, and unpack them.

    Args:
        ranks: P.
        blocks: how many thread blocks share the work; with 2 one unpacks the own slot while the other stores to it.

    """
    plan = Builder(ranks, "allgather", (1, ranks, ranks), protocol="LL", use_double_scratch_buffer=True,
                   groups=[("s", list(range(ranks)))])  # fmt: skip
    for gpu in range(ranks):
        plan.add(gpu, 0, "cpkt", [("i", 0, 1)], [("s", gpu, 1)])
        plan.add(gpu, 0, "gstorepkt", [("s", gpu, 1)], [("switch", 0, gpu, 1)], kind="switch")
        for owner in range(ranks):
            plan.add(gpu, blocks - 1, "upkt", [("s", owner, 1)], [("o", owner, 1)])
    return plan


def allgather_semaphore(ranks):
    """One thread block fills the scratch, another one puts it; a semaphore says when."""
    plan = Builder(ranks, "allgather", (1, ranks, 1), semaphores=(0,))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("s", 0, 1)])
        plan.add(gpu, 0, "nop")
        plan.add(gpu, 0, "sem_release", semaphore_ids=[0])
        handshake(plan, gpu, 1, peers)
        plan.add(gpu, 1, "sem_acquire", semaphore_ids=[0])
        plan.add(gpu, 1, "nop")
        plan.add(gpu, 1, "copy", [("s", 0, 1)], [("o", gpu, 1)])
        plan.add(gpu, 1, "put", [("s", 0, 1)] * len(peers), [(peer, "o", gpu, 1) for peer in peers])
        plan.add(gpu, 1, "nop")
        plan.add(gpu, 1, "signal", to=peers)
        plan.add(gpu, 1, "wait", to=peers)
    return plan


def allgather_pipeline(ranks):
    """Put in rounds, each with its signal; a second thread block takes each round out of the scratch."""
    plan = Builder(ranks, "allgather", (1, ranks, ranks))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        handshake(plan, gpu, 0, peers)
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("o", gpu, 1)])
        plan.pipeline(gpu, 0, 65536, 1)
        plan.add(gpu, 0, "put", [("i", 0, 1)] * len(peers), [(peer, "s", gpu, 1) for peer in peers])
        plan.add(gpu, 0, "nop")
        plan.add(gpu, 0, "signal", to=peers, nth=1)
        plan.end(gpu, 0)
        plan.pipeline(gpu, 1, 65536, 1)
        plan.add(gpu, 1, "wait", to=peers, nth=1)
        plan.add(gpu, 1, "nop")
        plan.add(gpu, 1, "copy", [("s", peer, 1) for peer in peers], [("o", peer, 1) for peer in peers])
        plan.end(gpu, 1)
    return plan


def allgather_slices(ranks):
    """Two thread blocks put a half of the chunk each, on channels of their own."""
    plan = Builder(ranks, "allgather", (1, ranks, 0))
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        for half in range(2):
            info = {"tb_id": half, "tbg_size": 2}
            handshake(plan, gpu, half, peers, nth=half)
            plan.add(gpu, half, "copy", [("i", 0, 1)], [("o", gpu, 1)], tbg_info=info)
            writes = [(peer, "o", gpu, 1) for peer in peers]
            plan.add(gpu, half, "put", [("i", 0, 1)] * len(peers), writes, tbg_info=info)
            plan.add(gpu, half, "nop")
            handshake(plan, gpu, half, peers, nth=half)
    return plan


def allreduce_gather(ranks):
    """Put the whole input into every peer's scratch, and reduce it there in one go."""
    plan = Builder(ranks, "allreduce", (1, 1, ranks), use_double_scratch_buffer=True)
    for gpu in range(ranks):
        peers = peers_of(ranks, gpu)
        plan.add(gpu, 0, "put", [("i", 0, 1)] * len(peers), [(peer, "s", gpu, 1) for peer in peers])
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, peers)
        plan.add(gpu, 0, "re", [("i", 0, 1), *[("s", peer, 1) for peer in peers]], [("o", 0, 1)])
    return plan


def allreduce_packets_switch(ranks):
    """Reduce a chunk out of packets into packets, and store these to all through the switch."""
    plan = Builder(ranks, "allreduce", (ranks, ranks, 2 * ranks), protocol="LL", use_double_scratch_buffer=True,
                   groups=[("s", list(range(ranks)))])  # fmt: skip
    for gpu in range(ranks):
        peers, mine = peers_of(ranks, gpu), ranks + gpu
        for peer in peers:
            plan.add(gpu, 0, "ppkt", [("i", peer, 1)], [(peer, "s", gpu, 1)])
        packets = [("s", peer, 1) for peer in peers]
        plan.add(gpu, 0, "recpkt", [("i", gpu, 1), *packets], [("o", gpu, 1), ("s", mine, 1)])
        plan.add(gpu, 0, "gstorepkt", [("s", mine, 1)], [("switch", 0, mine, 1)], kind="switch")
        for peer in peers:
            plan.add(gpu, 0, "upkt", [("s", ranks + peer, 1)], [("o", peer, 1)])
    return plan


PLANS = {
    "allgather_put_blocks": partial(allgather_put, blocks=True),
    "reducescatter_max": partial(reducescatter_read, reduce="max"),
    "allgather_port_pws": partial(allgather_port, how="pws"),
    "allgather_port_pwsf": partial(allgather_port, how="pwsf"),
    "allgather_switch_blocks": partial(allgather_switch_packets, blocks=2),
    "allgather_ring_port": partial(allgather_ring_packets, kind="port"),
    **{
        make.__name__: make
        for make in (
            allgather_put, allreduce_packets, allgather_get, reducescatter_read, allreduce_read_send,
            allreduce_scratch, allgather_port, alltoall_port_packets, allreduce_packets_twice, allgather_ring_packets,
            allreduce_switch, allgather_switch, allgather_switch_packets, allgather_semaphore, allgather_pipeline,
            allgather_slices, allreduce_gather, allreduce_packets_switch,
        )
    },
}  # fmt: skip
