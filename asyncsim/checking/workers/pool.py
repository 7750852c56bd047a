"""Batches in other processes: over any executor, and over a pool of our own that survives the death of its workers.

A process that dies breaks its pool, and every batch that was under way with it. The pool is made
anew and they run again. A batch that was twice under way when a pool broke runs alone, so that it is
known whether it was the one; if it was, it is halved until the deadly schedule is known.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, ProcessPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING

from asyncsim.checking.record.interrupts import interrupts_deferred
from asyncsim.checking.workers.batch import PATIENCE, init_worker, run_batch
from asyncsim.machine.simulate import outside
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from concurrent.futures import Executor, Future
    from multiprocessing.synchronize import Event

    from asyncsim.checking.search.shard import Shard
    from asyncsim.checking.workers.batch import Batch

QUEUED = 2
"""Batches under way for each worker: one that runs, and one that is there when it is done."""
_DEATHS = 2


def cores() -> int:
    """Return on how many processors this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """The workers that run batches.

    Args:
        jobs: how many at a time.
        executor: runs them; None: a pool of so many processes, made here.
        run: what is done with a batch; it travels by its name.

    """

    def __init__(
        self, jobs: int, executor: Executor | None = None, *, run: Callable[[Batch], Shard] = run_batch
    ) -> None:
        self.jobs = jobs
        self._run = run
        self._lent = executor
        # Spawned, not forked: a fork copies locks that threads of this process may hold.
        self._context = multiprocessing.get_context("spawn")
        self._stop: Event | None = None
        self._own: ProcessPoolExecutor | None = None

    def submit(self, batch: Batch) -> Future[Shard]:
        """Have a batch run."""
        if self._lent is not None:
            return self._lent.submit(self._run, batch)
        if self._own is None:
            stop = self._stop = self._context.Event()
            self._own = ProcessPoolExecutor(
                self.jobs, mp_context=self._context, initializer=init_worker, initargs=(stop,)
            )
        with _undisturbed():
            return self._own.submit(self._run, batch)

    def renew(self) -> None:
        """Throw a broken pool away; the next batch makes another.

        Raises:
            MisuseError: the executor is not ours to make.

        """
        if self._own is None:
            raise MisuseError(
                f"the executor ({type(self._lent).__name__}) is broken, a worker of it died; what was found is kept: "
                "give a new executor, and continue with the journal (resume)"
            )
        self._own.shutdown(cancel_futures=True)
        self._own = None

    @property
    def owned(self) -> bool:
        """Whether the workers are processes of ours, which can be stopped."""
        return self._lent is None

    def stop(self) -> None:
        """Stop the workers after their current schedule."""
        if self._stop is not None:
            self._stop.set()

    def close(self) -> None:
        """End the processes that were started here."""
        self.stop()
        if self._own is not None:
            self._own.shutdown(cancel_futures=True)
            self._own = None


class Dispatcher:
    """Batches under way at a pool's.

    Args:
        pool: runs them.
        receive: called with each shard as soon as it is there, in any order.

    """

    def __init__(self, pool: WorkerPool, receive: Callable[[Shard], Awaitable[None]]) -> None:
        self._pool = pool
        self._receive = receive
        self._running: dict[Future[Shard], Batch] = {}
        self._again: deque[Batch] = deque()
        self._deaths: dict[int, int] = {}

    async def run(self, batches: Iterator[Batch]) -> None:
        """Run all of them."""
        while True:
            room = self._pool.jobs * QUEUED - len(self._running)
            again = [self._again.popleft() for _ in range(min(room, len(self._again)))]
            try:
                for batch in again or islice(batches, room):
                    self._again.append(batch)  # until it is under way
                    with interrupts_deferred():
                        self._running[self._pool.submit(batch)] = batch
                        self._again.pop()
            except BrokenExecutor:
                await self._recover()
                continue
            if not self._running:
                return
            if await self._collect(await self._next_done()):
                await self._recover()

    async def collect_after_stop(self) -> None:
        """Stop the workers; receive what is done already, and what they have done of the rest."""
        self._pool.stop()
        for future in self._running:
            future.cancel()
        if self._pool.owned:
            wait(self._running, PATIENCE)
        await self._collect([future for future in self._running if future.done()])

    async def _next_done(self) -> list[Future[Shard]]:
        """Wait until something is done."""
        while True:
            done = (await outside(partial(wait, list(self._running), 1.0, FIRST_COMPLETED))).done
            if done:
                return sorted(done, key=lambda future: self._running[future].start)

    async def _collect(self, done: list[Future[Shard]]) -> bool:
        """Receive the shards of what is done; return whether a worker died. Its batch stays in `_running`."""
        died = False
        for future in done:
            try:
                shard = future.result()
            except (BrokenExecutor, CancelledError):
                died = True
                continue
            del self._running[future]
            await self._receive(shard)
        return died

    async def _recover(self) -> None:
        """Make the pool anew after a death, and see to what was under way."""
        if self._pool.owned:
            wait(self._running, PATIENCE)  # the pool fails them all
        self._pool.renew()
        await self._collect([future for future in self._running if future.done()])
        lost = sorted([*self._running.values(), *self._again], key=lambda batch: batch.start)
        under_way = {batch.start for batch in self._running.values()}
        self._running.clear()
        self._again.clear()
        suspects: list[Batch] = []
        for batch in lost:
            deaths = self._deaths[batch.start] = self._deaths.get(batch.start, 0) + (batch.start in under_way)
            (suspects if deaths >= _DEATHS else self._again).append(batch)
        for batch in suspects:
            await self._run_alone(batch)

    async def _run_alone(self, batch: Batch) -> None:
        """Run a batch with nothing else under way, and find the schedule in it that ends its process, if one does."""
        for _ in range(_DEATHS if len(batch.texts) == 1 else 1):
            try:
                future = self._pool.submit(batch)
                self._running = {future: batch}
                (done,) = await self._next_done()
                self._running = {}
                await self._receive(done.result())
            except BrokenExecutor:
                self._pool.renew()
            else:
                return
        if len(batch.texts) == 1:
            await self._receive(batch.fatal_shard())
            return
        for half in batch.halves():
            await self._run_alone(half)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let processes be started so that they import nothing but their work, and leave Ctrl-C to their parent.

    A new process would import the main module of this one: the command line, a whole test runner, or
    a script that then explores once more. Batches need nothing of it. And it keeps the mask of signals.
    This process does not hear Ctrl-C in between: one that was half started would complain of it. The mask
    alone does not suffice, as any other thread receives the signal, too.
    """
    masks = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]) if masks else set()
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        with interrupts_deferred():
            yield
    finally:
        sys.modules["__main__"] = main
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
