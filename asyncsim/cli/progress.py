"""The progress bar: on stderr, for a person only."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.checking.explore import Progress


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[Progress], None] | None]:
    """Show a bar while the block runs; yield what moves it, or None where nobody watches.

    Args:
        title: what is going on.

    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich import console, progress  # noqa: PLC0415 - slow to import, and mostly not needed

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[facts]}"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, facts=facts_of(None, 0.0))

        def move(now: Progress) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            bar.update(task, completed=now.done, total=now.total, facts=facts_of(now, elapsed))

        yield move


def facts_of(now: Progress | None, seconds: float) -> str:
    """Return what is known beside how far it is: ``412/s, 57 behaviours (12% unseen), 1 found``.

    Args:
        now: how far it is; None: it has not begun.
        seconds: since it began.

    """
    if now is None:
        return "0 found"
    facts = []
    if now.behaviours is not None and now.unseen is not None:
        facts.append(f"{now.behaviours} behaviours ({now.unseen:.0%} unseen)")
        if seconds > 0:
            facts.insert(0, f"{now.done / seconds:.0f}/s")
    return ", ".join([*facts, f"{now.found} found"])
