"""``asyncsim torchrun``: unmodified scripts, what they print, the verdict over what they called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import run, run_process

from asyncsim.trace.jsonl import read_trace

SCRIPTS = Path(__file__).parent / "scripts"
MISTAKES = str(SCRIPTS / "mistakes.py")


@pytest.fixture(params=["numpy", "torch"])
def library(request):
    if request.param == "torch":
        pytest.importorskip("torch", exc_type=ImportError)
    return request.param


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_the_reference_pages_first_script_is_refused_with_the_sizes_that_would_fit(library):
    ran = run("torchrun", "-n", "2", str(SCRIPTS / f"page_{library}.py"), "SUM", "2")
    assert ran.exit_code == 1
    assert ran.stderr.startswith("ranks 0, 1: Traceback (most recent call last):\n")
    assert (
        "RuntimeError: reduce_scatter_tensor: output.numel() * world_size must be input.numel(), but 2 * 2 = 4 is "
        "not 2; what fits: an output of 1 element, or an input of 4 elements\n"
    ) in ran.stderr
    assert "dist.reduce_scatter_tensor(output, given, op=getattr(dist.ReduceOp, op))" in ran.stderr
    assert "asyncsim/frontends" not in ran.stderr
    assert ran.stderr.endswith("asyncsim: not judged: the script failed, after 0 collectives\n")


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
@pytest.mark.parametrize(("op", "values"), [("SUM", ([3], [5])), ("PRODUCT", ([2], [6]))])
def test_with_an_output_of_one_element_both_scripts_give_the_right_values(library, op, values):
    ran = run("torchrun", "-n", "2", str(SCRIPTS / f"page_{library}.py"), op, "1")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"rank 0: {values[0]}\nrank 1: {values[1]}\nPROVED  ")
    assert "note: collectives: 1, run again as one kernel, on memory that they share\n" in ran.stdout


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_a_sharded_training_loop_gives_the_parameters_of_a_single_process(library, tmp_path):
    script = str(SCRIPTS / f"training_{library}.py")
    ran = run("torchrun", "-n", "3", script, str(tmp_path / "sharded.npy"))
    assert ran.exit_code == 0, ran.output
    said = [line.partition(": ")[2] for line in ran.stdout.splitlines()[:3]]
    assert len(set(said)) == 1
    assert "PROVED" in ran.stdout
    command = [sys.executable, script, str(tmp_path / "alone.npy"), "-"]
    subprocess.run(command, check=True, capture_output=True, timeout=240)  # noqa: S603 - our own script
    sharded, alone = np.load(tmp_path / "sharded.npy"), np.load(tmp_path / "alone.npy")
    assert sharded.shape == alone.shape
    np.testing.assert_allclose(sharded, alone, rtol=1e-9, atol=1e-12)  # means of parts: another order of sums


@pytest.mark.parametrize("memory", ["ldst", "nic", "ldst:atom=1"])
def test_the_library_that_is_played_is_right_in_late_memory_too(memory):
    ran = run("torchrun", "-n", "2", "--memory", memory, str(SCRIPTS / "every_collective.py"))
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[:2] == ["[1, 5, 0, 2, 1, 5, 4]", "[1, 5, 1, 3, 1, 5, 4]"]
    assert "PROVED" in ran.stdout


def belongings():
    drawn = np.random.get_state()[1].tolist()  # noqa: NPY002 - the global one is what ranks could disturb
    return dict(os.environ), list(sys.argv), list(sys.path), drawn


def test_a_rank_has_a_process_of_its_own():
    before = belongings()
    ran = run("torchrun", "-n", "3", "--prefix", str(SCRIPTS / "belongings.py"), "--prefix", "-n", "x")
    assert ran.exit_code == 0, ran.output
    lines = [f"[rank {rank}] --prefix -n x seen by {rank}" for rank in range(3)]
    assert ran.stdout.splitlines()[:3] == lines
    assert ran.stderr == "".join(f"[rank {rank}] unfinished\n" for rank in range(3))
    assert belongings() == before


def test_any_working_directory_and_modules_beside_the_script(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "beside_the_script.py").write_text(
        "from asyncsim.frontends import torch_dist as dist\nimport os\n"
        "rank = int(os.environ['RANK'])\nsend = dist.all_reduce\n"
    )
    (tmp_path / "main.py").write_text(
        "import numpy as np\nfrom asyncsim.frontends import torch_dist\nfrom beside_the_script import rank, send\n"
        "from asyncsim.frontends.torch_dist import *\n"
        "torch_dist.init_process_group('gloo')\nx = np.ones(1)\nsend(x)\n"
        "import beside_the_script as again\nprint(x, __file__, rank, again.rank)\n"
    )
    monkeypatch.chdir(tmp_path / "elsewhere")
    ran = run("torchrun", "--nproc-per-node=2", "../main.py")
    assert ran.stdout.startswith(
        "[2.] ../main.py 0 0\n[2.] ../main.py 1 1\nPROVED  ../main.py:collectives, P = 2, 1 call, sc\n"
    )
    assert "beside_the_script" not in sys.modules


@pytest.mark.parametrize("call", ["dist.barrier()", "while not dist.barrier(async_op=True).is_completed(): pass"])
def test_waiting_while_a_module_is_imported_is_refused_instead_of_hanging(call, tmp_path):
    (tmp_path / "waits.py").write_text(f"import torch.distributed as dist\n{call}\n")
    (tmp_path / "main.py").write_text("import torch.distributed as dist\ndist.init_process_group()\nimport waits\n")
    ran = run("torchrun", "-n", "2", str(tmp_path / "main.py"))
    assert ran.exit_code == 1
    assert "RuntimeError: barrier at waits.py:2 waits for the other ranks while a module is being imp" in ran.stderr
    assert run("torchrun", "-n", "1", str(tmp_path / "main.py")).exit_code == 0


# Mistakes.


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        ("other_op", ["call mismatch in collective 1 of the world, in its op: rank 0 calls all_reduce(dtype=float32,"]),
        ("other_size", ["in its elements: rank 0 calls", "elements=2, op=SUM, seq=1, shape=(2))", "shape=(3))"]),
        (
            "other_dtype",
            ["in its dtype: rank 0 calls all_reduce(dtype=float32", "rank 1 calls all_reduce(dtype=float64"],
        ),
        ("other_root", ["in its src: rank 0 calls broadcast(", "src=0)", "src=1)"]),
        (
            "other_operation",
            ["collective 1 of the world: rank 0 calls all_reduce(", "; rank 1 calls barrier(seq=1) at"],
        ),
    ],
)
def test_calls_that_do_not_fit_are_told_rank_by_rank_with_their_lines(mistake, said):
    ran = run("torchrun", "-n", "2", MISTAKES, mistake)
    assert ran.exit_code == 1
    for text in said:
        assert text in ran.stderr
    assert ran.stderr.startswith("ranks 0, 1: CallMismatchError: call mismatch")
    assert ran.stderr.count("mistakes.py:") == 2
    assert "1. call-mismatch: harmful\n" in ran.stdout
    assert "2. " not in ran.stdout
    assert "collective 1 of call 0 is not the same on all ranks of the world" in ran.stdout
    assert "mistakes.py:" in ran.stdout


def test_an_absent_rank_is_a_deadlock_with_names_at_once():
    ran = run("torchrun", "-n", "3", MISTAKES, "absent")
    assert ran.exit_code == 1
    assert ran.stderr.startswith(
        "ranks 0, 2: CallMismatchError: deadlock: in collective 1 of the world ranks 0, 2 call barrier(seq=1) at "
    )
    assert ran.stderr.endswith("; rank 1 has finished\n")
    assert "rank 1 calls none any more" in " ".join(ran.stdout.split())
    assert "deadlock: " in ran.stdout


def test_ranks_that_wait_in_different_groups_are_told_where_each_other_stands():
    ran = run("torchrun", "-n", "2", MISTAKES, "other_order")
    assert ran.exit_code == 1
    assert "in collective 0 of group_1 rank 0 calls all_reduce(" in ran.stderr
    assert "; rank 1 stands in all_reduce(" in ran.stderr
    assert " of the world at " in ran.stderr
    assert "1. deadlock: 2 actors, harmful\n" in ran.stdout


def test_a_script_that_fails_by_itself_keeps_its_status_and_is_not_judged():
    ran = run("torchrun", "-n", "3", MISTAKES, "raises")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "ranks 0, 2: CallMismatchError: deadlock:" in ran.stderr
    assert "; rank 1 has ended with ValueError\n" in ran.stderr
    assert "rank 1: Traceback (most recent call last):\n" in ran.stderr
    assert "ValueError: a mistake of its own\n" in ran.stderr
    assert run("torchrun", "-n", "2", MISTAKES, "leaves").exit_code == 7
    ran = run("torchrun", "-n", "2", MISTAKES, "says_why")
    assert (ran.exit_code, ran.stderr.partition("asyncsim")[0]) == (1, "ranks 0, 1: no reason\n")


def test_work_that_nobody_waits_for_is_noted_and_so_is_what_is_not_seen():
    ran = run("torchrun", "-n", "2", MISTAKES, "undone")
    assert ran.exit_code == 0
    said = " ".join(ran.stdout.split())
    assert "async_op=True: 2; touching a tensor between such a call and its wait() is not seen" in said
    assert "note: never waited for, so that its result may not be used: rank 0 calls all_reduce(" in said


def test_polling_for_what_never_comes_ends():
    ran = run("torchrun", "-n", "2", MISTAKES, "polls")
    assert ran.exit_code == 1
    assert "rank 0: CallMismatchError: deadlock: in collective 1 of the world rank 0 calls all_reduce(" in ran.stderr


# Witnesses.


def replay_arguments(ran):
    line = next(line for line in ran.stdout.splitlines() if "asyncsim torchrun" in line)
    return line.partition("asyncsim ")[2].split()


@pytest.mark.parametrize("mistake", ["other_op", "absent"])
def test_the_replay_line_of_a_report_works(mistake):
    again = run(*replay_arguments(run("torchrun", "-n", "2", "--seed", "3", MISTAKES, mistake)))
    assert again.exit_code == 1
    assert again.stdout.startswith("replayed ")
    assert "call-mismatch: collective 1 of call 0 is not the same on all ranks" in again.stdout


def test_a_saved_trace_is_replayed_as_well(tmp_path):
    assert run("torchrun", "-n", "2", "--save", str(tmp_path), MISTAKES, "absent").exit_code == 1
    (path, _) = sorted(tmp_path.iterdir())
    assert read_trace(path).footer.verdict == "REFUTED"
    again = run("torchrun", "-n", "2", "--replay", str(path), MISTAKES, "absent")
    assert (again.exit_code, "deadlock" in again.stdout) == (1, True)


def test_a_replay_of_another_script_says_where_it_differs(tmp_path):
    arguments = replay_arguments(run("torchrun", "-n", "2", MISTAKES, "other_op"))
    ran = run(*arguments[:-2], str(SCRIPTS / "page_numpy.py"), "SUM", "1")
    assert ran.exit_code == 2
    assert "divergence at step" in ran.stderr
    ran = run(*["3" if part == "2" else part for part in arguments])
    assert (ran.exit_code, "the record is of 2 ranks, and -n says 3; give -n 2" in ran.stderr) == (2, True)
    ran = run("torchrun", "--replay", "nowhere.jsonl", MISTAKES, "absent")
    assert (ran.exit_code, "there is no trace file 'nowhere.jsonl'" in ran.stderr) == (2, True)


def test_a_replay_says_that_the_script_has_changed(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(Path(MISTAKES).read_text("utf-8"))
    arguments = replay_arguments(run("torchrun", "-n", "2", str(script), "absent"))
    script.write_text(Path(MISTAKES).read_text("utf-8") + "# more\n")
    ran = run(*arguments)
    assert (ran.exit_code, "the script has changed" in ran.stderr) == (2, True)


# Output.


def test_the_report_is_written_as_json(tmp_path):
    file = tmp_path / "report.json"
    run("torchrun", "-n", "2", "--json", str(file), MISTAKES, "other_op")
    told = json.loads(file.read_text("utf-8"))
    assert (told["status"], told["collectives"], told["report"]["verdict"]) == (1, 1, "REFUTED")
    assert told["mismatch"].startswith("call mismatch in collective 1 of the world, in its op")
    assert sorted(told["errors"]) == ["0", "1"]
    run("torchrun", "-n", "2", "--json", str(file), MISTAKES, "raises")
    told = json.loads(file.read_text("utf-8"))
    assert (told["status"], told["report"], told["errors"]["1"]) == (1, None, "ValueError: a mistake of its own")


def test_output_and_verdict_are_the_same_in_every_process_and_under_every_hash_seed():
    seen = set()
    for seed in ("0", "1"):
        ran = run_process("torchrun", "-n", "3", MISTAKES, "other_op", PYTHONHASHSEED=seed)
        lines = [line for line in ran.stdout.splitlines() if " runs in " not in line and " run in " not in line]
        seen.add((ran.returncode, "\n".join(lines), ran.stderr))
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.py"], "nowhere.py is not a file that can be read"),
        (["--memory", "foo", MISTAKES, "absent"], "memory='foo'; the memory models are"),
        (["--scheduler", "foo", MISTAKES, "absent"], "foo"),
        (["-n", "0", MISTAKES], "0 is not in the range"),
    ],
)
def test_bad_input_is_told(arguments, said):
    ran = run("torchrun", *arguments)
    assert (ran.exit_code, said in ran.stderr) == (2, True)


def test_a_script_that_is_no_python_is_told_with_its_line(tmp_path):
    (tmp_path / "bad.py").write_text("x = 1\nx = = 2\n")
    ran = run("torchrun", str(tmp_path / "bad.py"))
    assert (ran.exit_code, "bad.py:2: invalid syntax" in ran.stderr) == (2, True)
    (tmp_path / "bad.py").write_bytes(b"x = '\0'\n")
    ran = run("torchrun", str(tmp_path / "bad.py"))
    assert (ran.exit_code, ran.stderr.endswith("bad.py holds null bytes, as a binary file does; name a script\n")) == (
        2, True,
    )  # fmt: skip
