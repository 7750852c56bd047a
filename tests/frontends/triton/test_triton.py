"""Triton kernels, judged as they are."""

from pathlib import Path

import numpy as np
import pytest

import asyncsim.frontends.triton as front
from asyncsim import KernelError, MisuseError

pytestmark = pytest.mark.skipif(not front.installed(), reason="needs torch and triton")
if front.installed():
    import torch
    import triton_kernels as kernels


def kinds(report):
    return {finding.kind for finding in report.findings}


def pass_on(*, barrier, sem="release", scope="sys"):
    def step(host):
        box, flag = host.empty(16, "int32", "box"), host.words(1, name="flag")
        out = torch.empty(16, dtype=torch.int32)
        arguments = (box, flag, out, host.bases, host.id, host.size, host.call + 1)
        kernels.pass_on[(1,)](*arguments, SEM=sem, SCOPE=scope, BLOCK=16)
        if barrier:
            host.barrier()
        return out

    return step


@pytest.mark.parametrize("ranks", [2, 3])
def test_message_passing_with_a_barrier_between_calls_is_proved(ranks):
    report = front.judge(pass_on(barrier=True), ranks=ranks)
    assert report.verdict == "PROVED"
    assert report.one_run


def test_without_the_barrier_the_next_call_overwrites_and_the_line_is_told():
    report = front.judge(pass_on(barrier=False), ranks=2)
    assert report.verdict == "REFUTED"
    (race,) = (finding for finding in report.findings if finding.kind == "race")
    load, store = (side.at[0].rpartition("/")[2] for side in race.sides)
    lines = Path(kernels.__file__).read_text("utf-8").splitlines()
    assert "tl.load(box + i)" in lines[int(load.partition(":")[2]) - 1]
    assert "tl.store(at_peer(box" in lines[int(store.partition(":")[2]) - 1]


@pytest.mark.parametrize(("sem", "scope"), [("relaxed", "sys"), ("release", "gpu")])
def test_a_flag_that_releases_nothing_to_the_peer_is_refuted(sem, scope):
    report = front.judge(pass_on(barrier=True, sem=sem, scope=scope), ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    assert kinds(report) & {"race", "wrong-result"}


def one_shot(*, end, n, put="acq_rel"):
    blocks = -(-n // 4)

    def step(host, x):
        buffer = host.empty(n, name="buffer")
        pads = host.words((blocks * host.size,), name="pad")
        buffer.copy_(torch.from_numpy(x[:n]))
        out = torch.empty(n)
        kernels.one_shot[(blocks,)](
            host.peers(buffer), host.peers(pads), out, n, host.id, host.size, END=end, PUT=put, BLOCK=4
        )  # fmt: skip
        return out

    return step


def reduced(step, *, n, **given):
    return front.judge(
        step, inputs=lambda P, call, rng: rng.standard_normal((P, n), np.float32),
        golden=lambda xs: [np.sum(xs, axis=0, dtype=np.float32)] * len(xs), **given,
    )  # fmt: skip


@pytest.mark.parametrize(("ranks", "n", "calls"), [(2, 4, 2), (2, 8, 1), (4, 4, 1)])
def test_an_all_reduce_that_meets_at_both_ends_is_right_in_every_schedule(ranks, n, calls):
    report = reduced(one_shot(end=True, n=n), ranks=ranks, calls=calls, n=n)
    assert report.verdict in ("PROVED", "EXHAUSTED")


def test_an_all_reduce_without_its_end_is_refuted_in_the_next_call():
    report = reduced(one_shot(end=False, n=4), ranks=2, n=4)
    assert report.verdict == "REFUTED"


def test_the_last_block_adds_up():
    def step(host):
        parts, counter = host.empty((2, 8), name="parts"), host.words(1, name="counter")
        out = torch.empty(8)
        kernels.last_adds[(2,)](parts, counter, out, 2, BLOCK=8)
        return out

    report = front.judge(step, ranks=1, calls=1)
    assert report.verdict in ("PROVED", "EXHAUSTED", "SURVIVED")
    assert "all 2 inequivalent executions" in report.scope


@pytest.mark.parametrize(
    ("at", "text"), [(60, "out of bounds: element 64 of 'box'"), (-1, "out of bounds: element -1 of 'box'")]
)
def test_a_store_outside_is_refused_with_its_line(at, text):
    def step(host):
        kernels.touch[(1,)](host.empty(64, name="box"), at, BLOCK=8)

    with pytest.raises(KernelError, match=text) as caught:
        front.judge(step)
    assert "triton_kernels.py:" in str(caught.value)


def test_anothers_own_tensor_is_out_of_reach():
    def step(host):
        own = torch.zeros(8)
        kernels.pass_on[(1,)](
            own.int(), host.words(1), own.int(), host.bases, host.id, host.size, 1, "release", "sys", 8
        )

    with pytest.raises(KernelError, match="not symmetric memory"):
        front.judge(step)


def test_bfloat16_is_computed_as_numbers():
    def step(host):
        a, b = torch.arange(16).bfloat16() / 3, torch.arange(16).bfloat16() * 7
        out = torch.empty(16, dtype=torch.bfloat16)
        kernels.add_halves[(1,)](a, b, out, BLOCK=16)
        return (a + b).float() - out.float()

    def check(xs):
        return [np.zeros(16, np.float32)] * len(xs)

    assert front.judge(step, ranks=1, golden=check).verdict == "PROVED"


def test_memory_that_differs_from_run_to_run_is_refused():
    sizes = iter([4, 4, 8, 16, 32, 64])

    def step(host):
        host.empty(next(sizes), name="box").zero_()

    with pytest.raises((KernelError, MisuseError), match="bytes, where it had"):
        front.judge(step, ranks=1, calls=1)


def test_a_counter_of_the_ranks_own_is_a_word_too():
    def step(host):
        counter, parts, out = (torch.zeros(n, dtype=torch.int32) for n in (1, 8, 8))
        kernels.blocks_meet[(2,)](counter, parts, out, 2, BLOCK=4)
        return out

    report = front.judge(step, ranks=1, golden=lambda xs: [np.array([10, 11, 12, 13, 0, 1, 2, 3], np.int32)])
    assert report.verdict == "PROVED"
    assert report.one_run
