"""GSan's documented cases: the same verdicts, without a GPU."""

import pytest

import asyncsim.frontends.triton as front

pytestmark = pytest.mark.skipif(not front.installed(), reason="needs torch and triton")
if front.installed():
    import gsan_kernels as kernels
    import torch


def blocks(kernel, grid, **constants):
    def step(host):
        p, c, out = host.words(4, name="p"), host.words(2, name="c"), torch.zeros(4, dtype=torch.int32)
        kernel[(grid,)](p, c, out, **constants)

    return step, 1


def two_launches():
    def step(host):
        p, q = host.words(2, name="p"), host.words(2, name="q")
        kernels.neighbours[(2,)](p, q, SHIFT=0)
        kernels.neighbours[(2,)](q, p, SHIFT=1)

    return step, 1


def two_gpus(*, ordered):
    def step(host):
        box, counter, out = host.words(1, name="box"), host.words(1, name="counter"), torch.zeros(1, dtype=torch.int32)
        kernels.two_gpus[(1,)](host.peers(box), host.peers(counter), out, me=host.id, ORDERED=ordered)

    return step, 2


def poll(kind, sem, sees, scope="gpu"):
    return blocks(kernels.pass_on, 2, KIND=kind, SEM=sem, SEES=sees, SCOPE=scope)


RACES = {
    "read after write": lambda: poll("RAW", "relaxed", "relaxed"),
    "write after read": lambda: poll("WAR", "relaxed", "relaxed"),
    "write after write": lambda: poll("WAW", "relaxed", "relaxed"),
    "a relaxed poll": lambda: poll("RAW", "release", "relaxed"),
    "a scope that does not cover": lambda: poll("RAW", "release", "acquire", "cta"),
    "two GPUs, no atomics": lambda: two_gpus(ordered=False),
}
NONE = {
    "gpu": lambda: poll("RAW", "release", "acquire"),
    "sys": lambda: poll("WAR", "acq_rel", "acq_rel", "sys"),
    "transitive": lambda: blocks(kernels.hand_on, 3),
    "a chain of releases": lambda: blocks(kernels.several_write, 4),
    "one launch after the other": two_launches,
    "two GPUs, one counter": lambda: two_gpus(ordered=True),
}


@pytest.mark.parametrize("case", RACES)
def test_what_gsan_calls_a_race_is_refuted(case):
    step, ranks = RACES[case]()
    report = front.judge(step, ranks=ranks, calls=1)
    assert report.verdict == "REFUTED"
    assert "race" in {finding.kind for finding in report.findings}


@pytest.mark.parametrize("case", NONE)
def test_what_gsan_lets_pass_is_proved(case):
    step, ranks = NONE[case]()
    assert front.judge(step, ranks=ranks, calls=1).verdict == "PROVED"
