"""Collectives of this field: each right form is proved, each broken one refuted by the kernel's line."""

from pathlib import Path

import numpy as np
import pytest

import asyncsim.frontends.triton as front
from asyncsim import KernelError

pytestmark = pytest.mark.skipif(not front.installed(), reason="needs torch and triton")
if front.installed():
    import collective_kernels as kernels
    import torch

B = 4


def ints(P, call, rng):
    return rng.integers(0, 9, (P, P * B), np.int32)


def two_shot(how, sem="release", scope="sys"):
    def step(host, x):
        buffer, flags = host.empty(host.size * B, "int32", "x"), host.words(host.size, name="flags")
        out = torch.empty(host.size * B, dtype=torch.int32)
        buffer.copy_(torch.from_numpy(x))
        epoch = 1 if how == "stale epoch" else host.call + 1
        kernels.two_shot[(1,)](
            host.peers(buffer), host.peers(flags), out, epoch, me=host.id, size=host.size, HOW=how, SEM=sem,
            SCOPE=scope, BLOCK=B,
        )  # fmt: skip
        return out

    return step, {"inputs": ints, "golden": lambda xs: [np.sum(xs, axis=0, dtype=np.int32)] * len(xs)}


def sense(how):
    def step(host, x):
        buffer, count, senses = host.empty(B, "int32", "x"), host.words(1, name="count"), host.words(1, name="sense")
        out = torch.empty(B, dtype=torch.int32)
        buffer.copy_(torch.from_numpy(x[:B]))
        kernels.reduce_between_senses[(1,)](
            host.peers(buffer), host.peers(count), host.peers(senses), out, 1, me=host.id, size=host.size, HOW=how,
            BLOCK=B,
        )  # fmt: skip
        return out

    return step, {"inputs": ints, "golden": lambda xs: [np.sum(xs, axis=0, dtype=np.int32)[:B]] * len(xs)}


def copy_engine(how):
    def step(host, x):
        gathered, flags = host.empty(host.size * B, "int32", "gathered"), host.words(host.size, name="flags")
        out = torch.empty(host.size * B, dtype=torch.int32)
        part = torch.from_numpy(x[:B])
        for to, flag in zip(host.peers(gathered), host.peers(flags), strict=True):
            to[host.id * B : host.id * B + B].copy_(part)
            host.set_word(flag, host.id, 1 if how == "always 1" else host.call + 1)
        kernels.gathered_after_flags[(host.size,)](
            gathered, flags, out, 1 if how == "always 1" else host.call + 1, me=host.id, size=host.size, HOW=how,
            BLOCK=B,
        )  # fmt: skip
        if how != "no barrier":
            host.barrier()
        return out

    return step, {"inputs": ints, "golden": lambda xs: [2 * np.concatenate([x[:B] for x in xs])] * len(xs)}


def ring(how, sem="release", scope="sys"):
    def step(host, x):
        box, words = (
            host.empty(host.size * B, "int32", "box"),
            [host.words(host.size, name=n) for n in ("ready", "taken")],
        )
        out = torch.empty(B, dtype=torch.int32)
        kernels.ring_reduce_scatter[(1,)](
            torch.from_numpy(x), host.peers(box), host.peers(words[0]), host.peers(words[1]), out, host.call,
            me=host.id, size=host.size, HOW=how, SEM=sem, SCOPE=scope, BLOCK=B,
        )  # fmt: skip
        return out

    return step, {
        "inputs": ints, "golden": lambda xs: list(np.sum(xs, axis=0, dtype=np.int32).reshape(len(xs), B)),
    }  # fmt: skip


def queue(how, sem="release"):
    def step(host):
        box, tail, head = host.empty(2 * B, "int32", "box"), host.words(1, name="tail"), host.words(1, name="head")
        out = torch.zeros(3 * B, dtype=torch.int32)
        kernels.queue[(1,)](
            host.peers(box), host.peers(tail), host.peers(head), out, host.call, me=host.id, HOW=how, SEM=sem, MANY=3,
            DEPTH=2, BLOCK=B,
        )  # fmt: skip
        return out

    return step, {}


def matrices(P, call, rng):
    return rng.integers(-3, 4, (P, 2, B * B)).astype(np.float32)


def products(xs):
    return [np.sum([(a.reshape(B, B) @ b.reshape(B, B)) for a, b in xs], axis=0)] * len(xs)


def counters(how, scope="sys"):
    def step(host, x):
        parts, counter = host.empty((host.size, B, B), name="parts"), host.words(1, name="counter")
        out = torch.empty(B, B)
        a, b = (torch.from_numpy(each.reshape(B, B)) for each in x)
        kernels.product_by_counters[(1,)](
            a, b, host.peers(parts), host.peers(counter), out, host.call, me=host.id, size=host.size, HOW=how,
            SCOPE=scope, BLOCK=B,
        )  # fmt: skip
        host.barrier()
        return out

    return step, {"inputs": matrices, "golden": products}


def lock(how):
    def step(host, x):
        total, word = host.empty((B, B), name="total"), host.words(1, name="lock")
        total.zero_()
        host.barrier()
        a, b = (torch.from_numpy(each.reshape(B, B)) for each in x)
        kernels.product_by_lock[(1,)](a, b, host.peers(total), host.peers(word), me=host.id, HOW=how, BLOCK=B)
        host.barrier()
        added = host.peer(total, 0).clone()
        host.barrier()
        return added

    return step, {"inputs": matrices, "golden": products}


def atomics(how):
    def step(host, x):
        total, flags = host.empty((B, B), name="total"), host.words(host.size, name="flags")
        total.zero_()
        host.barrier()
        a, b = (torch.from_numpy(each.reshape(B, B)) for each in x)
        kernels.product_by_atomics[(1,)](
            a, b, host.peers(total), host.peers(flags), host.call + 1, me=host.id, size=host.size, HOW=how, BLOCK=B
        )
        return total.clone()

    return step, {"inputs": matrices, "golden": products}


def all_to_all(how):
    def step(host, x):
        box, many = host.empty(host.size * B, "int32", "box"), host.empty(host.size, "int32", "many")
        flags, out = host.words(host.size, name="flags"), torch.empty(host.size * B, dtype=torch.int32)
        counts = torch.tensor([(host.id + peer) % B + 1 for peer in range(host.size)], dtype=torch.int32)
        kernels.all_to_all[(1,)](
            torch.from_numpy(x), counts, host.peers(box), host.peers(many), host.peers(flags), out, host.call + 1,
            me=host.id, size=host.size, HOW=how, BLOCK=B,
        )  # fmt: skip
        if how != "no barrier":
            host.barrier()
        return out

    def golden(xs):
        P = len(xs)
        sent = np.reshape(xs, (P, P, B))
        return [
            np.concatenate([np.where(np.arange(B) <= (me + peer) % B, sent[peer, me], 0) for peer in range(P)])
            for me in range(P)
        ]

    return step, {"inputs": ints, "golden": golden}


def low_latency(how):
    def step(host, x):
        packets = host.empty(host.size * B, "int64", "packets", start_zero=True)
        out = torch.empty(host.size * B, dtype=torch.int32)
        kernels.low_latency_gather[(1,)](
            torch.from_numpy(x[:B]), host.peers(packets), out, host.call + 1, me=host.id, size=host.size, HOW=how,
            BLOCK=B,
        )  # fmt: skip
        host.barrier()
        return out

    return step, {"inputs": ints, "golden": lambda xs: [np.concatenate([x[:B] for x in xs])] * len(xs)}


def two_nodes(how, scope="sys"):
    def step(host):
        x, near, far = host.empty(B, "int32", "x"), host.words(2, name="near"), host.words(1, name="far")
        out = torch.empty(B, dtype=torch.int32)
        kernels.two_nodes_meet[(1,)](
            host.peers(x), host.peers(near), host.peers(far), out, host.call + 1, me=host.id, size=host.size, HOW=how,
            SCOPE=scope, BLOCK=B,
        )  # fmt: skip
        host.barrier()
        return out

    return step, {}


MADE = {
    "two_shot": two_shot, "sense": sense, "copy_engine": copy_engine, "ring": ring, "queue": queue,
    "counters": counters, "lock": lock, "atomics": atomics, "all_to_all": all_to_all, "low_latency": low_latency,
    "two_nodes": two_nodes,
}  # fmt: skip
PROVED = [
    ("two_shot", 2), ("two_shot", 4), ("copy_engine", 2), ("copy_engine", 4), ("ring", 2), ("ring", 4), ("queue", 2),
    ("counters", 2), ("counters", 4), ("all_to_all", 2), ("all_to_all", 4), ("two_nodes", 2), ("two_nodes", 4),
]  # fmt: skip
ALL_RUN = [("sense", "gpu"), ("lock", "gpu"), ("atomics", "gpu"), ("low_latency", "sc")]
"""What one run does not decide: who comes first matters to a lock, to a last one; packets are polled as data."""
BROKEN = [
    ("two_shot", ("no end",), 2, "tl.store(x[peer] + i, total)"),
    ("two_shot", ("wrong slot",), 2, "while tl.atomic_add(p, 0"),
    ("two_shot", ("", "relaxed"), 2, "total += tl.load(x[peer] + i)"),
    ("two_shot", ("", "release", "gpu"), 2, "tl.atomic_xchg(p, value"),
    ("sense", ("no end",), 2, "total += tl.load(x[peer] + i)"),
    ("sense", ("relaxed",), 2, "total += tl.load(x[peer] + i)"),
    ("sense", ("late reset",), 2, "tl.atomic_xchg(count[0], 0"),
    ("copy_engine", ("one waits",), 2, "tl.store(out + i, tl.load(x + i) * 2)"),
    ("copy_engine", ("one waits",), 4, "tl.store(out + i, tl.load(x + i) * 2)"),
    ("copy_engine", ("always 1",), 2, "tl.store(out + i, tl.load(x + i) * 2)"),
    ("copy_engine", ("no barrier",), 2, "tl.store(out + i, tl.load(x + i) * 2)"),
    ("ring", ("no acknowledgement",), 2, "tl.store(box[right] + step * BLOCK + i, total)"),
    ("ring", ("no acknowledgement",), 4, "tl.store(box[right] + step * BLOCK + i, total)"),
    ("ring", ("always 1",), 2, "tl.store(box[right] + step * BLOCK + i, total)"),
    ("ring", ("", "relaxed"), 2, "tl.store(box[right] + step * BLOCK + i, total)"),
    ("ring", ("", "release", "gpu"), 2, "tl.atomic_xchg(p, value"),
    ("queue", ("no room asked for",), 2, "tl.store(box[1] + slot + i, i + 10 * number)"),
    ("queue", ("", "relaxed"), 2, "tl.store(box[1] + slot + i, i + 10 * number)"),
    ("counters", ("relaxed",), 2, "total += tl.load(parts[me]"),
    ("counters", ("stale epoch",), 2, "total += tl.load(parts[me]"),
    ("counters", ("", "gpu"), 2, "tl.atomic_add(counter[peer], 1"),
    ("lock", ("no lock",), 2, "tl.store(at, tl.load(at) + product)"),
    ("lock", ("relaxed",), 2, "tl.store(at, tl.load(at) + product)"),
    ("atomics", ("no end",), 2, "tl.atomic_add(total[peer]"),
    ("all_to_all", ("count after",), 2, "n = tl.load(many[me] + peer)"),
    ("low_latency", ("any flag",), 2, "tl.store(packets[peer]"),
    ("two_nodes", ("nodes apart",), 2, "tl.store(out + i, tl.load(x[me] + i))"),
    ("two_nodes", ("nodes apart",), 4, "tl.store(out + i, tl.load(x[me] + i))"),
    ("two_nodes", ("", "gpu"), 2, "tl.atomic_xchg(p, value"),
]
NEXT_CALL = ("no end", "always 1", "no barrier", "no acknowledgement", "stale epoch", "any flag")
"""What is found only when the memory is used again."""


@pytest.mark.parametrize(("name", "ranks"), PROVED)
def test_a_right_collective_is_proved_from_one_run(name, ranks):
    report = judged(name, ("",), ranks)
    assert report.verdict == "PROVED"
    assert report.one_run


@pytest.mark.parametrize(("name", "model"), ALL_RUN)
def test_a_right_collective_whose_order_is_left_to_chance_is_right_in_all(name, model):
    assert judged(name, ("",), 2, calls=1, memory=model, races="harmful").verdict == "EXHAUSTED"


@pytest.mark.parametrize(("name", "how", "ranks", "line"), BROKEN)
def test_a_broken_collective_is_refuted_by_the_kernels_line(name, how, ranks, line):
    report = judged(name, how, ranks, calls=2 if how[0] in NEXT_CALL else 1)
    assert report.verdict == "REFUTED"
    assert any(each.startswith(line) for each in lines(report)), report.findings


def test_a_loop_that_is_no_comparison_waits_for_another_value():
    def step(host):
        x, bar = host.empty(2 * B, "int32", "x"), host.words(1, name="bar")
        out = torch.empty(2 * B, dtype=torch.int32)
        kernels.grid_meets[(2,)](x, bar, out, BLOCK=B)
        return out

    right = np.concatenate([np.arange(B) + 1, np.arange(B)]).astype(np.int32)
    report = front.judge(step, ranks=1, calls=1, golden=lambda _: [right])
    assert report.verdict == "EXHAUSTED"
    assert not report.findings


@pytest.mark.parametrize("name", ["goes_on_for_ever", "counts_for_ever"])
def test_a_loop_that_goes_on_for_ever_is_told_with_its_line(name):
    def step(host):
        getattr(kernels, name)[(1,)](host.words(2, name="words"))

    with pytest.raises(KernelError, match=r"collective_kernels.py:\d+: a loop that .*still goes on after 2000 rounds"):
        front.judge(step, ranks=1, calls=1)


def judged(name, how, ranks, **given):
    step, fields = MADE[name](*how)
    return front.judge(step, ranks=ranks, **fields, **given)


def lines(report):
    """Return the lines of kernels that the findings name."""
    source = Path(kernels.__file__).read_text("utf-8").splitlines()
    found = []
    for finding in report.findings:
        for side in finding.sides:
            for at in side.at[:1]:
                file, _, line = at.rpartition("/")[2].partition(":")
                if file == "collective_kernels.py":
                    found.append(source[int(line) - 1].strip())
    return found
