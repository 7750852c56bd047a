"""Writing a trace to a file while its run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from asyncsim.trace.jsonl import TraceWriter
from asyncsim.trace.packed import open_for_writing

if TYPE_CHECKING:
    import os

    from asyncsim.trace.event import Event, Footer, Header


class LiveTrace:
    """A trace file that grows while a run goes on; killed at any moment, it is whole up to its last line.

    Used as a context: the file is closed at its end, with a footer if `finish` was called.

    Args:
        path: the file, which may end in ``.gz`` or ``.zst``; compressed line by line it is larger.
        header: of the trace, written at once.

    Raises:
        OSError: the file cannot be written.
        MisuseError: it ends in ``.zst``, and zstandard is not installed.

    """

    def __init__(self, path: str | os.PathLike[str], header: Header) -> None:
        self._stream = open_for_writing(Path(path), live=True)
        self._writer = TraceWriter(self._stream, header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stream.close()

    def step(self, event: Event) -> None:
        """Write a step."""
        self._writer.step(event)

    def finish(self, footer: Footer) -> None:
        """Write the footer."""
        self._writer.finish(footer)
