"""Real torch processes, on gloo: make the random calls, and leave what each rank got in a file.

    python gloo_processes.py FOLDER

One process imports torch and forks the ranks, for 2, 3 and 4 of them one after the other; the file of
rank r of P is ``FOLDER/P-r.npz``. Bits are kept as bytes, since numpy's files know no bfloat16.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import torch
import torch.distributed as dist
from torch_calls import CALLS, drawn, make_calls
from torch_tensors import array, tensor


def run_rank(folder, ranks, rank):
    """Be one rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet-{ranks}", rank=rank, world_size=ranks)
    got = make_calls(dist, drawn(ranks), tensor, array)
    kept = {str(n): np.frombuffer(y.tobytes(), np.uint8) for n, y in enumerate(got) if y is not None}
    np.savez(folder / f"{ranks}-{rank}.npz", **kept)
    dist.barrier()
    dist.destroy_process_group()


def main():
    """Fork the ranks, and wait for them."""
    folder = Path(sys.argv[1]).resolve()
    for ranks in CALLS:
        children = []
        for rank in range(ranks):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    run_rank(folder, ranks, rank)
                    status = 0
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(status)
            children.append(child)
        ended = [os.waitpid(child, 0)[1] for child in children]
        if any(ended):
            sys.exit(f"a rank of {ranks} failed")


if __name__ == "__main__":
    main()
