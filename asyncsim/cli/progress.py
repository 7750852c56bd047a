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
        progress.TextColumn("{task.fields[found]} found"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None, found=0)

        def move(now: Progress) -> None:
            bar.update(task, completed=now.done, total=now.total, found=now.found)

        yield move
