"""`asyncsim mscclpp`: what it prints, its exit status, and what it refuses."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from builder import Builder
from command import run
from plans import (
    allgather_get,
    allgather_put,
    allreduce_packets,
    allreduce_packets_twice,
    handshake,
    reducescatter_read,
)  # fmt: skip
from test_mscclpp_plans import without


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def written(name, tree):
        (tmp_path / name).write_text(json.dumps(tree, indent=1), "utf-8")
        return name

    return written


def test_a_right_plan_is_proved_under_both_models(write):
    told = run("mscclpp", write("a.json", allgather_put(2).tree()))
    assert told.exit_code == 0
    assert told.output.startswith("PROVED  a.json, 2 launches, P = 2, as meant, sc and gpu\n")
    assert "2 launches and these inputs" in " ".join(told.output.split()), told.output


def test_a_finding_names_the_operations_and_their_neighbours_and_its_replay_shows_it(write):
    tree = without(allgather_put(2).tree(), 0, (5,), range(2))
    told = run("mscclpp", write("a.json", tree))
    assert told.exit_code == 1
    assert "gpu 0, thread block 0, op 4: put: remote_store" in " ".join(told.output.split())
    lines = json.dumps(tree, indent=1).splitlines()
    line = next(number for number, text in enumerate(lines) if '"put"' in text)  # the brace is on the line before
    assert f"\na.json:{line}  gpus[0].threadblocks[0].ops[4]\n" in told.output
    assert (
        "\n  > 4: put input[0:1] of gpu 0 -> output[0:1] of gpu 1\n    5: signal on memory channel 0\n" in told.output
    )
    again = re.search(r"asyncsim (mscclpp .*)$", told.output, re.MULTILINE)[1]
    replayed = run(*shlex.split(again))
    assert replayed.exit_code == 1
    assert "wrong-result" in replayed.output


def test_plans_in_turn_share_a_scratch_and_one_flag(write):
    one = {**allreduce_packets(2).tree(), "reuse_resources": True, "name": "one"}
    two = {**allreduce_packets_twice(2).tree(), "reuse_resources": True, "name": "two"}
    write("one.json", one)
    write("two.json", two)
    assert run("mscclpp", "one.json", "two.json", "one.json").output.startswith("PROVED  one.json, two.json, one.json")


def test_executed_is_judged_with_the_faults_of_the_executor(write):
    told = run("mscclpp", write("get.json", allgather_get(2).tree()), "--as", "executed")
    assert told.exit_code == 2
    assert "ops[4]: as executed, get is at input[1:2] of gpu 1, which is out of range" in told.stderr
    plan = Builder(2, "alltoall", (2, 2, 0))
    for gpu in range(2):
        handshake(plan, gpu, 0, [1 - gpu])
        plan.add(gpu, 0, "copy", [("i", gpu, 1)], [("o", gpu, 1)])
        plan.add(gpu, 0, "get", [(1 - gpu, "i", gpu, 1)], [("o", 1 - gpu, 1)])
        plan.add(gpu, 0, "nop")
        handshake(plan, gpu, 0, [1 - gpu])
    name = write("get.json", plan.tree())
    assert run("mscclpp", name).exit_code == 0
    told = run("mscclpp", name, "--as", "executed", "--memory", "sc")
    assert told.exit_code == 1
    assert "the executor exchanges the offsets of a get's source and target" in told.output
    name = write("max.json", reducescatter_read(2, reduce="max").tree())
    assert run("mscclpp", name, "--memory", "sc").exit_code == 0
    assert "reduce_op" in run("mscclpp", name, "--memory", "sc", "--as", "executed").output


def test_a_repaired_plan_is_written_and_proved(write):
    name = write("a.json", without(allgather_put(2).tree(), 0, (5,), range(2)))
    told = run("mscclpp", name, "--write", "fixed.json")
    assert "repair, judged PROVED, written to fixed.json:\n  thread block 0, op 4: a nop after put\n" in told.output
    assert run("mscclpp", "fixed.json").exit_code == 0


def test_an_audit_says_what_guards_nothing(write):
    told = run("mscclpp", "--audit", write("a.json", reducescatter_read(2).tree()))
    assert (
        "guards nothing, each taken by itself: 1 place\n  thread block 0, op 7: nop; saves 2 operations" in told.output
    )


def test_sizes_have_to_divide(write):
    name = write("a.json", reducescatter_read(2).tree())
    assert run("mscclpp", name, "--sizes", "64", "--memory", "sc").exit_code == 0
    told = run("mscclpp", name, "--sizes", "40")
    assert told.exit_code == 2
    assert "40 bytes are not 2 chunks of a multiple of 16 bytes; give a multiple of 32" in told.stderr


def test_json_has_the_operations_of_each_finding(write):
    name = write("a.json", without(allgather_put(2).tree(), 0, (5,), range(2)))
    run("mscclpp", name, "--json", "out.json")
    (made,) = json.loads(Path("out.json").read_text("utf-8"))
    assert (made["verdict"], made["memory"], made["plans"]) == ("REFUTED", ["sc"], ["a.json", "a.json"])
    assert made["operations"][0][0]["path"] == "gpus[0].threadblocks[0].ops[4]"


def test_counts_that_differ_are_told_before_it_runs(write):
    told = run("mscclpp", write("a.json", without(allgather_put(2).tree(), 0, (1,), [0])))
    assert (
        "known before it runs: gpus[0]: memory channel 0 is signalled 2 times a call and waited for 1 times"
        in told.output
    )


OPS = ("gpus", 0, "threadblocks", 0, "ops")


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (("collective",), "allscatter", "collective is 'allscatter'; it is one of allgather, "),
        (("gpus", 0, "id"), 7, "gpus have the ids [1, 7]; they are 0, 1, 2, …, each once"),
        (("gpus", 0, "input_chunks"), -1, "gpus[0]: 'input_chunks' is -1; it is at least 0"),
        (("gpus", 1, "input_chunks"), 2, "gpus: allgather with 1 input and 2 output chunks, on 2 gpus"),
        (("gpus", 0, "channels", 0, "connected_to"), [5], "gpus[0].channels[0]: rank 5 is no peer"),
        (("gpus", 0, "remote_buffers", 0, "type"), "x", "gpus[0].remote_buffers[0]: type is 'x'; it is i, o or s"),
        ((*OPS, 0, "name"), "sgnal", "gpus[0].threadblocks[0].ops[0]: operation 'sgnal' is not one of put, "),
        ((*OPS, 0, "name"), "glre", "gpus[0].threadblocks[0].ops[0]: the executor has no operation 'glre'"),
        ((*OPS, 0, "channel_ids"), [3], "ops[0]: channel_ids is [3]; there are 1 memory channels of"),
        ((*OPS, 3, "src_buff"), [{"type": "i", "index": 1, "size": 1}],
         "ops[3].src_buff[0]: input[1:2] of gpu 0 is out of range: gpu 0 has 1 input_chunks"),
        ((*OPS, 3, "src_buff"), [], "ops[3]: copy has 0 sources and 1 targets; it needs both"),
        ((*OPS, 4, "dst_buff"), [{"buffer_id": 4, "index": 0, "size": 1}], "ops[4].dst_buff[0]: buffer_id is 4"),
        ((*OPS, 8, "barrier_id"), 16, "ops[8]: barrier_id is 16; the executor has 16 barriers"),
        (("buffer_alignment",), 0, "the plan: 'buffer_alignment' is 0; it is at least 1"),
        (("buffer_alignment",), None, "the plan: 'buffer_alignment' is None; it is an int"),
        (("gpus", 0, "semaphores"), [{"init_value": 2**40}], "semaphores[0]: init_value is 1099511627776; values are"),
        (("gpus", 0, "channels", 0, "channel_type"), "wire", "channels[0]: channel_type is 'wire'; it is one of "),
        (("gpus", 0, "threadblocks", 0, "id"), 10**30, "threadblocks[0]: id is 1000000000000000000000000000000;"),
        (("gpus", 0, "threadblocks", 0), [], "gpus[0].threadblocks[0]: is []; an object with 'id' belongs here"),
        ((*OPS, 0, "channel_ids"), [True], "ops[0].channel_ids[0]: is True; it is an integer >= 0"),
        ((*OPS, 4, "src_buff", 0, "size"), 10**30, "ops[4].src_buff[0]: input[0:1000000000000000000000000000000] of"),
        ((*OPS, 8, "num_threadblocks"), 0, "ops[8]: 'num_threadblocks' is 0; it is at least 1"),
        ((*OPS[:-1], "ops"), [{"name": "nop"}] * 65, "threadblocks[0]: has 65 operations; the executor has room"),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_run_ends_with_its_place_in_the_json(write, path, value, text):
    plan = allgather_put(2)
    plan.add(0, 0, "barrier", barrier_id=0, num_threadblocks=1)
    tree = plan.tree()
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    told = run("mscclpp", write("a.json", tree))
    assert told.exit_code == 2
    assert text in " ".join(told.stderr.split())


def test_scratch_with_plain_data_where_packets_are_is_refused(write):
    plan = Builder(2, "custom", (1, 1, 2))
    for gpu in range(2):
        plan.add(gpu, 0, "cpkt", [("i", 0, 1)], [("s", 0, 1)])
        plan.add(gpu, 0, "copy", [("i", 0, 1)], [("s", 1, 1)])
    told = run("mscclpp", write("a.json", plan.tree()))
    assert told.exit_code == 2
    assert "has packets in, whose offsets are doubled" in told.stderr


FAKE = "from pathlib import Path\ndef plan():\n    return Path('made.json').read_text()\n"


def test_a_script_in_the_dsl_is_judged_by_what_it_prints(write, tmp_path, monkeypatch):
    write("made.json", allgather_put(2).tree())
    (tmp_path / "script.py").write_text(
        "import sys\nimport mscclpp.language as dsl\n"
        "if sys.argv[1:] != ['--size', '2']:\n    raise ValueError(f'unknown size: {sys.argv}')\n"
        "print(dsl.plan())\n",
        "utf-8",
    )
    told = run("mscclpp", "script.py")
    assert told.exit_code == 2
    assert "mscclpp.language is not installed; print its plan where it is" in " ".join(told.stderr.split())
    (tmp_path / "mscclpp").mkdir()
    (tmp_path / "mscclpp" / "__init__.py").write_text("", "utf-8")
    (tmp_path / "mscclpp" / "language.py").write_text(FAKE, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    argv = list(sys.argv)
    told = run("mscclpp", "script.py", "--args", "--size 2", "--memory", "sc")
    assert (told.exit_code, told.output.split(",")[0]) == (0, "PROVED  script.py")
    told = run("mscclpp", "script.py")
    assert told.exit_code == 2
    assert "script.py:4: ValueError: unknown size" in told.stderr
    (tmp_path / "script.py").write_text("raise SystemExit(3)", "utf-8")
    assert "script.py left with status 3; --args has" in run("mscclpp", "script.py").stderr
    assert "nothing.py cannot be read" in run("mscclpp", "nothing.py").stderr
    assert sys.argv == argv
    for name in ("mscclpp", "mscclpp.language"):
        sys.modules.pop(name)


def test_what_is_no_plan_is_refused(write, tmp_path):
    (tmp_path / "a.json").write_text("[1, 2", "utf-8")
    assert "a.json is no JSON" in run("mscclpp", "a.json").stderr
    assert "a.json: an execution plan is a JSON object" in run("mscclpp", write("a.json", [])).stderr
    assert "a.json: the plan: has no 'gpus'" in run("mscclpp", write("a.json", {})).stderr
    assert run("mscclpp", "nothing.json").exit_code == 2
