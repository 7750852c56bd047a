"""``asyncsim shmemrun``: what it prints, its statuses, and what it says of wrong use."""

import json

import pytest
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


@pytest.mark.parametrize(
    ("command", "line", "told"),
    [
        ("shmemrun", "shmem.zeros('a')", "no array of shape"),
        ("shmemrun", "shmem.zeros(1, dtype=object)", "it is for numbers"),
        ("shmemrun", "shmem.put(x, x, 0, size=-1)", "give a number of elements"),
        ("shmemrun", "shmem.iput(x, x, 0, 0, 1)", "a stride of 0"),
        ("shmemrun", "shmem.wait_until(shmem.zeros(1, dtype='i'), 'XX', 1)", "there is no comparison"),
        ("shmemrun", "shmem.wait_until(shmem.zeros(1, dtype='i'), 'EQ', 'a')", "is not what 1 elements hold"),
        ("shmemrun", "shmem.put_signal(x, x, 0, 3, 1, 0)", "int is no signal"),
        ("shmemrun", "shmem.put_signal(x, x, 0, shmem.new_signal(), 1, 9)", "9 is not a valid SIGNAL"),
        ("shmemrun", "shmem.put(x, x, 0, ctx=shmem.CTX_INVALID)", "this context is not valid"),
        ("shmemrun", "shmem.TEAM_WORLD.split_strided('a')", "cannot be interpreted"),
        ("shmemrun", "shmem.global_exit(3)", "is not followed"),
        ("mpirun", "win.Fence('x')", "unsupported operand"),
        ("mpirun", "win.Put(one, 0, 'a')", "give a displacement"),
        ("mpirun", "win.Start(3)", "no attribute 'members'"),
        ("mpirun", "MPI.Win.Allocate(-4, 1)", "give a number of bytes"),
        ("mpirun", "MPI.Win.Allocate(4, 0)", "the bytes of a displacement"),
        ("mpirun", "MPI.Win.Create([1, 2])", "give a NumPy array"),
        ("mpirun", "win.Shared_query(0)", "was not made by Allocate_shared"),
        ("mpirun", "win.Lock(5)", "there is no rank 5"),
        ("mpirun", "MPI.Foo", "mpi4py.MPI.Foo does not exist"),
    ],
)
def test_what_cannot_be_is_told_with_its_line_and_left_with_2(command, line, told, tmp_path):
    mpi = "from mpi4py import MPI\none = np.ones(1)\nwin = MPI.Win.Create(np.zeros(4), 8)\nwin.Fence()\n"
    head = "from shmem4py import shmem\nx = shmem.zeros(2)\n" if command == "shmemrun" else mpi
    ran = run(command, written(tmp_path, f"import numpy as np\n{head}{line}\n"))
    assert ran.exit_code == 2, ran.output
    assert told in ran.stderr
    assert f"shift.py:{head.count(chr(10)) + 2}" in ran.stderr or "valid SIGNAL" in told
