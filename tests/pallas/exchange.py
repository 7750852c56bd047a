"""The in-place reduce-scatter of ``bench_pallas.py`` in Pallas, under its TPU interpret mode with race detection.

It runs in a process of its own, since the number of virtual devices is fixed when JAX is imported, and with a Python
that has JAX 0.10. It reads numbers of executions, a line each, and answers each with a line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

SIZE = 64
CALLS = 2


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--missing", type=int, default=0, help="how many peers the second barrier does not wait for")
    parser.add_argument("--dma", choices=("on_wait", "eager"), default="on_wait")
    return parser.parse_args()


ASKED = _asked()
P = ASKED.ranks
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={P}"

import jax  # noqa: E402 - the environment above is read when it is imported
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter  # noqa: E402 - `races` alone
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas import tpu as pltpu  # noqa: E402
from jax.sharding import Mesh, PartitionSpec  # noqa: E402


def exchange(x, out, data, slots, sent, arrived, done):  # noqa: PLR0913, PLR0917 - refs, as Pallas passes them
    """Two calls back to back: stage, push row p to peer p, sum what arrived, barrier, store in place, load."""
    me = jax.lax.axis_index("ranks")
    peers = [i + (i >= me).astype(jnp.int32) for i in range(P - 1)]
    logical = pl.DeviceIdType.LOGICAL
    for call in range(CALLS):
        for c in range(P):
            data[c] = x[call, c]
        for peer in peers:
            pltpu.make_async_remote_copy(
                data.at[peer], slots.at[me], sent, arrived.at[me], device_id=peer, device_id_type=logical
            ).start()
        for peer in peers:
            # A copy is waited for by its descriptor: the same size, and the semaphore of its source.
            pushed = pltpu.make_async_remote_copy(
                data.at[peer], slots.at[peer], sent, arrived.at[peer], device_id=peer, device_id_type=logical
            )
            pushed.wait_send()
            pushed.wait_recv()
        acc = data[me]
        for peer in peers:
            acc = acc + slots[peer]
        for peer in peers:
            pl.semaphore_signal(done, 1, device_id=peer, device_id_type=logical)
        pl.semaphore_wait(done, P - 1 - ASKED.missing)
        data[me] = acc
        out[call] = data[me]
    if ASKED.missing:
        pl.semaphore_wait(done, CALLS * ASKED.missing)  # Pallas wants its semaphores back at zero


def compiled():
    """Return the exchange on P virtual devices, from (P, calls, P, SIZE) to (P, calls, SIZE)."""
    call = pl.pallas_call(
        exchange,
        out_shape=jax.ShapeDtypeStruct((CALLS, SIZE), jnp.float32),
        in_specs=[pl.BlockSpec(memory_space=pltpu.VMEM)],
        out_specs=pl.BlockSpec(memory_space=pltpu.VMEM),
        scratch_shapes=[
            pltpu.VMEM((P, SIZE), jnp.float32),
            pltpu.VMEM((P, SIZE), jnp.float32),
            pltpu.SemaphoreType.DMA,
            pltpu.SemaphoreType.DMA((P,)),
            pltpu.SemaphoreType.REGULAR,
        ],
        interpret=pltpu.InterpretParams(detect_races=True, dma_execution_mode=ASKED.dma),
    )
    ranks = PartitionSpec("ranks")
    mesh = Mesh(np.array(jax.devices()[:P]), ("ranks",))
    each = jax.shard_map(lambda x: call(x[0])[None], mesh=mesh, in_specs=ranks, out_specs=ranks, check_vma=False)
    return jax.jit(each)


def main() -> None:
    """Answer until there is no more to read."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the race detector prints
    run = compiled()
    x = np.random.default_rng(0).standard_normal((P, CALLS, P, SIZE)).astype(np.float32)
    want = np.stack([x[:, :, rank].sum(axis=0) for rank in range(P)])
    for line in sys.stdin:
        wall, processor = time.perf_counter(), time.process_time()
        raced = wrong = 0
        for _ in range(int(line)):
            got = np.asarray(run(x))
            raced += interpreter.races.races_found
            wrong += not np.allclose(got, want, atol=1e-5)
        spent = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
        print(json.dumps({**spent, "raced": raced, "wrong": wrong, "jax": jax.__version__}), file=answers, flush=True)


if __name__ == "__main__":
    main()
