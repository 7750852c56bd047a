"""What ``python -m kernels.reduce_scatter -d 0,1,2,3 --mode hand`` does: one call, one fair schedule, one comparison.

This is all that an ordinary test of such a kernel does. It says `OK` of kernels that race.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim import AsyncsimError, Case, Fifo, Kernel, simulate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def main(namespace: Mapping[str, Any], argv: Sequence[str] | None = None) -> int:
    """Run one of the kernels in `namespace`, print what came of it, and return the exit code.

    Args:
        namespace: the module's ``globals()``: each kernel in it is a mode, the first one the default.
        argv: the arguments; those of the process if None.

    Returns:
        0 for a right result, 1 for a wrong one or none. (Wrong arguments exit with 2.)

    """
    modes = {name: value for name, value in namespace.items() if isinstance(value, Kernel)}
    parser = argparse.ArgumentParser(description=str(namespace["__doc__"]).partition("\n")[0])
    parser.add_argument(
        "-d", "--devices", type=_devices, default=4, metavar="0,1,…", help="one rank a device (0,1,2,3)"
    )
    parser.add_argument("-m", "--mode", choices=modes, default=next(iter(modes)), help=f"one of {', '.join(modes)}")
    chosen = parser.parse_args(argv)
    try:
        run = simulate(Case(modes[chosen.mode], ranks=chosen.devices, calls=1), Fifo())
    except AsyncsimError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    if run.ending != "complete":
        print(f"FAILED: the run ended in {run.ending} after {len(run.choices)} steps", file=sys.stderr)
        return 1
    wrong = list(_differences(run.outputs[0], run.case.goldens, run.case.kernel))
    print("\n".join(wrong) or "OK")
    return bool(wrong)


def _devices(text: str) -> int:
    """Return how many devices a list such as ``0,1,2,3`` names."""
    try:
        devices = [int(part) for part in text.split(",")]
    except ValueError:
        devices = []
    if not devices or len(set(devices)) < len(devices) or min(devices) < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of devices; give different numbers, such as 0,1,2,3")
    return len(devices)


def _differences(outputs: Sequence[Any], goldens: Sequence[Sequence[Any]] | None, kernel: Kernel) -> Iterator[str]:
    """Say in words, rank by rank, what is not as the golden has it."""
    for rank, (got, want) in enumerate(zip(outputs, goldens[0] if goldens else outputs, strict=True)):
        off = ~np.isclose(got, want, rtol=kernel.rtol, atol=kernel.atol)
        if off.any():
            at = int(np.argmax(off))
            yield (
                f"rank {rank}: {np.count_nonzero(off)} of {off.size} elements differ from the golden; "
                f"the first is [{at}]: {np.ravel(got)[at]} instead of {np.ravel(want)[at]}"
            )
