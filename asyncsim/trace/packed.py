"""Traces that are compressed by their ending: ``.gz`` by zlib, ``.zst`` by the optional package zstandard.

What is unpacked is bounded on its way: a few bytes of a file from somebody else can stand for
gigabytes, so they are unpacked in small pieces, and only as fast as lines are asked for. A file
that ends too early, or is damaged, gives its whole lines first; then `Unpacking.fault` says what is
wrong. The same text gives the same bytes: no name and no hour gets in.
"""

from __future__ import annotations

import importlib
import io
import os
import zlib
from typing import IO, TYPE_CHECKING, Any, Protocol, TextIO

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GZIP, ZSTANDARD = ".gz", ".zst"
MAX_UNPACKED = 1 << 30
"""How much a compressed trace may become, in bytes; a longer one must be unpacked by hand."""

_PIECE = 1 << 16
"""At most so many bytes are unpacked at once, by zlib."""
_SLICE = 1 << 8
"""So many compressed bytes are given to zstandard at once: three of them may stand for 128 KiB."""
_WINDOW = 1 << 25
"""How far back a zstandard file may refer: what its unpacking keeps in memory."""
_ZLIB_GZIP = 31
_LEVEL = 6
_ZST_LEVEL = 10


def open_for_reading(path: Path) -> tuple[TextIO, Unpacking | None]:
    """Open a trace, by its ending.

    Returns:
        The text, and what unpacks it; None for a plain file. Bytes that are no UTF-8 become lone
        surrogates, so that their line can be named.

    Raises:
        OSError: the file cannot be opened.
        MisuseError: it ends in ``.zst``, and zstandard is not installed.

    """
    if path.suffix not in (GZIP, ZSTANDARD):
        return path.open(encoding="utf-8", errors="surrogateescape", newline="\n"), None
    begin = _zst_decoder(path) if path.suffix == ZSTANDARD else _GzipDecoder
    unpacking = Unpacking(path.open("rb"), begin)
    buffered = io.BufferedReader(unpacking, _PIECE)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="\n"), unpacking


def open_for_writing(path: Path, *, ending: str | None = None, new: bool = False, live: bool = False) -> TextIO:
    """Open a trace for writing, compressed if its ending says so.

    Args:
        path: the file.
        ending: what is taken for its ending; by default its own.
        new: refuse to write over a file.
        live: a flush gets everything that was written into the file, at the price of its size.

    Raises:
        OSError: the file cannot be written.
        MisuseError: it ends in ``.zst``, and zstandard is not installed.

    """
    ending = path.suffix if ending is None else ending
    if ending not in (GZIP, ZSTANDARD):
        return path.open("x" if new else "w", encoding="ascii", newline="\n")
    coder: _Coder = _ZstCoder(_zstandard(path)) if ending == ZSTANDARD else _GzipCoder()
    packing = _Packing(path.open("xb" if new else "wb"), coder, live=live)
    return io.TextIOWrapper(io.BufferedWriter(packing, _PIECE), encoding="ascii", newline="\n")


class _Decoder(Protocol):
    """Unpacks one frame."""

    @property
    def over(self) -> bool: ...
    @property
    def rest(self) -> bytes: ...
    def feed(self, packed: bytes) -> bytes: ...


class Unpacking(io.RawIOBase):
    """The bytes of a compressed file; its end is also where it is damaged.

    Args:
        file: the compressed bytes; closed with this.
        begin: makes what unpacks one frame.

    `fault` says why the end is not the true one: empty if it is; `cut` if the file merely ends too early.
    """

    def __init__(self, file: IO[bytes], begin: Callable[[], _Decoder]) -> None:
        self.fault = ""
        self.cut = False
        self._file = file
        self._begin = begin
        self._decoder: _Decoder | None = None
        self._packed = b""
        self._ready = memoryview(b"")
        self._total = 0

    def readable(self) -> bool:
        """Say yes."""
        return True

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        """Unpack some bytes; none: the end, or a fault."""
        while not self._ready and not self.fault:
            if not self._unpack():
                break
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def _unpack(self) -> bool:
        """Unpack a piece; False at the end of the file."""
        if not self._packed:
            self._packed = self._file.read(_SLICE)
        if self._decoder is None:
            if not self._packed:
                return False
            self._decoder = self._begin()
        starved = not self._packed
        try:
            made = self._decoder.feed(self._packed)
        except Exception as error:  # noqa: BLE001 - zlib.error, or zstandard's, which may not be importable here
            self.fault = f"the compressed data is damaged ({error})"
            return False
        self._packed = self._decoder.rest
        if self._decoder.over:
            self._decoder = None
        elif starved and not made:
            self.fault, self.cut = "truncated: the compressed data ends too early", True
            return False
        self._total += len(made)
        if self._total > MAX_UNPACKED:
            self.fault = f"it unpacks to more than {MAX_UNPACKED} bytes"
            return False
        self._ready = memoryview(made)
        return True


class _GzipDecoder:
    """One member of a gzip file."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_ZLIB_GZIP)

    @property
    def over(self) -> bool:
        return self._zlib.eof

    @property
    def rest(self) -> bytes:
        return self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail

    def feed(self, packed: bytes) -> bytes:
        return self._zlib.decompress(packed, _PIECE)


class _ZstDecoder:
    """One frame of a zstandard file."""

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - an optional module
        self._zst = library.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    @property
    def over(self) -> bool:
        return bool(self._zst.eof)

    @property
    def rest(self) -> bytes:
        return bytes(self._zst.unused_data) if self._zst.eof else b""

    def feed(self, packed: bytes) -> bytes:
        return bytes(self._zst.decompress(packed))


def _zst_decoder(path: Path) -> Callable[[], _Decoder]:
    library = _zstandard(path)
    return lambda: _ZstDecoder(library)


class _Coder(Protocol):
    """Compresses one frame."""

    def feed(self, data: bytes) -> bytes: ...
    def flush(self) -> bytes: ...
    def finish(self) -> bytes: ...


class _GzipCoder:
    """A gzip member: zlib writes no name and the hour 0 into it."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(_LEVEL, zlib.DEFLATED, _ZLIB_GZIP)

    def feed(self, data: bytes) -> bytes:
        return self._zlib.compress(data)

    def flush(self) -> bytes:
        return self._zlib.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._zlib.flush()


class _ZstCoder:
    """A zstandard frame with its checksum."""

    def __init__(self, library: Any) -> None:  # noqa: ANN401 - an optional module
        self._library = library
        self._zst = library.ZstdCompressor(level=_ZST_LEVEL, write_checksum=True).compressobj()

    def feed(self, data: bytes) -> bytes:
        return bytes(self._zst.compress(data))

    def flush(self) -> bytes:
        return bytes(self._zst.flush(self._library.COMPRESSOBJ_FLUSH_BLOCK))

    def finish(self) -> bytes:
        return bytes(self._zst.flush())


class _Packing(io.RawIOBase):
    """A file that is compressed on its way.

    Interrupted in the middle of a piece, by Ctrl-C, it takes no more and is not finished: nobody knows how much of
    the piece went in, and the buffer above would send it once more. The file is then cut off, and its lines are right.
    """

    def __init__(self, file: IO[bytes], coder: _Coder, *, live: bool) -> None:
        self._file = file
        self._coder = coder
        self._live = live
        self._torn = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        size = len(data)  # now: no call, at which Ctrl-C could come, stands between the last line but one and the end
        if not self._torn:
            self._torn = True
            self._file.write(self._coder.feed(bytes(data)))
            if self._live:  # the buffer above hands on what it has when it is flushed, and does not say so
                self._file.write(self._coder.flush())
                self._file.flush()
            self._torn = False
        return size

    def close(self) -> None:
        if self.closed:
            return
        try:
            if not self._torn:
                self._file.write(self._coder.finish())
        finally:
            try:
                self._file.close()
            finally:
                super().close()  # also then: a buffer cannot be closed a second time


def _zstandard(path: Path) -> Any:  # noqa: ANN401 - an optional module
    """Return the package zstandard; by name, so that nothing needs it where it is missing."""
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise MisuseError(
            f"{os.fspath(path)} is compressed by zstandard, which is not installed: pip install 'asyncsim[zstd]'; "
            "or use a trace that ends in .jsonl or .jsonl.gz"
        ) from None
