"""Batches: schedules as work for another process, which knows nothing but the batch.

A kernel travels by its name and the hash of its source; no code does. A worker that runs a batch loads the
kernel for itself and refuses one with another source.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.outcome import Judge
from asyncsim.checking.record.locate import locate
from asyncsim.checking.search.sampler import Sampler
from asyncsim.checking.search.shard import DIES, Failure, Shard
from asyncsim.checking.workers.journal import append_failures
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import AsyncsimError, MisuseError
from asyncsim.trace.finding import Finding
from asyncsim.trace.guest import end_process

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

    from asyncsim.machine.kernel import Kernel

PATIENCE = 60.0
"""Seconds that workers that have to stop may spend on their current schedule."""


@dataclass(frozen=True, slots=True)
class CaseSpec:
    """What all batches of one exploration share.

    Args:
        kernel: its name, for `locate`.
        source: the hash of its source file.
        ranks, calls, memory, seed: of the case.
        behaviours: whether to number behaviours.
        journal: the file that records what is found at once, if it can be reached; or None.
        max_steps, edits: of the case.

    """

    kernel: str
    source: str
    ranks: int
    calls: int
    memory: str
    seed: int
    behaviours: bool
    journal: str | None = None
    max_steps: int | None = None
    edits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """Schedules that follow one another in a plan.

    Args:
        work: of which exploration.
        start: the number of the first schedule.
        texts: their schedulers.

    """

    spec: CaseSpec
    start: int
    texts: tuple[str, ...]

    def halves(self) -> tuple[Batch, Batch]:
        """Return the two halves of a batch of at least two schedules."""
        middle = len(self.texts) // 2
        return replace(self, texts=self.texts[:middle]), replace(
            self, start=self.start + middle, texts=self.texts[middle:]
        )

    def fatal_shard(self) -> Shard:
        """Return the shard of one schedule that ends the process it runs in, each time."""
        (text,) = self.texts
        why = (
            "nothing was judged: the process that runs this schedule dies, in every attempt: killed, out of memory, "
            "or by a crash; no result of it was seen, right or wrong"
        )
        return Shard(self.start, 1, times={DIES: 1}, first={DIES: Failure(Finding("wrong-result", why), (), text, "")})


class _Here(threading.local):
    """What this thread has prepared: the sampler of the work it did last. A batch is never changed by it."""

    spec: CaseSpec | None = None
    sampler: Sampler
    judge: Judge


_here = _Here()
_stops: list[Event] = []
"""Set, in a process of a pool, when the pool is to stop."""


def init_worker(stop: Event) -> None:
    """Prepare a process of a pool: Ctrl-C is its parent's business, which then sets `stop`; it dies with its parent."""
    import signal  # noqa: PLC0415 - of pool processes alone

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(stop,), name="asyncsim-parent", daemon=True).start()
    _stops[:] = [stop]


def _end_with_parent(stop: Event, *, every: float = 1.0, patience: float = PATIENCE) -> None:
    """End this process when its parent is gone, killed perhaps, or has waited for long: nothing else would."""
    from multiprocessing import parent_process  # noqa: PLC0415 - of pool processes alone
    from multiprocessing.connection import wait  # noqa: PLC0415

    parent = parent_process()
    if parent is not None:
        waited = 0.0
        while waited <= patience and not wait([parent.sentinel], every):
            waited += every * stop.is_set()
        end_process(1)  # not sys.exit: the main thread is at a schedule, or waits for a batch that never comes


def check_not_nested() -> None:
    """Refuse to start processes in a process that runs batches: each of them would do it again.

    Raises:
        MisuseError: a module explores while it is imported, and is being imported for its kernel.

    """
    if _stops:
        raise MisuseError(
            "the module of this kernel explores it as it is imported, and other processes import it, too; "
            'put the call under: if __name__ == "__main__":'
        )


def run_batch(batch: Batch) -> Shard:
    """Run a batch, here; return its shard, which is a shorter one if the pool has to stop.

    Raises:
        MisuseError: the kernel cannot be found here, or has another source.

    """
    whole = Shard(batch.start)
    try:
        sampler = _sampler(batch.spec)
        for number, text in enumerate(batch.texts, batch.start):
            if _stops and _stops[0].is_set():
                break
            shard = sampler.run_schedule(number, text)
            if batch.spec.journal is not None:
                append_failures(batch.spec.journal, shard, whole)
            whole.join(shard)
    except AsyncsimError as error:
        raise MisuseError(str(error)) from None  # the others do not survive the way back
    return whole


def judge_of(spec: CaseSpec) -> Judge:
    """Return the judge of a work's case, made in this thread once.

    Raises:
        MisuseError: the kernel has another source here.

    """
    _sampler(spec)
    return _here.judge


def stop_requested() -> bool:
    """Return whether the pool of this process is to stop."""
    return bool(_stops) and _stops[0].is_set()


def _sampler(spec: CaseSpec) -> Sampler:
    if _here.spec != spec:
        kernel = locate(spec.kernel)
        if kernel.source != spec.source:
            raise MisuseError(
                f"{spec.kernel} has another source in process {os.getpid()}, which was to run it: {kernel.source} "
                f"there, {spec.source} here; give every worker the same files, and start them anew"
            )
        case = Case(kernel, spec.ranks, spec.calls, spec.memory, spec.seed, spec.max_steps, spec.edits)
        judge = Judge(case)
        judge.set_reference(drive(case, Fifo()))
        _here.sampler = Sampler(case, judge, behaviours=spec.behaviours)
        _here.judge = judge
        _here.spec = spec
    return _here.sampler


def importable_name(kernel: Kernel) -> str:
    """Return the name by which other processes find this very kernel.

    Raises:
        MisuseError: there is none.

    """
    ref = kernel.ref
    advice = "give the kernel a name of its own in a module or a file, or explore with jobs=1"
    if ref.startswith("__main__:"):
        raise MisuseError(
            f"other processes cannot find the kernel {ref}, which stands in a script; "
            "run the script as a module, python -m NAME, or explore with jobs=1"
        )
    try:
        found = locate(ref)
    except AsyncsimError as error:
        raise MisuseError(f"other processes cannot find the kernel {ref}: {error}; {advice}") from None
    if found is kernel:
        return ref
    program = kernel.program
    as_script = program.__module__ == "__main__" and program.__closure__ is None
    if as_script and found.program.__code__ == program.__code__ and found.params == kernel.params:
        return ref
    raise MisuseError(
        f"other processes would find another kernel under the name {ref}: this one was made in a function, "
        f"or its file has changed since; {advice}"
    )
