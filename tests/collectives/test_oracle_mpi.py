"""Random calls of collectives against a real MPI, where ``mpi4py`` and ``mpich`` (or another MPI) are installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from mpi_calls import NAMES, calls

from asyncsim import Case, Fifo, Signal, Window, all_to_all, kernel, simulate
from asyncsim.frontends import nccl

PROGRAM = Path(__file__).with_name("mpi_calls.py")
OPS = {"SUM": nccl.ncclSum, "PROD": nccl.ncclProd, "MIN": nccl.ncclMin, "MAX": nccl.ncclMax}
TYPES = {datatype.dtype.name: datatype for datatype in nccl.ncclDataType_t}


def mpiexec():
    """Return the launcher, or skip: beside this Python first, for a wheel puts it there."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    found = shutil.which("mpiexec", path=here)
    if found is None or importlib.util.find_spec("mpi4py") is None:
        pytest.skip("no MPI here: pip install mpi4py mpich")
    return found


def ours(call):
    """Return what each rank gets on the simulated machine."""
    ranks, dtype = len(call.xs), call.xs[0].dtype
    kind = TYPES[dtype.name]

    async def program(rank, x, *memory):
        comm = nccl.Comm(rank, *memory)
        own = call.counts[rank.id]
        if call.name == "Bcast":
            await nccl.ncclBroadcast(x, x, x.size, kind, call.root, comm)
            return x
        if call.name == "Allgather":
            y = np.zeros(rank.size * x.size, dtype)
            await nccl.ncclAllGather(x, y, x.size, kind, comm)
            return y
        if call.name == "Reduce_scatter_block":
            y = x if call.in_place else np.zeros(own, dtype)
            op = nccl.MPI_Op[f"MPI_{call.op}"]
            await nccl.MPI_Reduce_scatter_block(nccl.MPI_IN_PLACE if call.in_place else x, y, own, kind, op, comm)
            return y
        y = x if call.in_place else np.zeros(x.size, dtype)
        await nccl.ncclAllReduce(x, y, x.size, kind, OPS[call.op], comm)
        start = sum(call.counts[: rank.id])  # a Reduce_scatter with counts gives a part of the all-reduce
        return y[start : start + own] if call.name == "Reduce_scatter" else y

    async def exchange(rank, x, received, signal):
        await all_to_all(rank, x.reshape(received.shape), received, signal, safe=True)
        return (await rank.load(received[...])).reshape(-1)

    moved = call.name == "Alltoall"
    rows = [Window("received", ("P", call.counts[0]), dtype), Signal("signal", ("P", 1))]
    made = kernel(memory=rows if moved else nccl.workspace(kind, count=3), inputs=lambda P, n, rng: list(call.xs))
    run = simulate(Case(made(exchange if moved else program), ranks, 1), Fifo())
    assert run.ending == "complete"
    return run.outputs[0]


def assert_as_mpi_has_it(got, want, call):
    """Compare to the bit; but a rounded sum or product, whose order an MPI chooses, as near as rounding allows."""
    assert got.dtype == want.dtype
    if not call.rounded or call.op in ("MIN", "MAX") or call.name in ("Allgather", "Alltoall", "Bcast"):
        np.testing.assert_array_equal(got, want)
    else:
        # in place the rest of the buffer is not the result, and MPI leaves it open
        unit = float(np.finfo(got.dtype).eps)
        np.testing.assert_allclose(got, want, rtol=8 * unit, atol=32 * unit)


def test_the_calls_cover_every_collective_operator_and_layout():
    every = [call for ranks in (2, 3, 4) for call in calls(ranks)]
    assert len(every) > 200
    assert set(Counter(call.name for call in every)) == set(NAMES)
    reducing = {(call.name, call.op) for call in every if "educe" in call.name}
    assert len(reducing) == 3 * len(OPS)
    assert {call.in_place for call in every if call.name == "Reduce_scatter_block"} == {True, False}
    assert any(call.rounded for call in every)


def test_ours_is_what_numpy_makes_of_it():
    ufuncs = {"SUM": np.add, "PROD": np.multiply, "MIN": np.minimum, "MAX": np.maximum}
    for call in calls(3):
        if "educe" not in call.name:
            continue
        total = ufuncs[call.op].reduce(np.stack(call.xs), axis=0, dtype=call.xs[0].dtype)
        ends = np.cumsum([0, *call.counts])
        for rank, got in enumerate(ours(call)):
            part = total if call.name == "Allreduce" else total[ends[rank] : ends[rank + 1]]
            assert_as_mpi_has_it(got[: part.size], part, call)


@pytest.mark.oracle
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_random_calls_give_what_mpi_gives(ranks, tmp_path):
    command = [mpiexec(), "-n", str(ranks), sys.executable, str(PROGRAM), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - our own
    assert done.returncode == 0, done.stderr
    theirs = [np.load(tmp_path / f"{rank}.npz") for rank in range(ranks)]
    for number, call in enumerate(calls(ranks)):
        for rank, got in enumerate(ours(call)):
            want = theirs[rank][str(number)]
            size = call.counts[rank] if call.name.startswith("Reduce_scatter") else want.size
            assert_as_mpi_has_it(got[:size], want[:size], call)
