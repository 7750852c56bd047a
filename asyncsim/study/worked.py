"""Worked examples: a collective that is really run on the simulated machine, with every number behind a result.

The composites of `asyncsim.collectives` run once, in fair turn; numpy says what they must give. What can be told
beside the results is told in numbers here, and in words by the views: which inputs are behind an element, what a
changed input changes, where another order of the same reduction gives other bits, where an integer wraps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives import golden
from asyncsim.collectives.all_reduce import all_reduce, two_phase_all_reduce
from asyncsim.collectives.all_to_all import all_to_all
from asyncsim.collectives.allgather import allgather
from asyncsim.collectives.broadcast import broadcast
from asyncsim.collectives.reduce import ReduceOp
from asyncsim.collectives.reduce_scatter import reduce_scatter
from asyncsim.machine.case import Case
from asyncsim.machine.kernel import kernel
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.declare import Signal, Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.collectives.reduce import Tile
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.world import SignalView, WindowView

REDUCING = ("reduce_scatter", "all_reduce")
COLLECTIVES = (*REDUCING, "all_gather", "broadcast", "all_to_all")
OPS = {
    "sum": ReduceOp.Sum,
    "avg": ReduceOp.Avg,
    "prod": ReduceOp.Prod,
    "min": ReduceOp.Min,
    "max": ReduceOp.Max,
}
ROOT = 0
"""Whose data a broadcast sends."""
_THEN = "reduce_scatter then all_gather"


@dataclass(frozen=True, slots=True)
class Change:
    """One number that is another one: of an input, or of a result.

    Args:
        rank, index: whose, and the element.
        before, after: the numbers.

    """

    rank: int
    index: int
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """A worked example.

    Args:
        collective: one of `COLLECTIVES`.
        op: the operator; None for a collective that only moves data.
        size: elements a rank: of a chunk, or of an input that is not cut into chunks.
        inputs: what each rank gives, shape (N,).
        outputs: what each rank gets, shape (M,).
        gathered: what each rank gets from an all_gather of the outputs, shape (P * size,); empty: not asked for.
        agrees: whether numpy gives the same, bit for bit.
        compared: whether some inputs were set, and the results compared with those of before.
        inputs_changed: the inputs that are others for it.
        changed: the results that are others for it.
        gathered_changed: likewise after the all_gather.
        order: of floating numbers: results (`after`) that a reduction of the same numbers in the order of the
            ranks (`before`; for an all_reduce: rank 0's result) has with other bits.
        against_all_reduce: where an all_reduce (`before`) has other bits than what was gathered (`after`).
        wrapped: results that do not fit their integer type (`before` would be exact).

    """

    collective: str
    op: ReduceOp | None
    size: int
    inputs: tuple[Tile, ...]
    outputs: tuple[Tile, ...]
    gathered: tuple[Tile, ...] = ()
    agrees: bool
    compared: bool = False
    inputs_changed: tuple[Change, ...] = ()
    changed: tuple[Change, ...] = ()
    gathered_changed: tuple[Change, ...] = ()
    order: tuple[Change, ...] = ()
    against_all_reduce: tuple[Change, ...] = ()
    wrapped: tuple[Change, ...] = ()

    @property
    def ranks(self) -> int:
        """P."""
        return len(self.inputs)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of all numbers."""
        found: np.dtype[Any] = self.inputs[0].dtype
        return found

    def terms(self, rank: int, index: int) -> list[tuple[int, int]]:
        """Return the inputs, by rank and element, that are behind an element of a rank's result; ranks ascending.

        Args:
            rank: whose result it is.
            index: of the element, in row-major order.

        """
        source, offset = divmod(index, self.size)
        if self.collective == "reduce_scatter":
            return [(peer, rank * self.size + index) for peer in range(self.ranks)]
        if self.collective == "all_reduce":
            return [(peer, index) for peer in range(self.ranks)]
        if self.collective == "all_gather":
            return [(source, offset)]
        if self.collective == "broadcast":
            return [(ROOT, index)]
        return [(source, rank * self.size + offset)]


def chunks_of(collective: str, ranks: int) -> int:
    """Return how many chunks of `size` elements an input has.

    Args:
        collective: its name.
        ranks: P.

    """
    return 1 if collective in ("all_gather", "broadcast") else ranks


def work(
    collective: str,
    inputs: Sequence[Tile],
    *,
    op: ReduceOp | None = None,
    original: Sequence[Tile] | None = None,
    then_gather: bool = False,
) -> Worked:
    """Run a collective on these inputs, and return it with all its numbers.

    Args:
        collective: one of `COLLECTIVES`.
        inputs: one a rank, all of shape (N,) and one dtype; N is P times the size where an input has P chunks.
        op: for a collective that reduces.
        original: the inputs before some were changed; None: none was.
        then_gather: gather the results of a reduce_scatter at every rank.

    Raises:
        RefusedError: the operator has no meaning for the dtype.

    """
    if op is not None:
        op.check(inputs[0].dtype)
    outputs, agrees = _run(collective, inputs, op)
    facts: dict[str, Any] = {}
    if original is not None:
        facts |= {"compared": True, "inputs_changed": differences(original, inputs)}
        facts["changed"] = differences(_run(collective, original, op)[0], outputs)
    if then_gather:
        gathered, gathered_agree = _run(_THEN, inputs, op)
        reduced, reduced_agree = _run("all_reduce", inputs, op)
        agrees = agrees and gathered_agree and reduced_agree
        facts |= {"gathered": tuple(gathered), "against_all_reduce": differences(reduced, gathered)}
        if original is not None:
            facts["gathered_changed"] = differences(_run(_THEN, original, op)[0], gathered)
    if op is not None:
        facts["order"] = differences(_in_another_order(collective, inputs, outputs, op), outputs)
        facts["wrapped"] = _wrapped(collective, inputs, outputs, op)
    size = inputs[0].size // chunks_of(collective, len(inputs))
    return Worked(
        collective=collective, op=op, size=size, inputs=tuple(inputs), outputs=tuple(outputs), agrees=agrees, **facts
    )


def differences(before: Sequence[Tile], after: Sequence[Tile]) -> tuple[Change, ...]:
    """Return the elements of which two lists of arrays have other bits.

    Args:
        before: an array of one dimension for each rank.
        after: as many, as long.

    """
    return tuple(
        Change(rank, index, old[index], new[index])
        for rank, (old, new) in enumerate(zip(before, after, strict=True))
        for index in range(new.size)
        if old[index].tobytes() != new[index].tobytes()
    )


def _in_another_order(collective: str, inputs: Sequence[Tile], outputs: Sequence[Tile], op: ReduceOp) -> list[Tile]:
    """Return the results in another order of reduction; ranks themselves have different orders in an all_reduce."""
    if collective == "all_reduce":
        return [outputs[0]] * len(outputs)
    return np.split(op.reduce(inputs), len(inputs))


def _wrapped(collective: str, inputs: Sequence[Tile], outputs: Sequence[Tile], op: ReduceOp) -> tuple[Change, ...]:
    if inputs[0].dtype.kind not in "iu" or op in (ReduceOp.Min, ReduceOp.Max):
        return ()
    exact = np.stack([x.astype(object) for x in inputs])  # Python's integers, which do not wrap
    total = np.prod(exact, axis=0) if op is ReduceOp.Prod else np.sum(exact, axis=0)
    total = total // len(inputs) if op is ReduceOp.Avg else total
    parts = np.split(total, len(inputs)) if collective == "reduce_scatter" else [total] * len(inputs)
    return tuple(
        Change(rank, index, part[index], got[index])
        for rank, (part, got) in enumerate(zip(parts, outputs, strict=True))
        for index in range(got.size)
        if part[index] != int(got[index])
    )


# The programs. Each takes its input as one row a chunk, and returns what its rank gets.


async def _reduce_scatter(rank: Rank, x: Tile, data: WindowView, signal: SignalView, *, op: ReduceOp) -> Tile:
    await rank.store(data[...], x)
    await reduce_scatter(rank, data, signal, op=op, widen=True)
    return await rank.load(data[rank.id])


async def _all_reduce(rank: Rank, x: Tile, data: WindowView, signal: SignalView, *, op: ReduceOp) -> Tile:
    await rank.store(data[...], x)
    await all_reduce(rank, data, signal, op=op, widen=True)
    return await rank.load(data[...])


async def _then(  # noqa: PLR0913 - a window more than the others
    rank: Rank, x: Tile, data: WindowView, gathered: WindowView, signal: SignalView, *, op: ReduceOp
) -> Tile:
    await rank.store(data[...], x)
    await two_phase_all_reduce(rank, data, gathered, signal, op=op, widen=True)
    return await rank.load(gathered[...])


async def _all_gather(rank: Rank, x: Tile, gathered: WindowView, signal: SignalView) -> Tile:
    await allgather(rank, x[0], gathered, signal, safe=True)
    return await rank.load(gathered[...])


async def _broadcast(rank: Rank, x: Tile, data: WindowView, signal: SignalView) -> Tile:
    if rank.id == ROOT:
        await rank.store(data[...], x)
    await broadcast(rank, data, signal, root=ROOT, safe=True)
    return await rank.load(data[...])


async def _all_to_all(rank: Rank, x: Tile, received: WindowView, signal: SignalView) -> Tile:
    await all_to_all(rank, x, received, signal, safe=True)
    return await rank.load(received[...])


_PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[str, ...]]] = {
    "reduce_scatter": (_reduce_scatter, golden.reduce_scatter, ("data",)),
    "all_reduce": (_all_reduce, golden.all_reduce, ("data",)),
    _THEN: (_then, golden.two_phase, ("data", "gathered")),
    "all_gather": (_all_gather, lambda xs: golden.allgather([x[0] for x in xs]), ("gathered",)),
    "broadcast": (_broadcast, partial(golden.broadcast, root=ROOT), ("data",)),
    "all_to_all": (_all_to_all, golden.all_to_all, ("received",)),
}
"""Of each collective: the program, its golden, its windows."""


def _run(collective: str, inputs: Sequence[Tile], op: ReduceOp | None) -> tuple[list[Tile], bool]:
    """Return what each rank gets, flat, and whether numpy gives the same bits."""
    program, wanted, names = _PROGRAMS[collective]
    ranks = len(inputs)
    chunks = chunks_of(collective, ranks)
    rows = ranks if collective == "all_gather" else chunks
    size = inputs[0].size // chunks
    params: dict[str, Any] = {} if op is None else {"op": op}
    made = kernel(
        memory=[*(Window(name, (rows, size), inputs[0].dtype) for name in names), Signal("signal", ("P", 1))],
        inputs=lambda P, call, rng: [x.reshape(chunks, size) for x in inputs],  # noqa: ARG005 - they are given
        golden=partial(wanted, **params),
    )(program).variant(**params)
    run = simulate(Case(made, ranks, 1), Fifo())
    goldens = run.case.goldens or [[]]
    outputs = [np.ascontiguousarray(y).reshape(-1) for y in run.outputs[0]]
    agrees = all(
        got.tobytes() == np.ascontiguousarray(want).tobytes() for got, want in zip(outputs, goldens[0], strict=True)
    )
    return outputs, agrees
