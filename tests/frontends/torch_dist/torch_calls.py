"""Random collective calls, the same everywhere: made on real torch processes, on asyncsim, and by numpy.

One list of calls a number of ranks, drawn from a fixed seed. `make_calls` makes them on whatever answers
to the names of ``torch.distributed``, with whatever tensors; `expected` says by numpy what each must give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

CALLS = {2: 68, 3: 66, 4: 66}
"""How many calls are drawn for each number of ranks: 200 in all."""
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64")
WHOLE = ("int8", "uint8", "int32", "int64", "bool")
REDUCING = ("all_reduce", "reduce_scatter_tensor", "reduce_scatter")
MOVING = ("all_gather", "all_gather_into_tensor", "broadcast", "all_to_all_single")
UFUNCS = {
    "SUM": np.add,
    "AVG": np.add,
    "PRODUCT": np.multiply,
    "MIN": np.minimum,
    "MAX": np.maximum,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}


@dataclass(frozen=True)
class Drawn:
    """One call.

    Args:
        name: of the collective.
        dtype: by numpy's name.
        op: by torch's name; empty where nothing is reduced.
        members: the group.
        sizes: elements of each member's part, or of all of them.
        counts: of an all-to-all: elements from each member to each.
        root: of a broadcast, by its number in the world.
        in_place: the output is a part of the input, or the other way round.
        exact: the values are small whole numbers, so that no order of reduction rounds.
        seed: of the values.

    """

    name: str
    dtype: str
    op: str
    members: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    root: int
    in_place: bool
    exact: bool
    seed: int

    @property
    def rounds(self):
        """Whether the result depends on the order of the reduction; two terms have but one."""
        return (
            self.name in REDUCING and self.op in ("SUM", "AVG", "PRODUCT") and not self.exact and len(self.members) > 2
        )


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def operators(dtype):
    """Return the operators that torch has for a dtype."""
    if dtype == "complex64":
        return ("SUM", "AVG")
    return (
        ("SUM", "AVG", "PRODUCT", "MIN", "MAX")
        if dtype in FLOATS
        else ("SUM", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
    )


def drawn(ranks):
    """Return the calls for so many ranks."""
    rng = np.random.default_rng([6, ranks])
    return [_draw(rng, ranks) for _ in range(CALLS[ranks])]


def _draw(rng, ranks):
    name = str(rng.choice(REDUCING + MOVING))
    dtype = str(rng.choice(FLOATS + WHOLE))
    size = int(rng.integers(2, ranks + 1)) if rng.random() < 0.5 else ranks
    members = tuple(sorted(int(r) for r in rng.choice(ranks, size, replace=False)))
    part = int(rng.choice([0, 1, 2, 3, 5, 8]))
    uneven = name == "reduce_scatter" and rng.random() < 0.5
    return Drawn(
        name=name,
        dtype=dtype,
        op=str(rng.choice(operators(dtype))) if name in REDUCING else "",
        members=members,
        sizes=tuple(int(n) for n in rng.integers(0, 6, size)) if uneven else (part,) * size,
        counts=tuple(tuple(int(n) for n in rng.integers(0, 4, size)) for _ in range(size)),
        root=members[int(rng.integers(size))],
        in_place=bool(rng.random() < 0.4),
        exact=bool(dtype in WHOLE or rng.random() < 0.5),
        seed=int(rng.integers(1 << 30)),
    )


def brought(call, number):
    """Return what a member brings: one array."""
    n = len(call.members)
    size = {
        "reduce_scatter_tensor": sum(call.sizes),
        "reduce_scatter": sum(call.sizes),
        "all_to_all_single": sum(call.counts[number]),
    }.get(call.name, call.sizes[0])
    rng = np.random.default_rng([call.seed, number, n])
    values = rng.integers(0, 2 if call.dtype == "bool" else 7, size) if call.exact else rng.standard_normal(size)
    return values.astype(numpy_dtype(call.dtype))


def expected(call):
    """Return what each member must get, by numpy."""
    xs = [brought(call, number) for number in range(len(call.members))]
    ends = np.cumsum(call.sizes)
    with np.errstate(all="ignore"):
        if call.name == "all_reduce":
            return [_reduced(call, xs)] * len(xs)
        if call.name in REDUCING:
            return [
                _reduced(call, [x[end - size : end] for x in xs]) for end, size in zip(ends, call.sizes, strict=True)
            ]
    if call.name == "broadcast":
        return [xs[call.members.index(call.root)]] * len(xs)
    if call.name == "all_to_all_single":
        cut = [np.split(x, np.cumsum(counts)[:-1]) for x, counts in zip(xs, call.counts, strict=True)]
        return [np.concatenate([parts[number] for parts in cut]) for number in range(len(xs))]
    return [np.concatenate(xs)] * len(xs)


def _reduced(call, terms):
    wide = terms
    if not call.exact and call.dtype != "complex64":
        wide = [term.astype(np.float64) for term in terms]
    total = wide[0]
    for term in wide[1:]:
        total = UFUNCS[call.op](total, term)
    if call.op == "AVG":
        total = total / np.array(len(terms), total.dtype)
    return total.astype(numpy_dtype(call.dtype))


def make_calls(dist, calls, tensor, array):
    """Make the calls of one rank; return what it got of each, None where it is no member.

    Args:
        dist: answers to the names of torch.distributed; initialised.
        calls: of all ranks.
        tensor: makes a tensor of an array, with memory of its own.
        array: makes an array of a tensor.

    """
    rank = dist.get_rank()
    groups = {members: dist.new_group(list(members)) for members in sorted({call.members for call in calls})}
    got = []
    for call in calls:
        if rank not in call.members:
            got.append(None)
            continue
        own = Own(dist, call, call.members.index(rank), groups[call.members], tensor)
        got.append(array(MAKE[call.name](own, tensor(brought(call, own.number)))))
    return got


@dataclass(frozen=True)
class Own:
    """One rank's part in a call: who answers, what is called, its number in the group, the group, and tensors."""

    dist: Any
    call: Drawn
    number: int
    group: Any
    tensor: Any

    @property
    def op(self):
        return getattr(self.dist.ReduceOp, self.call.op)

    @property
    def part(self):
        """Where its part lies among those of all members, if they are equally long."""
        size = self.call.sizes[0]
        return slice(self.number * size, (self.number + 1) * size)

    def zeros(self, size):
        return self.tensor(np.zeros(size, numpy_dtype(self.call.dtype)))


def _all_reduce(own, x):
    own.dist.all_reduce(x, op=own.op, group=own.group)
    return x


def _reduce_scatter_tensor(own, x):
    out = x[own.part] if own.call.in_place else own.zeros(own.call.sizes[0])
    own.dist.reduce_scatter_single(out, x, op=own.op, group=own.group)
    return out


def _reduce_scatter(own, x):
    sizes = own.call.sizes
    parts = [x[end - size : end] for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True)]
    out = parts[own.number] if own.call.in_place else own.zeros(sizes[own.number])
    own.dist.reduce_scatter(out, parts, op=own.op, group=own.group)
    return out


def _all_gather_into_tensor(own, x):
    out = own.zeros(own.call.sizes[0] * len(own.call.members))
    if own.call.in_place:
        out[own.part] = x
        x = out[own.part]
    own.dist.all_gather_single(out, x, group=own.group)
    return out


def _all_gather(own, x):
    size, members = own.call.sizes[0], range(len(own.call.members))
    out = own.zeros(size * len(members))
    own.dist.all_gather([out[n * size : (n + 1) * size] for n in members], x, group=own.group)
    return out


def _broadcast(own, x):
    own.dist.broadcast(x, src=own.call.root, group=own.group)
    return x


def _all_to_all_single(own, x):
    gets = [counts[own.number] for counts in own.call.counts]
    out = own.zeros(sum(gets))
    own.dist.all_to_all_single(out, x, gets, list(own.call.counts[own.number]), group=own.group)
    return out


MAKE = {
    "all_reduce": _all_reduce,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
    "reduce_scatter": _reduce_scatter,
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "broadcast": _broadcast,
    "all_to_all_single": _all_to_all_single,
}
