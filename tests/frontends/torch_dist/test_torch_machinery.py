"""Real torch on ranks of asyncsim: everything above the process group is torch's own code."""

from __future__ import annotations

import sys

import pytest
from command import run

torch = pytest.importorskip("torch", exc_type=ImportError)
START = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
r, W = dist.get_rank(), dist.get_world_size()
"""
EVERY = """
x = torch.ones(3) * (r + 1)
dist.all_reduce(x)
assert x.tolist() == [6.0] * 3, x
got = [None] * W
dist.all_gather_object(got, {"rank": r})
assert got == [{"rank": n} for n in range(W)], got
given = [{"a": 1}] if r == 0 else [None]
dist.broadcast_object_list(given, src=0)
assert given == [{"a": 1}]
one = torch.ones(2) * r
if r == 0:
    dist.send(one, 1)
    dist.send(one + 7, 2, tag=5)
elif r == 1:
    dist.recv(one, 0)
    assert one.tolist() == [0.0, 0.0]
else:
    dist.recv(one, 0, tag=5)
    assert one.tolist() == [7.0, 7.0]
came = torch.zeros(2)
ops = [dist.P2POp(dist.isend, torch.ones(2) * r, (r + 1) % W), dist.P2POp(dist.irecv, came, (r - 1) % W)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
assert came.tolist() == [float((r - 1) % W)] * 2
own = torch.ones(1) * (r + 1)
dist.reduce(own, 1)
assert own.item() == (6 if r == 1 else r + 1)
parts = [torch.zeros(2) for _ in range(W)] if r == 2 else None
dist.gather(torch.ones(2) * r, parts, dst=2)
assert parts is None or [p[0].item() for p in parts] == [0, 1, 2]
out = torch.zeros(2)
dist.scatter(out, parts, src=2)
assert out.tolist() == [float(r)] * 2
outs = [torch.zeros(1) for _ in range(W)]
dist.all_to_all(outs, [torch.ones(1) * (10 * r + n) for n in range(W)])
assert [o.item() for o in outs] == [10 * n + r for n in range(W)]
evens = dist.new_group([0, 2])
if r != 1:
    y = torch.ones(1)
    work = dist.all_reduce(y, group=evens, async_op=True)
    assert work.wait() and work.is_completed()
    assert y.item() == 2 and work.get_future().value()[0].item() == 2
dist.monitored_barrier()
dist.barrier()
store = dist.TCPStore("localhost", 1, W, r == 0)
if r == 2:
    store.set("key", "value")
assert store.get("key") == b"value" and store.add("count", 0) == 0
dist.destroy_process_group()
assert not dist.is_initialized()
"""
MODELS = """
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel as DDP
mesh = init_device_mesh("cpu", (W,))
total = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(0)]).sum().full_tensor()
assert total.item() == 28
torch.manual_seed(0)
alone, ddp, fsdp, tp = (torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)) for _ in range(4))
for model in (ddp, fsdp, tp):
    model.load_state_dict(alone.state_dict())
x = torch.arange(8.0).reshape(2, 4)
alone(x).sum().backward()
want = alone[0].weight.grad
ddp = DDP(ddp)
ddp(x[r : r + 1] * 2).sum().backward()
half = ddp.module[0].weight.grad
assert torch.allclose(half, want, rtol=1e-5), (half, want)
fully_shard(fsdp)
fsdp(x[r : r + 1] * 2).sum().backward()
assert torch.allclose(fsdp[0].weight.grad.full_tensor(), want, rtol=1e-5)
tp = parallelize_module(tp, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})
assert torch.allclose(tp(x), alone(x), rtol=1e-5)
optimizer = ZeroRedundancyOptimizer(ddp.parameters(), optimizer_class=torch.optim.SGD, lr=0.1)
before = ddp.module[0].weight.detach().clone()
optimizer.step()
assert torch.allclose(ddp.module[0].weight, before - 0.1 * half)
"""
RING = """
k = torch.ones(2) * (r + 1)
total = k.clone()
for step in range(W - 1):
    nxt = torch.zeros(2)
    ops = [dist.P2POp(dist.isend, k, (r + 1) % W), dist.P2POp(dist.irecv, nxt, (r - 1) % W)]
    works = dist.batch_isend_irecv(ops)
    for work in works:
        work.wait()
    k = nxt
    total += k
assert total.tolist() == [6.0, 6.0]
"""
PIPELINE = """
x = torch.zeros(2)
for micro in range(3):
    if r > 0:
        dist.recv(x, r - 1)
    y = x + 1
    if r < W - 1:
        dist.send(y, r + 1)
if r == W - 1:
    assert y.tolist() == [3.0, 3.0]
"""
PROFILED = """
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
    for _ in range(2):
        dist.all_reduce(torch.ones(2))
        prof.step()
with torch.autograd.profiler.profile() as older, torch.autograd.profiler.record_function("part"):
    dist.barrier()
assert "not measured" in prof.key_averages().table(sort_by="cpu_time_total") and not older.function_events
prof.export_chrome_trace("trace.json")
"""
SPAWNED = """
import torch, torch.distributed as dist, torch.multiprocessing as mp
def worker(rank, size):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=rank, world_size=size)
    x = torch.ones(1)
    dist.all_reduce(x)
    assert x.item() == size
if __name__ == "__main__":
    mp.spawn(worker, args=(3,), nprocs=3)
"""
PROCESSES = SPAWNED.replace(
    "mp.spawn(worker, args=(3,), nprocs=3)",
    """
    started = [mp.Process(target=worker, args=(n, 3)) for n in range(3)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert [each.exitcode for each in started] == [0, 0, 0]""",
)


CUDA = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
assert torch.cuda.is_available() and torch.cuda.device_count() == 3
local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", device_id=torch.device("cuda", local))
assert dist.get_backend() == "nccl" and torch.cuda.current_device() == local
x = torch.ones(4, device="cuda") * dist.get_rank()
y = torch.ones(4).pin_memory().cuda(non_blocking=True) + torch.ones(4, device=f"cuda:{local}").to(local)
start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
start.record()
with torch.cuda.device(local), torch.cuda.stream(torch.cuda.current_stream()):
    work = dist.all_reduce(x, async_op=True)
    work.wait()
end.record()
torch.cuda.synchronize()
assert start.elapsed_time(end) > 0 and x.tolist() == [3.0] * 4 and y.to("cuda").tolist() == [2.0] * 4
model = DDP(torch.nn.Linear(4, 4).to(torch.device("cuda", local)), device_ids=[local])
model(x).sum().backward()
dist.barrier(device_ids=[local])
torch.cuda.current_stream().synchronize()
assert torch.cuda.max_memory_allocated() == 0 and torch.cuda.get_device_properties(local).name == "simulated"
torch.cuda.empty_cache()
"""


def ran(folder, text, ranks=3):
    path = folder / "script.py"
    path.write_text(text)
    return run("torchrun", "-n", str(ranks), str(path))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (START + EVERY, 3),
        (START + MODELS, 2),
        (START + RING, 3),
        (START + PIPELINE, 3),
        (SPAWNED, 3),
        (PROCESSES, 3),
        (CUDA, 3),
        (START + PROFILED, 2),
    ],
    ids=["every", "models", "ring", "pipeline", "spawn", "process", "cuda", "profiler"],
)
def test_scripts_that_people_have_run_and_are_proved(tmp_path, text, ranks):
    got = ran(tmp_path, text, ranks)
    assert got.exit_code == 0, got.output
    assert got.stdout.startswith("PROVED"), got.output
    assert type(sys.modules["torch.distributed.distributed_c10d"]._world).__name__ == "_World"


ASYNC = START + "x = torch.ones(4)\nwork = dist.all_reduce(x, async_op=True)\n{}\nwork.wait()\n"
BROKEN = {
    "read in flight": (ASYNC.format("y = x + 1"), "reads a tensor at script.py:7 (add.Tensor) that all_reduce at"),
    "written in flight": (ASYNC.format("x.div_(2)"), "writes a tensor at script.py:7 (div_.Tensor) that all_reduce"),
    "a caught race": (
        ASYNC.format("try:\n    x[1:].add_(1)\nexcept RuntimeError:\n    pass"), "writes a tensor at script.py:8"
    ),
    "input written": (
        START + "x, y = torch.ones(2), torch.zeros(2)\n"
        "if r == 0:\n    work = dist.isend(x, 1)\n    x.zero_()\nelif r == 1:\n    dist.recv(y, 0)\n",
        "rank 0 writes a tensor at script.py:8 (zero_) that send at script.py:7 reads until it is waited for",
    ),
    "no wait in the ring": (
        START + RING.replace("    for work in works:\n        work.wait()\n", ""), "that recv at script.py:11 writes"
    ),
    "wrong peer": (START + PIPELINE.replace("dist.send(y, r + 1)", "dist.send(y, (r + 2) % W)"), "deadlock: in "),
    "wrong group": (
        START + "g = dist.new_group([0, 1])\nx = torch.ones(1)\ndist.all_reduce(x, group=g if r == 0 else None)\n",
        "deadlock: in collective",
    ),
    "swapped": (
        START + "x = torch.ones(2)\nif r:\n    dist.all_reduce(x)\n    dist.broadcast(x, 0)\n"
        "else:\n    dist.broadcast(x, 0)\n    dist.all_reduce(x)\n",
        "call mismatch in collective 0 of the world",
    ),
    "early return": (START + "if r == 0:\n    raise SystemExit\ndist.barrier()\n", "rank 0 has finished"),
    "uneven input": (
        START + "from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = DDP(torch.nn.Linear(2, 2))\n"
        "for _ in range(2 + (r == 0)):\n    model(torch.ones(1, 2)).sum().backward()\n", "rank 1 has finished",
    ),
    "outputs that overlap": (
        START + "dist.all_gather([torch.zeros(2)] * W, torch.ones(2))\n", "outputs 0 and 1 overlap"
    ),
    "a side stream": (START + "side = torch.cuda.Stream()\n", "a side stream lets launches of one rank overlap"),
    "no such device": (START + "torch.cuda.set_device(3)\n", "invalid device ordinal: 3 of 3 devices"),
    "more processes than ranks": (SPAWNED.replace("nprocs=3", "nprocs=4"), "says 3 ranks; give -n 4"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BROKEN)
def test_broken_scripts_are_refuted_or_stopped_with_the_lines(tmp_path, name):
    text, said = BROKEN[name]
    got = ran(tmp_path, text)
    assert got.exit_code == 1, got.output
    told = " ".join(got.output.split())
    assert said in told, got.output


SWAPPED = """
a, b = torch.ones(1), torch.ones(1)
if r:
    dist.all_reduce(a)
    dist.all_reduce(b)
else:
    dist.all_reduce(b)
    dist.all_reduce(a)
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SWAPPED, "two calls that fit each other are made in different orders"),
        (
            "if r:\n    dist.barrier()\ndist.barrier()\n",
            "the ranks first part in collective 0 of the world: rank",
        ),
    ],
)
def test_where_ranks_part_is_noted(tmp_path, text, said):
    got = ran(tmp_path, START + text, 2)
    assert said in " ".join(got.output.split()), got.output
