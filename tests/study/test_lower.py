"""What a call becomes: its primitives by phase and site, its credits, and two kernels side by side."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import run

from asyncsim import MisuseError, Set, Signal, Window, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.study.lower import LEFT, RIGHT, SAME, lower, side_by_side
from asyncsim.views.lower import diff_text, lower_text
from kernels import reduce_scatter

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "look-at-a-run.md"
HAND_AND_BUILTIN = ("reduce_scatter:hand", "reduce_scatter:builtin")


def diff():
    return side_by_side(*(lower(locate(name)) for name in HAND_AND_BUILTIN))


# The tutorial's two programs.


def test_the_documentation_shows_what_the_command_prints():
    section = PAGE.read_text("utf-8").partition("## What a call becomes")[2]
    shown = re.search(r"```text\n(.*?)```", section, re.DOTALL)
    result = run("lower", "--diff", *HAND_AND_BUILTIN)
    assert result.exit_code == 0
    assert result.output == shown[1]


def test_the_composite_has_a_second_barrier_and_stores_in_place():
    only = [(row.mark, row.right.first.short, row.right.count) for row in diff() if row.left is None]
    assert only == [
        (RIGHT, "notify signal +1", 3),
        (RIGHT, "wait signal >= 2", 3),
        (RIGHT, "store data", 1),
        (RIGHT, "load data", 1),
    ]


def test_it_gives_back_two_credits_where_the_other_gives_one():
    (changed,) = [row for row in diff() if row.mark == "~"]
    assert (changed.left.first.short, changed.right.first.short) == ("notify own signal -1", "notify own signal -2")
    for name, gained in zip(HAND_AND_BUILTIN, (1, 2), strict=True):
        cells = lower(locate(name)).cells
        assert [(cell.gained, cell.left) for cell in cells] == [(gained, 0)] * 3


def test_the_same_kernel_beside_itself_is_the_same_everywhere():
    one = lower(reduce_scatter.hand)
    assert {row.mark for row in side_by_side(one, one)} == {SAME}
    assert " ~ " not in diff_text(one, one).partition("\n\n")[2]


def test_what_the_left_one_alone_has_stands_on_the_left():
    rows = side_by_side(lower(reduce_scatter.builtin), lower(reduce_scatter.hand))
    assert [row.left.first.short for row in rows if row.mark == LEFT][:2] == ["notify signal +1", "wait signal >= 2"]


def test_primitives_stand_below_their_phase_and_site_and_the_credits_below_them():
    text = lower_text(lower(reduce_scatter.builtin, rank=1, ranks=2))
    lines = re.sub(r"\.py:\d+", ".py:N", text)
    assert (
        lines
        == """\
kernels.reduce_scatter:builtin, P = 2: call 0 on rank 1: 11 primitives

stage
  kernels/reduce_scatter.py:N  await rank.store(data[c], x[c * stride : c * stride + SIZE])
      store to data[0, 0:64]@1
      store to data[1, 0:64]@1

(no phase)
  kernels/reduce_scatter.py:N  await barrier(rank, signal)  # ready: every chunk is staged
    inside it asyncsim/collectives/barrier.py:N
      notify signal[1, 0]@0 += 1
    inside it asyncsim/collectives/barrier.py:N
      wait signal[0, 0]@1 >= 1

reduce
  kernels/reduce_scatter.py:N  acc = await rank.load(data[rank.id])
      load of data[1, 0:64]@1
  kernels/reduce_scatter.py:N  acc += await rank.load(data.at(peer)[rank.id])
      remote_load of data[1, 0:64]@0

(no phase)
  kernels/reduce_scatter.py:N  await barrier(rank, signal, generation=2)  # read: the next call may stage
    inside it asyncsim/collectives/barrier.py:N
      notify signal[1, 0]@0 += 1
    inside it asyncsim/collectives/barrier.py:N
      wait signal[0, 0]@1 >= 2
  kernels/reduce_scatter.py:N  await rank.store(data[rank.id], acc)
      store to data[1, 0:64]@1
  kernels/reduce_scatter.py:N  await settle(rank, signal, credits=1 + post_barrier)
    inside it asyncsim/collectives/barrier.py:N
      notify signal[0, 0]@1 += -2
  kernels/reduce_scatter.py:N  return await rank.load(data[rank.id])
      load of data[1, 0:64]@1

credits
  cell            value         from            waited for
  --------------  ------------  --------------  ----------
  signal[0, 0]@1  +1 +1 -2 = 0  rank 0, itself  >= 1, >= 2
"""
    )


# Later calls, other kernels.


def test_a_later_call_starts_with_what_the_earlier_ones_left():
    text = lower_text(lower(reduce_scatter.double_buffer, ranks=2, call=1))
    assert "call 1 on rank 0" in text
    assert "data[1, " in text
    assert re.search(r"signal\[1, 0\]@0 +1 \+1 = 2 +rank 1 +>= 2", text)


box = Window("box", (2,), np.float32, initialised=True)
flag = Signal("flag", (2,))


@kernel(memory=[box, flag])
async def everything(rank, box, flag):
    """Set, consume, test, put with signal, copy; a stream."""

    async def copy(rank):
        await rank.get(box[0:1], box.at(1)[0:1])

    if rank.id == 1:
        await rank.put_signal(box.at(0)[0:1], np.ones(1, np.float32), flag.at(0)[0], 3)
        await rank.notify(flag.at(0)[1], 7, Set)
        return
    await rank.wait(flag[0] >= 3, consume=True)
    await rank.test(flag[1] >= 9)
    stream = await rank.start(copy)
    await rank.join(stream)


def test_every_sort_of_primitive_is_shown():
    one, other = lower(everything, ranks=2), lower(everything, ranks=2, rank=1)
    assert [group.first.short for group in one.groups] == [
        "wait flag >= 3 and subtract",
        "test flag >= 9",
        "start 0.1",
        "get box",
        "join 0.1",
    ]
    assert [group.first.short for group in other.groups] == ["put_signal flag +3", "notify flag := 7"]
    assert [(cell.cell, cell.sum, cell.waits) for cell in one.cells] == [
        ("flag[0]@0", "+3 -3 = 0", [">= 3"]),
        ("flag[1]@0", ":= 7 = 7", [">= 9"]),
    ]
    text = lower_text(one)
    assert "stream 0.1: " in text
    assert lower_text(other).endswith("credits\n  none\n")
    rows = diff_text(one, other)
    assert re.search(r"credits +1 cell of flag, N = 3 +\+3 -3 = 0 +<\n", rows)
    assert re.search(r"credits +> +1 cell of flag, N = 3 +\+3 -3 = 0\n", diff_text(other, one))


@kernel(memory=[box, flag])
async def hangs(rank, box, flag):
    """Wait for nobody."""
    await rank.store(box[0], 1)
    await rank.wait(flag[0] >= 1)


def test_a_call_that_hangs_says_where_it_stands():
    text = lower_text(lower(hangs, ranks=1))
    assert "and there it stands, for ever" in text
    assert "wait flag[0]@0 >= 1" in text


@kernel(memory=[box, flag])
async def two_producers(rank, box, flag):
    """Ranks 1 and 2 add to one cell of rank 0; rank 2 is slow in call 0, and rank 1 begins call 2 with a Set."""
    for _ in range(10 if rank.id == 2 and rank.call == 0 else 1):
        await rank.load(box[0])
    if rank.id == 1 and rank.call == 2:
        await rank.notify(flag.at(0)[0], 5, Set)
    if rank.id:
        await rank.notify(flag.at(0)[0], 1)


def test_credits_of_an_earlier_call_that_come_late_are_none_of_this_one():
    first, second, third = (lower(two_producers, ranks=3, call=call).cells[0] for call in range(3))
    assert (first.changes, first.sum) == ([(1, "+1"), (2, "+1")], "+1 +1 = 2")
    assert (second.changes, second.sum) == ([(1, "+1"), (2, "+1")], "2 +1 +1 = 4")
    assert third.changes == [(1, ":= 5"), (1, "+1"), (2, "+1")]


# The command.


def test_json_is_one_object_for_one_kernel_and_an_array_for_two():
    one = json.loads(run("lower", "reduce_scatter:hand", "-P", "2", "--rank", "1", "--json").output)
    assert (one["kernel"], one["rank"], len(one["primitives"])) == ("kernels.reduce_scatter:hand", 1, 7)
    assert one["cells"][0]["changes"] == [{"rank": 0, "change": "+1"}, {"rank": 1, "change": "-1"}]
    assert one["primitives"][0]["phase"] == "stage"
    two = json.loads(run("lower", *HAND_AND_BUILTIN, "--json").output)
    assert [made["kernel"] for made in two] == [f"kernels.{name}" for name in HAND_AND_BUILTIN]


def test_two_kernels_without_diff_come_one_after_the_other():
    text = run("lower", *HAND_AND_BUILTIN).output
    assert text.count("credits\n") == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reduce_scatter:hand", "--rank", "4"), "there is no rank 4; the ranks are 0 to 3"),
        (("--diff", "reduce_scatter:hand"), "--diff lays two kernels side by side; 1 given"),
    ],
)
def test_what_cannot_be_shown_is_refused(arguments, words):
    result = run("lower", *arguments)
    assert (result.exit_code, words in result.stderr) == (2, True)


def test_calls_count_from_0():
    with pytest.raises(MisuseError, match="there is no call -1"):
        lower(reduce_scatter.hand, call=-1)
