"""``asyncsim triton``: scripts that drive Triton kernels, as they are."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import asyncsim.frontends.triton as front
from asyncsim.cli.main import main

pytestmark = pytest.mark.skipif(not front.installed(), reason="needs torch and triton")
SCRIPTS = Path(__file__).parent / "scripts"


def judged(*arguments):
    """Return the status and the output of the command."""
    done = CliRunner().invoke(main, ["triton", *map(str, arguments)])
    return done.exit_code, done.output


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_all_reduce_on_pads_in_ptx_is_proved(ranks):
    status, said = judged("-P", ranks, SCRIPTS / "one_shot_pads.py")
    assert said.startswith("PROVED"), said
    assert status == 0


@pytest.mark.parametrize("how", ["--no-end", "--no-barrier-before", "--no-barrier-behind", "--relaxed", "--gpu"])
def test_broken_it_is_refuted_by_the_kernels_line(how):
    status, said = judged(SCRIPTS / "one_shot_pads.py", how)
    assert said.startswith("REFUTED")
    assert "race" in said
    assert "total += tl.load(part + i" in said or "one_shot_pads.py:73" in said
    assert status == 1


@pytest.mark.parametrize(("scope", "verdict"), [("gpu", "REFUTED"), ("sys", "PROVED")])
def test_the_page_on_triton_kernels_shows_what_happens(tmp_path, scope, verdict):
    page = (Path(__file__).parents[3] / "docs/how-to/bring-a-triton-kernel.md").read_text("utf-8")
    (tmp_path / "exchange.py").write_text(
        page.partition('title="exchange.py"\n')[2].partition("```")[0].replace('SCOPE="gpu"', f'SCOPE="{scope}"')
    )
    _, said = judged(tmp_path / "exchange.py")
    assert said.startswith(verdict), said


@pytest.mark.parametrize(("collective", "verdict"), [("all_reduce(x)", "PROVED"), ("broadcast(x, src=0)", "REFUTED")])
def test_a_collective_orders_what_it_says(tmp_path, collective, verdict):
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, torch.distributed as dist, torch.distributed._symmetric_memory as symm_mem\n"
        "rank, size = dist.get_rank(), dist.get_world_size()\n"
        "box = symm_mem.empty(4)\n"
        "symm_mem.rendezvous(box, dist.group.WORLD).get_buffer((rank + 1) % size, (4,), torch.float32).fill_(rank)\n"
        f"x = torch.ones(2) * rank\ndist.{collective}\n"
        "assert x[0] == sum(range(size)) or x[0] == 0\nprint(box.cpu())\n"
    )
    _, said = judged(script)
    assert verdict in said, said


@pytest.mark.parametrize(("text", "said"), [("x = (", "is not Python"), ("import sys\nsys.exit(3)", "left with 3")])
def test_a_script_that_cannot_be_judged_is_named(tmp_path, text, said):
    script = tmp_path / "script.py"
    script.write_text(text)
    status, output = judged(script)
    assert said in output
    assert status == 2


@pytest.mark.parametrize("ranks", ["0", "2,", "x", "17", "\uff12"])
def test_numbers_of_ranks_are_checked(ranks):
    status, output = judged("-P", ranks, SCRIPTS / "one_shot_pads.py")
    assert "does not name numbers from 1 to 16" in output
    assert status == 2


@pytest.mark.parametrize(("script", "ranks"), [("iris_message.py", 2), ("iris_context.py", 2), ("iris_context.py", 3)])
def test_scripts_of_iris_are_proved(script, ranks):
    status, said = judged("-P", ranks, SCRIPTS / script)
    assert "PROVED" in said, said
    assert status == 0


@pytest.mark.parametrize(
    ("option", "line"),
    [
        (["--sem", "relaxed"], "iris.put(source + i"),
        (["--scope", "gpu"], "iris.put(source + i"),
        (["--no-barrier"], "iris.put(source + i"),
    ],
)
def test_a_message_that_is_not_published_or_comes_before_the_fill_is_refuted(option, line):
    status, said = judged(SCRIPTS / "iris_message.py", *option)
    assert "REFUTED" in said, said
    assert line in said
    assert status == 1


def test_processes_that_are_spawned_are_the_ranks():
    status, said = judged("-P", 3, SCRIPTS / "iris_message.py")
    assert "spawn of 2 processes in a run of 3 ranks; give -P 2" in said
    assert status == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dist.all_reduce(torch.ones(2), async_op=True)", "async_op=True: what a script does before the wait"),
        ("dist.barrier(async_op=True)", "async_op=True: what a script does before the wait"),
        ("dist.barrier(group='part')", "the group 'part': only that of all ranks is known here"),
        ("iris.iris().barrier(group='part')", "the group 'part': only that of all ranks is known here"),
        ("iris.iris().device_barrier('part')", "the group 'part': only that of all ranks is known here"),
        ("torch.cuda.Stream()", "torch.cuda.Stream, a side stream,"),
    ],
)
def test_what_is_not_followed_is_refused_with_its_line(tmp_path, line, said):
    script = tmp_path / "script.py"
    script.write_text(f"import iris, torch, torch.distributed as dist\n{line}\n")
    status, output = judged(script)
    assert said in output
    assert "script.py:2" in output
    assert status == 2
