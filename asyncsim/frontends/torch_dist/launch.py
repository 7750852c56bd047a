"""Launching: a thread a rank, and what came of each; then the verdict over all that they called."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asyncsim.checking.verdict.check import check
from asyncsim.frontends.torch_dist.call import spoken
from asyncsim.frontends.torch_dist.partings import first_parting, swapped
from asyncsim.frontends.torch_dist.replayed import kernel_of
from asyncsim.frontends.torch_dist.session import CallMismatchError, Session
from asyncsim.guest.modules import LocalModules
from asyncsim.guest.process import Process
from asyncsim.guest.signals import handlers_by_rank
from asyncsim.guest.threads import threads_known
from asyncsim.guest.turns import StoppedError
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.late import model_of
from asyncsim.trace.lent import flush_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import ModuleType

    from asyncsim.checking.verdict.explore import Progress
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel

_SLACK = 4
"""A run may take so many times more operations than the collectives took one by one."""


@dataclass(frozen=True, slots=True)
class Launched:
    """What came of a launch.

    Args:
        path: of the script, or of the file that the launched function stands in.
        session: what was called.
        memory, scheduler, seed: as for `check`.
        results: what each rank's program returned; None where it raised.
        errors: what it raised instead.

    """

    path: str
    session: Session
    memory: str
    scheduler: str
    seed: int
    results: list[Any]
    errors: list[BaseException | None]

    @property
    def own_errors(self) -> dict[int, BaseException]:
        """The exceptions by rank that the script is to blame for, not the absence or the calls of other ranks."""
        found = {rank: error for rank, error in enumerate(self.errors) if error is not None}
        return {rank: error for rank, error in found.items() if not isinstance(error, CallMismatchError)}

    @property
    def max_steps(self) -> int:
        """How long a run of all calls may be: by far longer than the collectives took one by one."""
        return 50_000 + _SLACK * self.session.operations

    def kernel(self, memory: str) -> Kernel:
        """Return everything that was called, as one kernel for this memory model."""
        session = self.session
        return kernel_of(session.steps, session.unfinished(), ranks=session.ranks, path=self.path, memory=memory)

    def check(self, *, save: Path | None = None, progress: Callable[[Progress], None] | None = None) -> Report:
        """Judge all calls: run them again on one machine, on memory that is used again and again.

        Args:
            save: a folder for witnesses, as for `asyncsim.check`.
            progress: called after every schedule.

        Raises:
            MisuseError: no collective was called, so that there is nothing to judge.
            NotRunError: a collective could not be run.

        """
        session = self.session
        session.check_ran()
        if session.idle:
            raise MisuseError(f"{self.path} called no collective; there is nothing to judge")
        report = check(
            self.kernel(self.memory), ranks=session.ranks, calls=1, memory=self.memory, scheduler=self.scheduler,
            seed=self.seed, max_steps=self.max_steps, save=save, progress=progress,
        )  # fmt: skip
        report.notes += self._notes()
        parting = first_parting(session.steps) if report.refuted else None
        if parting is not None:
            report.notes.append(parting)
        return report

    def _notes(self) -> list[str]:
        session = self.session
        asynchronous = sum(call.asynchronous for own in session.participants for call in own.calls)
        notes = [f"collectives: {session.collectives}, run again as one kernel, on memory that they share"]
        if asynchronous:
            watched = any(own.watch is not None for own in session.participants)
            seen = "" if watched else "touching a tensor between such a call and its wait() is not seen, and "
            notes.append(
                f"calls with async_op=True: {asynchronous}; {seen}on the machine they run one after the other, as soon "
                "as all members have called"
            )
        notes += swapped(session.steps)
        never = session.never_awaited()
        if never:
            notes.append(f"never waited for, so that its result may not be used: {spoken(never)}")
        return notes


_PATIENCE = 1.0
"""How many seconds interrupted ranks have to come to their ends; one may be at anything."""


def launch(
    program: Callable[[], Any], *, ranks: int, memory: str = "sc", scheduler: str = "fifo", seed: int = 0
) -> Launched:
    """Run a function once a rank, as `torchrun` does with a script.

    Args:
        program: takes nothing; calls the functions of this dialect.
        ranks: P.
        memory: the memory model that collectives run on.
        scheduler: which schedules of them are run.
        seed: of that, and of random numbers that the program does not seed.

    """
    code = getattr(program, "__code__", None)
    path = "program" if code is None else code.co_filename
    main = sys.modules["__main__"]
    return run_ranks(
        [program] * ranks, [main] * ranks, list(sys.argv), path, None, memory=memory, scheduler=scheduler, seed=seed
    )


def run_ranks(  # noqa: PLR0913 - what a launch is made of
    programs: Sequence[Callable[[], Any]],
    mains: Sequence[ModuleType],
    argv: list[str],
    path: str,
    folder: Path | None,
    *,
    memory: str,
    scheduler: str,
    seed: int,
) -> Launched:
    """Run one program a rank, each in a thread with belongings of its own.

    Args:
        programs: by rank.
        mains: the module ``__main__`` of each.
        argv: its arguments.
        path: what the session is shown as.
        folder: each rank imports modules of its own from there; None: they share all modules.
        memory: the memory model that collectives run on.
        scheduler: which schedules of them are run.
        seed: of that, and of random numbers that a program does not seed.

    Raises:
        KeyboardInterrupt: Ctrl-C; the ranks end at their next call.
        MisuseError: there is no such scheduler, or memory model.

    """
    make(scheduler)
    model_of(memory)
    ranks = len(programs)
    before = Process.present()
    processes = [Process.of_rank(rank, ranks, seed=seed, argv=argv, main=main) for rank, main in enumerate(mains)]
    session = Session(processes, LocalModules(folder), memory=memory, scheduler=scheduler, seed=seed)
    launched = Launched(path, session, memory, scheduler, seed, [None] * ranks, [None] * ranks)
    threads = [
        threading.Thread(target=_run, args=(launched, rank, program), name=f"rank {rank}", daemon=True)
        for rank, program in enumerate(programs)
    ]
    for thread in threads:
        thread.start()
    try:
        with handlers_by_rank(), threads_known():
            session.turns.begin()
            session.turns.join()
    except BaseException:
        session.turns.stop()
        raise
    finally:
        for thread in threads:
            thread.join(_PATIENCE / ranks)
        before.install()
    return launched


def _run(launched: Launched, rank: int, program: Callable[[], Any]) -> None:
    session = launched.session
    ended = "has finished"
    try:
        session.enter(rank)
        launched.results[rank] = program()
    except StoppedError:
        ended = "was stopped"
    except BaseException as error:  # noqa: BLE001 - also SystemExit: it is how a script ends
        if not isinstance(error, SystemExit) or error.code not in (None, 0):
            launched.errors[rank] = error
            ended = f"has ended with {type(error).__name__}"
    finally:
        flush_streams()
        session.leave(rank, ended)
