"""torch.distributed, answered where torch is installed: here a package that looks like it; and where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest
from command import ROOT, run
from torch_ranks import started

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import launch
from asyncsim.frontends.torch_dist.answer import _Finder

TORCH = {
    "__init__.py": "from torch import distributed\nimport torch.inner\n",
    "inner.py": "import torch\ndef seen(): return torch.distributed.all_reduce\n",
    "distributed/__init__.py": "def all_reduce(): pass\ndef send(): pass\n",
    "distributed/extra.py": "from torch.distributed import all_reduce as real\n",
}
SCRIPT = """
import torch
import torch.distributed as dist
import torch.distributed.extra
from torch.distributed import all_reduce
assert dist.all_reduce is all_reduce is not torch.inner.seen()
assert dist.extra.real is torch.inner.seen()
assert torch.distributed is dist and dist.__name__ == "torch.distributed"
assert not hasattr(dist, "send")
try:
    dist.send
except AttributeError as error:
    print(error)
try:
    dist.nothing
except AttributeError as error:
    print(error)
dist.init_process_group()
dist.barrier()
"""
DRIVER = """
import sys
from command import run
if sys.argv[2] == "before":
    import torch
ran = run("torchrun", "-n", "2", sys.argv[1])
print(ran.output, end="")
import torch
from torch.distributed import all_reduce, send
assert torch.inner.seen() is all_reduce
assert type(torch.distributed).__name__ == "module"
sys.exit(ran.exit_code)
"""


@pytest.mark.parametrize("imported", ["before", "by the script"])
def test_torch_is_covered_for_the_script_alone_and_uncovered_after(tmp_path, imported):
    for name, text in TORCH.items():
        path = tmp_path / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "script.py"), imported]
    path = f"{tmp_path}:{ROOT}:{ROOT / 'tests' / 'support'}"
    ran = subprocess.run(  # noqa: S603 - our own script
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False, timeout=240
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "asyncsim does not answer torch.distributed.send; it answers CallMismatchError, GroupMember" in ran.stdout
    assert "PROVED" in ran.stdout


@pytest.mark.parametrize("module", ["nn/parallel/distributed.py", "utils/data/distributed.py"])
def test_what_torch_builds_on_its_own_torch_distributed_is_said_not_to_be_served(tmp_path, module):
    name = module.removesuffix(".py").replace("/", ".")
    parts = name.split(".")
    files = {f"torch/{'/'.join(parts[:n])}/__init__.py": "" for n in range(1, len(parts))}
    files["torch/__init__.py"] = f"from torch import distributed\nimport torch.{name}\n"
    files["torch/distributed/__init__.py"] = "def ask(): raise ValueError('Default process group has not been ...')\n"
    files[f"torch/{module}"] = "from torch import distributed as real\nWrapped = lambda: real.ask()\n"
    files["script.py"] = f"import torch\ntorch.distributed.init_process_group()\ntorch.{name}.Wrapped()\n"
    files["own.py"] = "import torch\ntorch.distributed.init_process_group()\nraise ValueError('its own')\n"
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    driver = "import sys\nfrom command import run\nprint(run('torchrun', sys.argv[1]).stderr)\n"
    path = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'tests' / 'support'}"}
    said = [
        subprocess.run(  # noqa: S603 - our own script
            [sys.executable, "-c", driver, str(tmp_path / script)],
            capture_output=True,
            text=True,
            env=path,
            check=True,
            timeout=240,
        ).stdout
        for script in ("script.py", "own.py")
    ]
    assert "ValueError: Default process group has not been ...\nasyncsim: torch's own code asked the real" in said[0]
    assert "DistributedDataParallel, FSDP, and DistributedSampler without num_replicas and rank are not s" in said[0]
    assert "ValueError: its own\n" in said[1]
    assert "not served" not in said[1]


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
import torch.distributed as dist
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
