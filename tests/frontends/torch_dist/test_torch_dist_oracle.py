"""Two hundred random calls: by numpy always, and bit for bit as real torch processes where torch is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from torch_calls import CALLS, brought, drawn, expected, make_calls, numpy_dtype

from asyncsim.frontends import torch_dist as dist

HERE = Path(__file__).parent


def made(ranks, tensor=np.array, array=np.array):
    """Return what asyncsim gives, by rank and call, with its verdict."""

    def program():
        dist.init_process_group("gloo")
        return make_calls(dist, drawn(ranks), tensor, array)

    launched = dist.launch(program, ranks=ranks)
    assert launched.errors == [None] * ranks
    return launched


def tolerance(call):
    """Return how far two orders of a reduction may lie apart: a few units in the last place of the largest term."""
    unit = float(ml_dtypes.finfo(numpy_dtype(call.dtype)).eps)
    largest = max((float(np.abs(brought(call, n)).max(initial=0)) for n in range(len(call.members))), default=0)
    scale = largest ** len(call.members) if call.op == "PRODUCT" else largest * len(call.members)
    return unit * len(call.members) * max(scale, 1e-30)


def assert_same(call, got, want, where):
    """Compare to the bit where the order of the reduction cannot matter, else within its rounding."""
    assert got.dtype == want.dtype, where
    if call.rounds:
        wide = np.complex128 if call.dtype == "complex64" else np.float64
        apart = np.abs(got.astype(wide) - want.astype(wide))
        assert np.all(apart <= tolerance(call)), (where, got, want)
    else:
        assert got.tobytes() == want.tobytes(), (where, got, want)


@pytest.mark.parametrize("ranks", CALLS)
def test_random_calls_give_what_numpy_says_and_are_proved(ranks):
    launched = made(ranks)
    for n, call in enumerate(drawn(ranks)):
        for number, want in enumerate(expected(call)):
            got = launched.results[call.members[number]][n]
            if call.name.startswith(("all_reduce", "reduce_scatter")) and not call.exact:
                assert got.dtype == want.dtype
                wide = np.complex128 if call.dtype == "complex64" else np.float64
                assert np.all(np.abs(got.astype(wide) - want.astype(wide)) <= tolerance(call)), call
            else:
                assert_same(call, got, want, call)
    report = launched.check()
    assert (report.verdict, report.findings) == ("PROVED", [])


@pytest.fixture(scope="module")
def gloo(tmp_path_factory):
    """Return what real torch processes got: the bytes, by ranks, rank and call."""
    pytest.importorskip("torch", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("gloo")
    command = [sys.executable, str(HERE / "scripts" / "gloo_processes.py"), str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)  # noqa: S603 - our own script
    assert ran.returncode == 0, ran.stderr
    return {ranks: [np.load(folder / f"{ranks}-{rank}.npz") for rank in range(ranks)] for ranks in CALLS}


@pytest.mark.oracle
@pytest.mark.parametrize("tensors", ["numpy", "torch"])
@pytest.mark.parametrize("ranks", CALLS)
def test_random_calls_give_what_real_torch_processes_give(ranks, tensors, gloo):
    if tensors == "torch":
        from torch_tensors import array, tensor  # noqa: PLC0415 - it imports torch

        launched = made(ranks, tensor, array)
    else:
        launched = made(ranks)
    bitwise = 0
    for n, call in enumerate(drawn(ranks)):
        for rank in call.members:
            want = np.frombuffer(gloo[ranks][rank][str(n)].tobytes(), numpy_dtype(call.dtype))
            assert_same(call, launched.results[rank][n], want, (n, rank, call))
        bitwise += not call.rounds
    assert bitwise > CALLS[ranks] * 0.8
