"""The cost card of a kernel, beside what its collective cannot do without; and algorithms beside each other."""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, replace
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any

from asyncsim.analysis.cost import Cost, costs, critical_path
from asyncsim.checking.diagnose.oracle import leaves
from asyncsim.checking.record.locate import locate
from asyncsim.collectives import golden
from asyncsim.machine.case import Case
from asyncsim.machine.goldens import AnyOf
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.latency import Latency
from asyncsim.trace.declare import Window
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import COMPLETE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.analysis.cost import Path
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.price import Price

REDUCE_SCATTER, ALL_REDUCE, ALL_GATHER = "reduce-scatter", "all-reduce", "all-gather"
BROADCAST, ALL_TO_ALL = "broadcast", "all-to-all"

ALGORITHMS: dict[str, dict[str, str]] = {
    "all_reduce": {
        "mesh": "all_reduce:builtin",
        "ring": "all_reduce:ring",
        "two-phase": "all_reduce:two_phase",
        "halving": "halving_doubling:in_place",
        "doubling": "recursive_doubling:two_syncs",
        "one-shot": "one_shot:double_buffer",
        "two-shot": "two_shot:double_buffer",
    },
    "all_gather": {
        "push": "all_gather:push",
        "pull": "all_gather:pull",
        "dissemination": "dissemination_barrier:all_rounds",
    },
    "all_to_all": {"push": "all_to_all:safe"},
    "broadcast": {"pull": "broadcast:safe"},
}
"""What a table can be asked for: name of the algorithm -> kernel. All are right in any number of calls."""

_BY_GOLDEN: dict[Callable[..., Any], str] = {
    golden.reduce_scatter: REDUCE_SCATTER,
    golden.all_reduce: ALL_REDUCE,
    golden.ring: ALL_REDUCE,
    golden.two_phase: ALL_REDUCE,
    golden.allgather: ALL_GATHER,
    golden.broadcast: BROADCAST,
    golden.all_to_all: ALL_TO_ALL,
}
_BY_MODULE = {
    "kernels.reduce_scatter": REDUCE_SCATTER,
    "kernels.halving_doubling": ALL_REDUCE,
    "kernels.recursive_doubling": ALL_REDUCE,
    "kernels.one_shot": ALL_REDUCE,
    "kernels.two_shot": ALL_REDUCE,
}


@dataclass(frozen=True, slots=True)
class Bound:
    """What no algorithm for a collective can do without, one task a rank.

    Each rank's result depends on every rank's input, so news must spread to all: one notify at a time,
    at best to twice as many with each. The bytes, on an average over the ranks, have to be moved by some rank.

    Args:
        collective: which.
        messages: one after the other, on the critical path.
        moved: bytes that a rank receives or sends, on an average.
        reduced: bytes that a rank reduces, on an average.

    Source: Chan, Heimlich, Purkayastha and van de Geijn, "Collective communication: theory, practice, and
    experience", 2007; Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009.

    """

    collective: str
    messages: int
    moved: float
    reduced: float

    def seconds(self, price: Price) -> float:
        """Return the time that each of the three alone takes at least; they may overlap, so they are not added up."""
        return max(price.alpha * self.messages, price.beta * self.moved, price.gamma * self.reduced)


@dataclass(slots=True, eq=False)
class Card:
    """What a kernel costs.

    Args:
        case: the kernel, P, calls.
        price: of messages, bytes and reductions.
        ranks: what each rank did, over all calls.
        path: the critical path of all calls.
        input_bytes: of one rank in one call: N.
        bound: of one call; None where the collective is not known, or a rank runs streams.

    """

    case: Case
    price: Price
    ranks: list[Cost]
    path: Path
    input_bytes: int
    bound: Bound | None

    @property
    def total(self) -> Cost:
        """All ranks together."""
        return reduce(add, self.ranks, Cost())

    @property
    def reductions_show(self) -> bool:
        """Whether the events show as many reductions as the collective needs; else gamma stands for too few."""
        needed = 0.0 if self.bound is None else self.bound.reduced * self.case.ranks * self.case.calls
        return self.total.reduced >= needed - 0.5

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; times in seconds."""
        path, bound = self.path, self.bound
        return {
            "kernel": self.case.kernel.ref, "ranks": self.case.ranks, "calls": self.case.calls,
            "input_bytes": self.input_bytes, **asdict(self.price), "by_rank": [asdict(cost) for cost in self.ranks],
            "total": asdict(self.total), "reductions_show": self.reductions_show,
            "path": {
                "seconds": path.seconds, "messages": path.messages, "moved": path.moved, "reduced": path.reduced,
                "events": [f"rank {event.op.actor.rank}: {event.op}" for event in path.events],
            },
            "bound": None if bound is None else {**asdict(bound), "seconds": bound.seconds(self.price)},
        }  # fmt: skip


def cost(kernel: Kernel, price: Price, *, ranks: int = 4, calls: int = 1, seed: int = 0) -> Card:
    """Run a kernel in virtual time, and return what that costs.

    Args:
        kernel: the kernel.
        price: of a message, a byte, a reduced byte.
        ranks: P.
        calls: calls back to back.
        seed: of the inputs.

    Raises:
        KernelError: the kernel raised.
        MisuseError: the run does not end by itself.

    """
    case = Case(kernel, ranks, calls, seed=seed)
    run = simulate(case, Latency(price.alpha, price.beta), record="latency")
    if run.ending != COMPLETE or run.trace is None:
        raise MisuseError(f"{kernel.ref}: the run ends in {run.ending}; a card is made of runs that complete")
    streams = any(event.op.actor.depth for event in run.trace.events)
    size = sum(leaf.nbytes for leaf in leaves(case.inputs[0][0]) or ())
    collective = None if streams else collective_of(kernel)
    bound = None if collective is None else bound_of(collective, ranks, size)
    return Card(case, price, costs(run.trace), critical_path(run.trace, price), size, bound)


def collective_of(kernel: Kernel) -> str | None:
    """Return what collective a kernel is, if its golden or its place among the exhibits says so."""
    made: Any = kernel.golden
    if isinstance(made, AnyOf) and len(made.goldens) == 1:
        made = made.goldens[0]
    while isinstance(made, partial):
        made = made.func
    known = _BY_GOLDEN.get(made)
    return known if known is not None else _BY_MODULE.get(kernel.module)


def bound_of(collective: str, ranks: int, size: int) -> Bound:
    """Return the lower bound of one call.

    Args:
        collective: which.
        ranks: P.
        size: bytes of one rank's whole input: N.

    """
    share = size * (ranks - 1) / ranks
    moved = {
        REDUCE_SCATTER: share, ALL_REDUCE: 2 * share, ALL_GATHER: share * ranks, BROADCAST: share, ALL_TO_ALL: share,
    }  # fmt: skip
    reduced = share if collective in (REDUCE_SCATTER, ALL_REDUCE) else 0.0
    return Bound(collective, (ranks - 1).bit_length(), moved[collective], reduced)


def algorithms(name: str) -> Mapping[str, str]:
    """Return the algorithms for a collective, as name -> kernel.

    Raises:
        MisuseError: there is no table of it.

    """
    if name not in ALGORITHMS:
        raise MisuseError(f"there is no table of {name!r}; there are tables of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def compare(
    name: str, price: Price, *, ranks: Sequence[int], sizes: Sequence[int], seed: int = 0
) -> dict[tuple[int, int], dict[str, Card]]:
    """Return the card of each algorithm at each P and size, as {(P, N): {algorithm: card}}.

    Args:
        name: of the table.
        price: of a message, a byte, a reduced byte.
        ranks: each P.
        sizes: each N, in bytes of one rank's whole input; rounded down to what the kernel's rows can hold.
        seed: of the inputs.

    """
    return {
        (size, wanted): {
            algorithm: cost(resized(locate(kernel), size, wanted), price, ranks=size, seed=seed)
            for algorithm, kernel in algorithms(name).items()
        }
        for size in ranks
        for wanted in sizes
    }


def resized(kernel: Kernel, ranks: int, size: int) -> Kernel:
    """Return an exhibit whose inputs have so many bytes a rank.

    Args:
        kernel: one whose inputs take `size`, the elements in a row, and whose windows end in that extent.
        ranks: P.
        size: bytes of one rank's input, at least those of one element a row.

    Raises:
        MisuseError: its inputs take no size, or `size` is less than one element a row.

    """
    if kernel.inputs is None or "size" not in inspect.signature(kernel.inputs).parameters:
        raise MisuseError(f"{kernel.ref}: its inputs take no size, so it can be judged at its own size only")
    inputs: Any = kernel.inputs
    single = replace(kernel, inputs=partial(inputs, size=1)).make_inputs(ranks, 0, 0)
    row = size // sum(leaf.nbytes for leaf in leaves(single[0]) or ())
    if row < 1:
        raise MisuseError(f"{size} bytes are less than one element a row of {kernel.ref} at P = {ranks}")
    memory = tuple(
        replace(item, shape=(*item.shape[:-1], row)) if isinstance(item, Window) else item for item in kernel.memory
    )
    return replace(kernel, memory=memory, inputs=partial(inputs, size=row), given_name=kernel.name)
