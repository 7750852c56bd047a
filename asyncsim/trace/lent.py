"""Output streams lent to a script: it may close its own, and what is said after it still comes out."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class Lent:
    """A stream that is closed for the borrower only.

    What the borrower makes of its buffer, or of its file descriptor, closes neither when it is closed or dropped.

    Args:
        stream: whose text it takes; or bytes, if it takes those.

    """

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - text or bytes
        self._stream = stream
        self._buffer: Lent | None = None
        self._number: int | None = None
        self.closed = False

    def is_of(self, stream: object) -> bool:
        """Say whether this is the stream that is lent."""
        return self._stream is stream

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    def __enter__(self) -> Lent:  # noqa: PYI034 - nobody derives from it
        return self

    def __exit__(self, *_: object) -> None:
        """Close it for the borrower."""
        self.close()

    @property
    def buffer(self) -> Lent:
        """What takes the bytes of the text, lent as well."""
        if self._buffer is None:
            self._buffer = Lent(self._stream.buffer)
        return self._buffer

    def fileno(self) -> int:
        """Return a file descriptor of the same file."""
        if self._number is None:
            self._number = os.dup(self._open().fileno())
        return self._number

    def write(self, text: Any) -> Any:  # noqa: ANN401 - as above
        """Write text, or bytes.

        Raises:
            ValueError: the borrower has closed it.

        """
        return self._open().write(text)

    def writelines(self, lines: Iterable[Any]) -> None:
        """Write lines."""
        self._open().writelines(lines)

    def flush(self) -> None:
        """Let what was written go out."""
        self._open().flush()

    def close(self) -> None:
        """Take no more text; the stream itself stays open."""
        if not self.closed:
            self._stream.flush()
            self.closed = True

    def detach(self) -> Lent:
        """Return the buffer; the owner keeps it, too."""
        self.flush()
        return self.buffer

    def _open(self) -> Any:  # noqa: ANN401 - as above
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        return self._stream


def lent(stream: Any) -> Any:  # noqa: ANN401 - what stands for a stream is none
    """Return a stream to lend; None where the process has none."""
    return None if stream is None else Lent(stream)


@contextmanager
def streams_lent() -> Iterator[None]:
    """Lend the output streams while the block runs, and take them back, whatever was put in their place."""
    own = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(lent, own)
    try:
        yield
    finally:
        flush_streams()
        sys.stdout, sys.stderr = own


def flush_streams() -> None:
    """Let out what was printed, as the end of a process does; whatever stands for a stream, and if it can."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
