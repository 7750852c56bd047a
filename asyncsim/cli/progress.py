"""The progress bar, and a warning about memory: on stderr, looked at now and then while the command works."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from asyncsim.checking.record.stage import footprint
from asyncsim.machine.free import available, resident, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType
    from rich.live import Live

    from asyncsim.checking.record.stage import Stage
    from asyncsim.checking.search.tally import Progress


DELAY = 0.5
"""Seconds before anything is shown: what is over by then would only flicker."""

LENGTH = 20
"""Of the bar, where there is room for it beside the facts."""


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar while the block runs; yield what moves it, or None where stderr is not a terminal.

    Args:
        title: what is going on.

    """
    if sys.stderr is None or not sys.stderr.isatty():  # none: it was closed before Python began
        yield None
        return
    bar = _Bar(title)
    try:
        with ticking(bar.show):
            yield bar.move
    finally:
        bar.close()


class _Bar:
    """What is shown, and what it is of.

    Args:
        title: what is going on.

    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._pace = Pace(time.monotonic())
        self._lock = threading.Lock()  # the pace is taken by one thread, and shown by another
        self._live: Live | None = None

    def move(self, now: Progress) -> None:
        """Update the progress; it is shown a little later."""
        with self._lock:
            self._pace.update(now, time.monotonic())

    def show(self) -> None:
        now = time.monotonic()
        if self._live is None:
            if now - self._pace.began < DELAY:
                return
            from rich.console import Console  # noqa: PLC0415 - slow to import, and mostly not needed
            from rich.live import Live  # noqa: PLC0415

            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._drawn(now, self._live.console.width), refresh=True)

    def close(self) -> None:
        """Show the end of it, if anything was shown or should have been, and take it away."""
        self.show()
        if self._live is not None:
            self._live.stop()

    def _drawn(self, now: float, width: int) -> RenderableType:
        from rich.console import Group  # noqa: PLC0415 - as above
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        with self._lock:
            pace = self._pace
            title, facts, total, done = pace.title(self._title), pace.facts(now), pace.total, pace.done
        below = Table.grid(padding=(0, 1))
        length = max(min(LENGTH, width - len(facts) - 1), LENGTH // 4)
        bar = ProgressBar(total, done, width=length, pulse=total is None, animation_time=now)
        below.add_row(bar, Text(facts, overflow="ellipsis", no_wrap=True))
        return Group(Text(title, overflow="ellipsis", no_wrap=True), below)


class Pace:
    """How far it is, and how fast it goes.

    Args:
        began: when it did, in seconds.

    """

    def __init__(self, began: float) -> None:
        self.began = began
        self._now: Progress | None = None
        self._since = began
        self._before = 0

    def update(self, now: Progress, when: float) -> None:
        """Update the progress; the pace is counted from the beginning of a stage, or from the first schedule reported.

        Args:
            now: how far it is.
            when: in seconds, by any clock that does not go back.

        """
        last = self._now
        if now.stage is not None or last is None or last.stage is not None:
            self._since = when
            self._before = 0 if now.stage is not None else max(now.done - 1, 0)  # others may have been run long ago
        self._now = now

    @property
    def stage(self) -> Stage | None:
        """What goes on besides schedules."""
        return None if self._now is None else self._now.stage

    @property
    def done(self) -> int:
        """How many steps of a run, or schedules, are done."""
        stage = self.stage
        return stage.steps if stage is not None else 0 if self._now is None else self._now.done

    @property
    def total(self) -> int | None:
        """Of how many; None: not known, or nothing that is counted."""
        stage = self.stage
        if stage is not None:
            return None if stage.choices is None or stage.total is None else max(stage.total, stage.steps)
        return None if self._now is None else self._now.total

    def title(self, text: str) -> str:
        """Return what goes on: ``reduce_scatter:builtin, P = 1024: second run``."""
        return text if self.stage is None else f"{text}: {self.stage.name}"

    def facts(self, when: float) -> str:
        """Return how far it is: ``1,234 of 5,678 steps, 912/s, 80 MB, 0:07:12, 0:00:05 left``."""
        now, stage, done, total = self._now, self.stage, self.done, self.total
        seconds = when - self._since
        rate = (done - self._before) / seconds if seconds > 0 else 0.0
        facts = []
        if stage is not None:
            if stage.choices is not None:
                facts += [f"{done:,} steps" if total is None else f"{done:,} of {total:,} steps", f"{rate:,.0f}/s"]
            elif stage.total is not None:
                facts.append(f"{stage.total:,} steps")
        elif now is not None:
            facts += [f"{done}/{total}", f"{rate:.0f}/s"]
            if now.behaviours is not None and now.unseen is not None:
                facts.append(f"{now.behaviours} behaviours ({now.unseen:.0%} unseen)")
        found = 0 if now is None else now.found
        if stage is None or found:
            facts.append(f"{found} found")
        if stage is not None and (memory := resident()) is not None:
            facts.append(size_text(memory))
        facts.append(clock(when - self.began))
        if total is not None and rate > 0 and done < total:
            facts.append(f"{clock((total - done) / rate)} left")
        return ", ".join(facts)


def clock(seconds: float) -> str:
    """Return a length of time: ``0:07:12``."""
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


@contextmanager
def memory_watched(on_progress: Callable[[Progress], None] | None) -> Iterator[Callable[[Progress], None]]:
    """Warn on stderr, once, when the runs of a check become too long for the memory that was free at first.

    Args:
        on_progress: gets the progress, too.

    """
    watch = _MemoryWatch(available())

    def update(now: Progress) -> None:
        watch.stage = now.stage
        if on_progress is not None:
            on_progress(now)

    if watch.free is None:
        yield update
        return
    with ticking(watch.check):
        yield update


class _MemoryWatch:
    """The memory there was at first, and what goes on."""

    def __init__(self, free: int | None) -> None:
        self.free = free
        self.stage: Stage | None = None

    def check(self) -> None:
        """Warn, once, if the memory will not be enough."""
        stage, free = self.stage, self.free
        if stage is None or free is None:
            return
        steps = max(stage.steps, stage.total or 0)
        need = footprint(steps, compact=stage.compact)
        if need > free:
            self.free = None  # once is enough
            sys.stderr.write(
                f"asyncsim: a run of {steps:,} steps and more can take {size_text(need)} of memory, and "
                f"{size_text(free)} were free: the system may end this check; judge fewer ranks or calls\n"
            )


PERIOD = 0.2
"""Seconds between two looks."""


@contextmanager
def ticking(check: Callable[[], None]) -> Iterator[None]:
    """Call a function every `PERIOD` seconds while the block runs, from a thread of its own, and never after it.

    Ctrl-C goes to the main thread, as ever.
    """
    over = threading.Event()

    def tick() -> None:
        while not over.wait(PERIOD):
            check()

    thread = threading.Thread(target=tick, name="asyncsim ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
