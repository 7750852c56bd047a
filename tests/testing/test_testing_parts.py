"""The conformance kits on our own parts: each scheduler, kernel and composite, by the tables that they stand in.

A new part is one file and its line in a table; nothing is to be written here.
"""

from __future__ import annotations

import pytest

from asyncsim import MisuseError
from asyncsim.checking.record.locate import all_kernels
from asyncsim.schedulers.table import SCHEDULERS, make
from asyncsim.testing import check_collective, check_kernel, check_scheduler
from kernels import all_gather, all_reduce, all_to_all, broadcast, reduce_scatter, ring
from kernels.rows import blocks, rows

NEEDS = {"starve": "rank=0", "script": "rules=hold rank 0 before its wait until rank 1 has notified"}
"""What a scheduler cannot be made without."""
LEARNING = ("pct", "surw", "delay", "preempt")
"""They learn from each run how long the next one will be."""
KERNELS = {name: made for name, made in all_kernels().items() if not name.startswith(("field.", "gpu."))}
"""Those of the field are cases: each is a mistake at one P. Those of the GPU have tests of their own."""
COLLECTIVES = {
    "broadcast": broadcast.composite,
    "broadcast, safe": broadcast.safe,
    "all-gather": all_gather.push_composite,
    "all-gather, safe": all_gather.push,
    "all-gather by pull": all_gather.pull,
    "all-to-all": all_to_all.composite,
    "all-to-all, safe": all_to_all.safe,
    "mesh": all_reduce.builtin,
    "ring": all_reduce.ring,
    "ring by pull": ring.by_pull,
    "two-phase": all_reduce.two_phase,
}
SHAPES = {rows: ("SIZE",), blocks: ("P", "SIZE")}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_of_the_table_keeps_the_rules(name):
    text = f"{name}:{NEEDS[name]}" if name in NEEDS else name
    check_scheduler(lambda: make(text, seed=3), learns=name in LEARNING)


def test_those_that_learn_are_named():
    for name in LEARNING:
        with pytest.raises(AssertionError, match="begin: the choices of a run depend on how far the run before it"):
            check_scheduler(lambda name=name: make(name, seed=3))
    with pytest.raises(MisuseError):
        make("starve")  # so it stands in NEEDS


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_comes_with_asyncsim_keeps_the_rules(name):
    check_kernel(KERNELS[name])


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_composite_keeps_the_rules(name):
    made = COLLECTIVES[name]
    check_collective(
        made, memory=made.memory, shape=SHAPES[made.inputs], golden=made.golden, finds=made.finds, ranks=(1, 2, 3)
    )


def test_a_kernel_that_is_refused_must_be_refused():
    assert check_kernel(reduce_scatter.wrong_op) == ()
