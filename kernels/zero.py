"""A ZeRO step: gradients are reduced to their owners, each owner steps its own chunk, all gather the parameters.

Every rank has gradients of all the parameters, and the optimizer state of its own chunk alone: 1/P of what an
unpartitioned step keeps on every rank. Chunk c belongs to rank c. The golden is the unpartitioned step; since an
optimizer works element by element, the results are equal bit for bit if the mean is taken in the same order.

The state lives in a window of its owner from call to call, so a call that begins with another state than the
golden's is a wrong result.

Source: Rajbhandari, Rasley, Ruwase, He, *ZeRO: Memory optimizations toward training trillion parameter models*
(SC 2020); Adam as in Kingma and Ba (ICLR 2015).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from asyncsim import (
    WAR,
    Expected,
    ReduceOp,
    Signal,
    Window,
    allgather,
    barrier,
    golden,
    kernel,
    reduce_scatter,
    settle,
)
from kernels.rows import SIZE, Array, draw, each_with_each
from kernels.script import main

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim import Rank, SignalView, WindowView

    Update = Callable[[Array, Array, int], Array]

RATE, MOMENTUM, DECAY, EPSILON = 0.1, 0.9, 0.99, 1e-8
PARTS = 3
"""What an optimizer keeps of a parameter: the parameter, and two moments."""

bucket = Window("bucket", ("P", SIZE), np.float32)  # row c: this rank's gradients of chunk c
parameters = Window("parameters", ("P", SIZE), np.float32)  # row c: chunk c, as its owner sent it
owned = Window("owned", (PARTS, SIZE), np.float32)  # the own chunk and its two moments; nobody else's
signal = Signal("signal", ("P", 1), self_cleaning=True)  # cell [p, 0]: the credits from rank p


# The optimizers. Each takes (parameters, two moments) of any chunk, stacked; the mean gradient; and the step, from 1.


def adam_update(kept: Array, gradient: Array, number: int) -> Array:
    """Return the parameters and moments after one step of Adam."""
    at, first, second = kept
    first = MOMENTUM * first + (1 - MOMENTUM) * gradient
    second = DECAY * second + (1 - DECAY) * gradient * gradient
    mean, spread = first / (1 - MOMENTUM**number), second / (1 - DECAY**number)
    return np.stack([at - RATE * mean / (np.sqrt(spread) + EPSILON), first, second])


def sgd_update(kept: Array, gradient: Array, number: int) -> Array:
    """Return them after one step of gradient descent with momentum; the second moment is not used."""
    at, first, second = kept
    first = MOMENTUM * first + gradient
    return np.stack([at - RATE * first, first, second])


# The inputs are the gradients, and what an unpartitioned optimizer has before the step.


class Step(NamedTuple):
    """What a rank is given for one step.

    Args:
        number: the number of the step, from 1.
        gradients: its own, of all parameters: shape (P, SIZE).
        kept: the parameters and moments before the step: shape (3, P, SIZE). The kernel takes its chunk
            of them in the first call, and never again; the golden takes all of them.

    """

    number: int
    gradients: Array
    kept: Array


def steps(P: int, call: int, rng: np.random.Generator, *, update: Update = adam_update) -> list[Step]:
    """Give each rank its gradients, and the state in which the unpartitioned steps before this one ended."""
    run = _run_of(rng)
    kept = np.zeros((PARTS, P, SIZE), np.float32)
    kept[0] = draw(np.random.default_rng([*run, 0]), (P, SIZE), np.float32)
    for number in range(1, call + 1):
        kept = update(kept, _mean(_gradients(run, P, number)), number)
    return [Step(call + 1, own, kept) for own in _gradients(run, P, call + 1)]


def sgd_steps(P: int, call: int, rng: np.random.Generator) -> list[Step]:
    """Do the same with gradient descent."""
    return steps(P, call, rng, update=sgd_update)


def _run_of(rng: Any) -> tuple[int, ...]:  # noqa: ANN401 - numpy does not type the seed of a generator
    """Return what the calls of a run have in common in their seeds: all but the last number, which is the call's."""
    entropy = rng.bit_generator.seed_seq.entropy
    return tuple(entropy[:-1]) if isinstance(entropy, list | tuple) else (entropy,)


def _gradients(run: tuple[int, ...], P: int, number: int) -> list[Array]:
    rng = np.random.default_rng([*run, number])
    return [draw(rng, (P, SIZE), np.float32) for _ in range(P)]


def _mean(gradients: Sequence[Array]) -> Array:
    """Return the mean gradient, each chunk in the order of its owner: its own first, then the peers' ascending."""
    return np.stack(golden.reduce_scatter(gradients, op=ReduceOp.Avg))


def unpartitioned(xs: Sequence[Step], *, update: Update = adam_update) -> list[Array]:
    """Every rank: all parameters after the step, as one rank would make it that has all of the state."""
    return [update(xs[0].kept, _mean([x.gradients for x in xs]), xs[0].number)[0]] * len(xs)


def unpartitioned_sgd(xs: Sequence[Step]) -> list[Array]:
    """Do the same with gradient descent."""
    return unpartitioned(xs, update=sgd_update)


# The programs.


async def own_step(  # noqa: PLR0913 - a step, its memory, and what the variants change
    rank: Rank, x: Step, owned: WindowView, gradient: Array, *, update: Update = adam_update, keep: bool = True
) -> Array:
    """Step the own chunk, leave the state for the next call, and return the new parameters: shape (SIZE,)."""
    with rank.phase("step"):
        if rank.call == 0 or not keep:
            kept = x.kept[:, rank.id] if rank.call == 0 else np.zeros((PARTS, SIZE), np.float32)
            await rank.store(owned[...], kept)
        kept = update(await rank.load(owned[...]), gradient, rank.call + 1)
        await rank.store(owned[...], kept)
    mine: Array = kept[0]
    return mine


@kernel(memory=[bucket, parameters, owned, signal], inputs=steps, golden=unpartitioned, same_on_all_ranks=True)
async def adam(  # noqa: PLR0913, PLR0917 - a step, its memory, and what the variants change
    rank: Rank,
    x: Step,
    bucket: WindowView,
    parameters: WindowView,
    owned: WindowView,
    signal: SignalView,
    *,
    update: Update = adam_update,
    op: ReduceOp = ReduceOp.Avg,
    keep: bool = True,
) -> Array:
    """Adam, by the composites: the barriers of one reduce-scatter keep its gather away from the next."""
    with rank.phase("stage"):
        await rank.store(bucket[...], x.gradients)
    await reduce_scatter(rank, bucket, signal, op=op, widen=True)
    mine = await own_step(rank, x, owned, await rank.load(bucket[rank.id]), update=update, keep=keep)
    await allgather(rank, mine, parameters, signal)
    with rank.phase("read back"):
        return await rank.load(parameters[...])


sgd = adam.variant(
    about="Gradient descent with momentum, by the composites.",
    inputs=sgd_steps,
    golden=unpartitioned_sgd,
    update=sgd_update,
)


@kernel(memory=[bucket, owned, signal], inputs=steps, golden=unpartitioned, same_on_all_ranks=True)
async def one_bucket(  # noqa: PLR0913 - the last one is the mistake
    rank: Rank, x: Step, bucket: WindowView, owned: WindowView, signal: SignalView, *, end_barrier: bool = True
) -> Array:
    """Adam with one buffer: the new parameters go where the gradients were, and are gathered from there."""
    with rank.phase("stage"):
        await rank.store(bucket[...], x.gradients)
    await barrier(rank, signal)  # ready: all gradients are staged
    with rank.phase("reduce"):
        rows = [await rank.load(bucket.at(peer)[rank.id]) for peer in (rank.id, *rank.peers)]
    mine = await own_step(rank, x, owned, ReduceOp.Avg.reduce(rows))
    await rank.store(bucket[rank.id], mine)  # nobody else reads this row of this rank until all have met
    await barrier(rank, signal, generation=2)  # stepped: every owner has made its step
    with rank.phase("gather"):
        every = [await rank.load(bucket.at(peer)[peer]) for peer in range(rank.size)]
    if end_barrier:
        await barrier(rank, signal, generation=3)  # read: the next step may stage its gradients
    await settle(rank, signal, credits=2 + end_barrier)
    return np.stack(every)


no_end_barrier = one_bucket.variant(
    about="With one buffer and no barrier after the gather: the next step stages over what slow peers still gather.",
    end_barrier=False,
    finds=WAR("next call", pairs=each_with_each),
)

forgotten_state = adam.variant(
    about="The owner begins every step from zeros: right in the first one.",
    keep=False,
    finds=Expected("wrong-result"),
)

sum_for_mean = sgd.variant(
    about="The gradients are added, not averaged: steps P times as long.",
    inputs=sgd_steps,
    golden=unpartitioned_sgd,
    op=ReduceOp.Sum,
    finds=Expected("wrong-result"),
)


if __name__ == "__main__":
    raise SystemExit(main(globals()))
