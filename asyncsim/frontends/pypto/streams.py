"""What each rank of a run did, in short: to tell whether another run of the same program does the same.

A kernel may go by what stands outside of it: a global of the script, a file, a counter. Then the run of a check need
not be that of the script, and proves nothing about it.
"""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from asyncsim.machine.direct import drive
from asyncsim.schedulers.table import make

if TYPE_CHECKING:
    from asyncsim.machine.case import Case

Streams = tuple[str, ...]
"""How a run ended, then for each actor a digest of its operations: kinds, places, amounts; not the data moved."""


def streams_of(case: Case, scheduler: str) -> Streams:
    """Run a case under a schedule, and return what it did.

    Raises:
        KernelError: the kernel raised.

    """
    run = drive(case, make(scheduler), record=scheduler, lines=False)
    digests: defaultdict[str, Any] = defaultdict(sha256)
    for event in run.trace.events if run.trace is not None else ():
        digests[event.op.actor.name].update(f"{event.op}\n".encode())
    return (run.ending, *(f"{name} {digest.hexdigest()}" for name, digest in sorted(digests.items())))
