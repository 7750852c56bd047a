"""What a certificate says of a kernel, compared with what the kernel does: each difference is found and named."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

from asyncsim import Signal, Window, check, kernel
from asyncsim.analysis.certificate import operations_lines
from asyncsim.checking.record.claim import certificate_mismatch

DATA = Window("data", (2,), np.int32)
FLAG = Signal("flag", (1,))


@kernel(memory=[DATA, FLAG])
async def given(rank, data, flag, *, fails=False, hangs=False):
    """Rank 0 gives a number to rank 1."""
    if rank.id == 0:
        await rank.store(data.at(1)[0], 1)
        await rank.notify(flag.at(1)[0], 1)
        return 1
    await rank.wait(flag[0] >= rank.call + 1 + hangs)
    if fails:
        raise ValueError("late")
    return await rank.load(data[0])


PROOF = check(given, ranks=2, calls=1).proof[0]


def denied(change=lambda head, streams: None, program=given):
    head, *streams = deepcopy(operations_lines(PROOF))
    change(head, streams)
    return certificate_mismatch(head, streams, program, steps=len(PROOF.events))


def test_the_kernel_itself_is_not_denied():
    assert denied() == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _, streams: streams[0]["ops"][0].update(kind="load"), "operation 0 of actor 0 is a load"),
        (lambda _, streams: streams[0]["ops"][1].update(amount=2), "operation 1 of actor 0 is a notify, and"),
        (lambda _, streams: streams[1]["ops"].pop(), "it has 1 operations of actor 1; test_claim:given does 2"),
        (lambda _, streams: streams[1].update(rank=0), "it says that actor 1 is of rank 0; it is of rank 1"),
        (lambda _, streams: streams.pop(), "it is of the actors 0; test_claim:given has 0, 1"),
        (lambda head, _: head["windows"][0].__setitem__(1, 1), "its windows are not those of test_claim:given"),
        (lambda head, _: head["cells"][0].__setitem__(1, 1), "its cells are not those of test_claim:given"),
    ],
)  # fmt: skip
def test_every_difference_is_named(change, reason):
    assert denied(change).startswith(reason)


def test_a_kernel_that_raises_or_hangs_does_not_do_what_was_certified():
    assert "raises: rank 1 failed in call 0" in denied(program=given.variant(name="given", fails=True))
    assert "ends after 2 steps with deadlock" in denied(program=given.variant(name="given", hangs=True))
