"""torch.distributed, answered where torch is installed: here a package that looks like it; and where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

from command import ROOT, run
from torch_ranks import started

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import launch
from asyncsim.frontends.torch_dist.answer import _Finder


class Generators(ModuleType):
    """Looks like torch as far as its global generator goes: the state is a number."""

    state = 0
    default_generator = SimpleNamespace(manual_seed=lambda seed: setattr(Generators, "state", seed))
    get_rng_state = staticmethod(lambda: Generators.state)
    set_rng_state = staticmethod(lambda state: setattr(Generators, "state", state))


def test_torchs_generator_belongs_to_each_rank(monkeypatch):
    torch = Generators("torch")
    torch.distributed = ModuleType("torch.distributed")
    torch.state = 5
    monkeypatch.setitem(sys.modules, "torch", torch)

    def program(rank):
        fresh = torch.get_rng_state()
        torch.set_rng_state(rank)
        dist.barrier()
        return fresh, torch.get_rng_state()

    runs = [launch(started(program), ranks=2, seed=seed).results for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert [[kept for _, kept in run] for run in runs] == [[0, 1]] * 3
    assert len({fresh for run in runs for fresh, _ in run}) == 4
    assert Generators.state == 0


SEEDED = """
from asyncsim.frontends import torch_dist as dist
dist.init_process_group()
import torch  # rank 0 comes here first
print("seed", dist.get_rank(), torch.get_rng_state())
dist.barrier()
"""
GENERATORS = """
from torch import distributed
state = "fresh: of another kind in every process"
class default_generator:
    def manual_seed(seed):
        set_rng_state(seed)
def get_rng_state():
    return state
def set_rng_state(new):
    global state
    state = new
"""


def test_the_rank_that_imports_torch_is_seeded_too_each_differently_and_by_the_seed(tmp_path):
    (tmp_path / "torch" / "distributed").mkdir(parents=True)
    (tmp_path / "torch" / "__init__.py").write_text(GENERATORS)
    (tmp_path / "torch" / "distributed" / "__init__.py").write_text("")
    (tmp_path / "script.py").write_text(SEEDED)
    driver = "import sys\nfrom command import run\nprint(run('torchrun', '--seed', *sys.argv[1:]).output)\n"
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'tests' / 'support'}"}
    seen = []
    for seed in ("0", "0", "1"):
        command = [sys.executable, "-c", driver, seed, str(tmp_path / "script.py")]
        ran = subprocess.run(command, capture_output=True, text=True, env=path, check=True, timeout=240)  # noqa: S603 - our own
        seen.append([line.split()[2:] for line in ran.stdout.splitlines() if line.startswith("seed ")])
    assert seen[0] == seen[1]
    states = {" ".join(state) for run_ in seen for state in run_}
    assert len(states) == 4
    assert all(state.isdecimal() for state in states)


def test_where_torch_is_not_installed_its_stand_in_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_Finder, "_installed", lambda *_: None)
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "torch"}
    try:
        (tmp_path / "script.py").write_text("import torch.distributed as dist\nimport torch\ntorch.ones(2)\n")
        ran = run("torchrun", str(tmp_path / "script.py"))
        assert "torch" not in sys.modules
    finally:
        sys.modules.update(known)
    assert ran.exit_code == 1
    assert "AttributeError: torch has no 'ones' here: torch is not installed" in ran.stderr
