"""Algorithms of MSCCL, in XML: rings and two thread blocks that depend on each other; right ones and broken ones."""

import pytest

from asyncsim import MisuseError
from asyncsim.frontends.mscclpp import Launches, judge
from asyncsim.frontends.mscclpp.msccl import STEPS, parse_algorithm


def step(number, kind, src, dst, *, depends=(-1, -1), posts=0, count=1):  # noqa: PLR0913
    """Return a step; `src` and `dst` are ``("i", 3)``."""
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{src[0]}" srcoff="{src[1]}" dstbuf="{dst[0]}" dstoff="{dst[1]}" '
        f'cnt="{count}" depid="{depends[0]}" deps="{depends[1]}" hasdep="{posts}"/>'
    )


def algorithm(collective, gpus, *, in_place=0):
    """Return the XML of an algorithm; `gpus`: of each its chunks, and its thread blocks as (send, recv, steps)."""
    text = f'<algo name="{collective}" coll="{collective}" nchannels="1" ngpus="{len(gpus)}" inplace="{in_place}">'
    for rank, (chunks, blocks) in enumerate(gpus):
        text += f'<gpu id="{rank}" i_chunks="{chunks[0]}" o_chunks="{chunks[1]}" s_chunks="{chunks[2]}">'
        for number, (send, receive, steps) in enumerate(blocks):
            text += f'<tb id="{number}" send="{send}" recv="{receive}" chan="0">{"".join(steps)}</tb>'
        text += "</gpu>"
    return text + "</algo>"


def ring(ranks):
    """All-reduce around a ring, in place: P - 1 steps that add up, and P - 1 that hand the sums on."""
    gpus = []
    for gpu in range(ranks):
        chunk = [(gpu - n) % ranks for n in range(2 * ranks)]
        steps = [step(0, "s", ("i", chunk[0]), ("i", chunk[0]))]
        for n in range(1, 2 * ranks - 1):
            kind = "rrs" if n < ranks - 1 else "rrcs" if n == ranks - 1 else "rcs" if n < 2 * ranks - 2 else "r"
            steps.append(step(n, kind, ("i", chunk[n]), ("i", chunk[n])))
        gpus.append(((ranks, ranks, 0), [((gpu + 1) % ranks, (gpu - 1) % ranks, steps)]))
    return algorithm("allreduce", gpus, in_place=1)


def gather(*, depends=(0, 1)):
    """All-reduce of two: one thread block exchanges inputs by the scratch, the other one adds them up."""
    gpus = []
    for gpu in range(2):
        exchange = [
            step(0, "s", ("i", 0), ("s", 0)),
            step(1, "r", ("i", 0), ("s", 0), posts=1),
            step(2, "nop", ("i", 0), ("i", 0), depends=(1, 1)),
        ]
        add = [step(0, "cpy", ("i", 0), ("o", 0)), step(1, "re", ("s", 0), ("o", 0), depends=depends, posts=1)]
        gpus.append(((1, 1, 1), [(1 - gpu, 1 - gpu, exchange), (-1, -1, add)]))
    return algorithm("allreduce", gpus)


def verdict(text, calls=3):
    return judge(Launches((parse_algorithm(text),) * calls))


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_a_ring_is_proved(ranks):
    assert verdict(ring(ranks), 2).verdict == "PROVED"


def test_thread_blocks_that_depend_on_each_other_are_proved():
    found = verdict(gather())
    assert found.verdict == "PROVED"
    assert found.models == ("sc", "gpu")


def test_every_step_is_in_one_of_these():
    rrc = ring(2).replace("rrcs", "rrc")
    used = {op.name for text in (ring(4), gather(), rrc) for op in parse_algorithm(text).operations()}
    assert used == set(STEPS)


def test_without_its_dependence_the_sum_is_of_what_has_not_come():
    found = verdict(gather(depends=(-1, -1)))
    assert found.verdict == "REFUTED"
    (plan, op), *_ = found.operations(next(each for each in found.report.findings if each.kind == "race"))
    assert (plan.name, op.block) in (("allreduce", 0), ("allreduce", 1))


@pytest.mark.parametrize(("sends", "ends"), [(4, True), (5, False)])
def test_a_send_more_than_there_are_slots_hangs(sends, ends):
    gpus = []
    for gpu in range(2):
        steps = [step(n, "s", ("i", 0), ("o", 0)) for n in range(sends)]
        steps += [step(n + sends, "r", ("i", 0), ("o", 0)) for n in range(sends)]
        gpus.append(((1, 1, 0), [(1 - gpu, 1 - gpu, steps)]))
    found = verdict(algorithm("custom", gpus))
    assert found.verdict == ("PROVED" if ends else "REFUTED")
    assert [each.kind for each in found.report.findings] == ([] if ends else ["deadlock"])


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('type="s"', 'type="x"', "gpu 0, tb 0, step 0: type='x'; it is one of s, r, "),
        ('srcbuf="i"', 'srcbuf="q"', "step 0: srcbuf='q'; it is i, o or s"),
        ('srcoff="0"', 'srcoff="3"', "input[3:4] of gpu 0 is out of range: gpu 0 has 1 chunks there"),
        ('send="1"', 'send="9"', "gpu 0, tb 0: send=9, recv=1; peers are other gpus below 2"),
        ('send="1"', 'send="-1"', "step 0: s (send), in a thread block that has no peer for it"),
        ('hasdep="1"', 'hasdep="0"', 'depends on tb 1, step 1, which has no hasdep="1": it would wait for ever'),
        ("</algo>", "", "algorithm.xml is no XML"),
        ('gpu id="1"', 'gpu id="4"', "an algorithm is <algo> with a <gpu> each, ids from 0"),
        ('cnt="1"', 'cnt="one"', "cnt='one' is no integer"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(old, new, text):
    with pytest.raises(MisuseError) as refused:
        parse_algorithm(gather().replace(old, new))
    assert text in str(refused.value)
