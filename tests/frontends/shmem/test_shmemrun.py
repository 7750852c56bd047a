"""``asyncsim shmemrun``: what it prints, its statuses, and what it says of wrong use."""

import json

from command import run

SHIFT = """\
import numpy as np
from shmem4py import shmem
me, n = shmem.my_pe(), shmem.n_pes()
x = shmem.zeros(2, dtype='i')
shmem.put(x, np.array([me, me], dtype='i'), (me + 1) % n)
shmem.barrier_all()
print(f"{me} has {x}")
shmem.free(x)
"""


def written(folder, text, name="shift.py"):
    path = folder / name
    path.write_text(text, "utf-8")
    return str(path)


def test_a_script_prints_and_is_proved(tmp_path):
    ran = run("shmemrun", "-n", "3", "--json", str(tmp_path / "told.json"), written(tmp_path, SHIFT))
    assert ran.exit_code == 0, ran.output
    assert sorted(ran.stdout.splitlines()[:3]) == ["0 has [2 2]", "1 has [0 0]", "2 has [1 1]"]
    assert "PROVED  " in ran.stdout
    assert ran.stdout.splitlines()[3].endswith("shift.py:shift, P = 3, 1 call, nic")
    told = json.loads((tmp_path / "told.json").read_text("utf-8"))
    assert (told["status"], told["report"]["verdict"]) == (0, "PROVED")


def test_a_race_is_told_at_both_lines_and_replayed(tmp_path):
    path = written(tmp_path, SHIFT.replace("shmem.barrier_all()\n", ""))
    ran = run("shmemrun", path)
    assert ran.exit_code == 1
    assert "REFUTED  " in ran.stdout
    assert "shift.py:5" in ran.stdout
    assert "shift.py:6" in ran.stdout
    command = next(line.split() for line in ran.stdout.splitlines() if "--replay" in line)
    again = run(*command[command.index("shmemrun") :])
    assert "replayed " in again.stdout
    assert again.exit_code in (0, 1)


def test_wrong_use_is_told_with_its_line_and_left_with_2(tmp_path):
    ran = run("shmemrun", written(tmp_path, SHIFT.replace("shmem.zeros(2", "np.zeros(2")))
    assert ran.exit_code == 2
    assert "shift.py:5" in ran.stderr
    assert "target is not symmetric" in ran.stderr


def test_a_script_that_fails_is_left_with_1(tmp_path):
    ran = run("shmemrun", written(tmp_path, "import sys\nfrom shmem4py import shmem\nsys.exit('no input')\n"))
    assert ran.exit_code == 1
    assert "no input" in ran.stderr


def test_a_name_that_is_not_answered_is_told(tmp_path):
    ran = run("shmemrun", written(tmp_path, "from shmem4py import shmem\nshmem.teleport()\n"))
    assert ran.exit_code == 2
    assert "shmem.teleport" in ran.stderr


def test_modules_beside_the_script_are_seen_too(tmp_path):
    written(tmp_path, "def fill(x, value):\n    x[0] = value\n", "helper.py")
    text = SHIFT.replace("shmem.put(", "import helper\nhelper.fill(x, 7)\nshmem.put(")
    ran = run("shmemrun", written(tmp_path, text))
    assert ran.exit_code == 1
    assert "helper.py:2" in ran.stdout
