"""Writing traces as JSON Lines; `asyncsim.trace.format` says what stands in them, `jsonl_read` reads.

Every line ends in a CRC-32 over itself and all lines before it, so that a line that was changed,
lost or moved is found at its own number. The bytes depend on the trace alone: keys have a fixed
order, what is empty is left out, and nothing of the machine or the hour gets in.

structlog makes the lines: a line is an event, its fields the event's context, and two processors
put them in order and chain them. The logger is private; nothing is configured, and no
configuration of the user's reaches it. It is imported when a line is written: with it come its
developers' console and rich, which take longer to import than most verdicts take to find.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO
from uuid import uuid4

from asyncsim.trace.format import FOOTER, FOOTER_LINE, FORMAT, HEADER, HEADER_LINE, STEP_LINE
from asyncsim.trace.format_step import step_fields
from asyncsim.trace.jsonl_read import read_trace
from asyncsim.trace.packed import open_for_writing
from asyncsim.trace.strict import json_text

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    import structlog

    from asyncsim.trace.event import Event, Footer, Header, Trace

__all__ = ["FORMAT", "LiveTrace", "TraceWriter", "read_trace", "write_trace"]


class TraceWriter:
    """Writes a trace while it happens: a run that is killed leaves whole lines.

    Args:
        stream: a text stream, open for writing; each line is flushed.
        header: written at once.

    """

    def __init__(self, stream: TextIO, header: Header) -> None:
        import structlog  # noqa: PLC0415 - slow to import, and most runs write no trace

        self._steps = 0
        # Every part is given, so that structlog's global configuration is never asked for one.
        self._log: structlog.BoundLogger = structlog.wrap_logger(
            _Lines(stream),
            processors=[_event_first, _Chain()],
            wrapper_class=structlog.BoundLogger,
            context_class=dict,
            cache_logger_on_first_use=False,
        ).bind()
        self._log.line(HEADER_LINE, **HEADER.write(header))

    def step(self, event: Event) -> None:
        """Write the line of one step."""
        self._log.line(STEP_LINE, step=self._steps, **step_fields(event))
        self._steps += 1

    def finish(self, footer: Footer) -> None:
        """Write the footer, after which nothing may come."""
        self._log.line(FOOTER_LINE, **FOOTER.write(footer, steps=self._steps))


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


def write_trace(trace: Trace, target: TextIO | str | os.PathLike[str]) -> None:
    """Write a whole trace; the same trace gives the same bytes.

    Args:
        trace: what to write; without a footer, the file is one of a run that was broken off.
        target: a text stream, or a path, which may end in ``.gz`` or ``.zst``. A path gets the whole
            file or, if that fails, none.

    Raises:
        OSError: the file cannot be written.

    """
    if not isinstance(target, str | os.PathLike):
        _write_all(trace, target)
        return
    path = Path(target)
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # beside it: a rename does not cross file systems
    try:
        with open_for_writing(draft, ending=path.suffix, new=True) as stream:
            _write_all(trace, stream)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write_all(trace: Trace, stream: TextIO) -> None:
    writer = TraceWriter(stream, trace.header)
    for event in trace.events:
        writer.step(event)
    if trace.footer is not None:
        writer.finish(trace.footer)


class _Lines:
    """What structlog logs to: its own WriteLogger would keep a lock for every file for ever."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def line(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _event_first(_logger: Any, _method: str, fields: MutableMapping[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """Structlog's processor: say first what a line is."""
    return {"event": fields.pop("event"), **fields}


class _Chain:
    """Structlog's processor: make the line, and close it with the sum of it and all before it."""

    def __init__(self) -> None:
        self._crc = 0

    def __call__(self, _logger: Any, _method: str, fields: MutableMapping[str, Any]) -> str:  # noqa: ANN401
        body = json_text(fields)
        self._crc = zlib.crc32(body.encode(), self._crc)
        return f'{body[:-1]},"crc":"{self._crc:08x}"}}\n'
