"""Random calls of MPI's collectives: drawn the same everywhere, and made by a real MPI when this file is its program.

    mpiexec -n 4 python tests/collectives/mpi_calls.py FOLDER

Each rank writes what it got to ``FOLDER/<rank>.npz``, one array a call.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("Reduce_scatter_block", "Reduce_scatter", "Allgather", "Allreduce", "Alltoall", "Bcast")
OPS = ("SUM", "PROD", "MIN", "MAX")
DTYPES = ("int8", "uint8", "int32", "uint32", "int64", "float32", "float64")
CALLS = 72


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiCall:
    """One call.

    Args:
        name: MPI's.
        op: of a reduction.
        root: of a Bcast.
        in_place: with MPI_IN_PLACE; of a Reduce_scatter_block or an Allreduce.
        counts: elements for each rank; all equal but for Reduce_scatter.
        xs: the input of each rank, flat.
        rounded: floats whose sums and products are rounded, so that their last bits depend on the order.

    """

    name: str
    op: str
    root: int
    in_place: bool
    counts: tuple[int, ...]
    xs: tuple[np.ndarray[Any, Any], ...]
    rounded: bool


def calls(ranks: int) -> list[MpiCall]:
    """Draw the calls for so many ranks: small whole numbers of any dtype, some floats that are none."""
    rng = np.random.default_rng([ranks, 2026])
    return [_drawn(rng, ranks, NAMES[number % len(NAMES)]) for number in range(CALLS)]


def _drawn(rng: np.random.Generator, ranks: int, name: str) -> MpiCall:
    dtype, size = np.dtype(str(rng.choice(DTYPES))), int(rng.integers(0, 9))
    counts = [int(rng.integers(0, 5)) for _ in range(ranks)] if name == "Reduce_scatter" else [size] * ranks
    total = size if name in ("Allgather", "Allreduce", "Bcast") else sum(counts)
    rounded = dtype.kind == "f" and bool(rng.integers(2))
    low = 0 if dtype.kind == "u" else -9
    xs = [rng.standard_normal(total) if rounded else rng.integers(low, 10, total) for _ in range(ranks)]
    return MpiCall(
        name=name,
        op=str(rng.choice(OPS)),
        root=int(rng.integers(ranks)),
        in_place=bool(rng.integers(2)),
        counts=tuple(counts),
        xs=tuple(x.astype(dtype) for x in xs),
        rounded=rounded,
    )


def main() -> None:
    """Make every call, and write what this rank got."""
    from mpi4py import MPI  # noqa: PLC0415 - the tests import this file where there is no MPI

    comm = MPI.COMM_WORLD
    got = {str(number): _made(MPI, comm, call) for number, call in enumerate(calls(comm.size))}
    np.savez(Path(sys.argv[1]) / f"{comm.rank}.npz", **got)


def _made(mpi: Any, comm: Any, call: MpiCall) -> np.ndarray[Any, Any]:
    x = call.xs[comm.rank].copy()
    op, own = getattr(mpi, call.op), call.counts[comm.rank]
    if call.name == "Bcast":
        comm.Bcast(x, root=call.root)
        return x
    if call.in_place and call.name in ("Reduce_scatter_block", "Allreduce"):
        getattr(comm, call.name)(mpi.IN_PLACE, x, op=op)
        return x
    sizes = {"Allgather": comm.size * x.size, "Allreduce": x.size, "Alltoall": x.size}
    y = np.zeros(sizes.get(call.name, own), x.dtype)
    if call.name in ("Allgather", "Alltoall"):
        getattr(comm, call.name)(x, y)
    elif call.name == "Reduce_scatter":
        comm.Reduce_scatter(x, y, recvcounts=list(call.counts), op=op)
    else:
        getattr(comm, call.name)(x, y, op=op)
    return y


if __name__ == "__main__":
    main()
