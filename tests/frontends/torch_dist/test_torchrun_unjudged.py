"""``asyncsim torchrun``: scripts of which nothing can be said, and what is said instead of PROVED."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import BAD, run, token_of

from asyncsim.checking.record.locate import locate
from asyncsim.frontends.torch_dist import session
from asyncsim.frontends.torch_dist.replayed import run_step

START = "import numpy as np\nfrom asyncsim.frontends import torch_dist as dist\n"


@pytest.mark.parametrize("body", ["", "dist.init_process_group()\ndist.new_group([0])\n"])
def test_a_script_without_a_collective_is_not_called_proved(body, tmp_path):
    script, file = tmp_path / "idle.py", tmp_path / "report.json"
    script.write_text(START + body)
    ran = run("torchrun", "--json", str(file), str(script))
    said = f"asyncsim: {script} called no collective; there is nothing to judge\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (0, said, "")
    told = json.loads(file.read_text("utf-8"))
    assert (told["collectives"], told["report"]) == (0, None)


def test_a_rank_that_makes_no_group_is_judged_although_no_collective_was_called(tmp_path):
    script = tmp_path / "late.py"
    script.write_text(f"{START}import os\nif os.environ['RANK'] == '0': dist.init_process_group()\n")
    ran = run("torchrun", str(script))
    assert (ran.exit_code, ran.stdout.startswith("REFUTED")) == (1, True)


@pytest.mark.parametrize("record", [False, True])
def test_a_collective_that_could_not_be_run_is_not_judged_although_the_script_catches_it(record, tmp_path, monkeypatch):
    script = tmp_path / "catches.py"
    script.write_text(
        f"{START}dist.init_process_group()\nfor n in range(2):\n"
        "    try:\n        dist.all_reduce(np.ones(2))\n"
        "    except Exception as error:\n        print(n, error)\n"
    )
    how = ["--replay", token_of(locate(BAD), [])] if record else []

    def fail(step, **how):
        if step.first.name == "all_reduce":
            raise KeyError("our mistake")
        return run_step(step, **how)

    monkeypatch.setattr(session, "run_step", fail)
    ran = run("torchrun", *how, str(script))
    assert ran.exit_code == 3
    assert "PROVED" not in ran.stdout
    said = "collective 0 of the world could not be run (KeyError: 'our mistake'): ranks 0, 1 call all_reduce("
    assert [line.partition(" ")[::2] for line in ran.stdout.splitlines()] == [
        (str(n), ran.stdout.splitlines()[0].partition(" ")[2]) for n in (0, 1, 0, 1)
    ]
    assert ran.stdout.startswith(f"0 {said}")
    assert f"asyncsim: this is a bug of asyncsim, not of your kernel: NotRunError: {said}" in ran.stderr


def test_numbers_in_the_byte_order_of_another_machine_are_refused_where_they_are_given(tmp_path):
    script = tmp_path / "swapped.py"
    swapped = np.dtype(np.float64).newbyteorder("S").str
    script.write_text(f"{START}dist.init_process_group()\ndist.all_reduce(np.ones(2, {swapped!r}))\n")
    ran = run("torchrun", str(script))
    assert ran.exit_code == 1
    assert f"`tensor` has a byte order different from the native byte order ({swapped}); give x.astype(" in ran.stderr
    assert ran.stderr.endswith("not judged: the script failed, after 0 collectives\n")
