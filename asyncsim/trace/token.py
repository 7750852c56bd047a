"""A run as one short token, which a failing test can print and `replay` takes back.

``as1.`` and, in base64url without padding, the compressed text of two lines: what was run, as JSON,
and the schedule, run-length coded: ``0*5,1,0*2`` are five choices of the first actor named, one of
the second, two more of the first. Choices are actor names, not places in a list of ready ones, so a
token keeps its meaning when the engine changes.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import KW_ONLY, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError, TraceError
from asyncsim.trace.event import ENDINGS, STEP_LIMIT
from asyncsim.trace.fields import COUNT, TEXT, Field, Object, choice, list_of
from asyncsim.trace.format import HEADER, MEMORY
from asyncsim.trace.jsonl_read import read_trace
from asyncsim.trace.strict import BadFieldError, json_text, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from asyncsim.trace.event import Header, Trace

PREFIX = "as1."
"""Says that it is a token, and of which version."""
MAX_BYTES = 64 << 20
"""A token that unpacks to more is refused."""
MAX_CHOICES = 10_000_000
"""A longer schedule is refused."""

_SHARED = ("kernel", "source", "ranks", "calls", "memory", "seed", "edits")
_HEAD = Object(
    "the token",
    (
        *(replace(each, type=TEXT) if each.type is MEMORY else each for each in HEADER.fields if each.name in _SHARED),
        Field("actors", list_of(TEXT, "an actor"), "those that took a step", default=(), kept=True),
        Field("ending", choice(*ENDINGS), "how the run ended", default=None),
        Field("limit", COUNT, "after how many steps it had to end", default=None),
    ),
)
_MAX_HEAD = 1 << 20
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*\Z", re.ASCII)
_RUN = re.compile(r"(\d{1,9})(?:\*(\d{1,9}))?(?:,(?=.)|\Z)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """What a token says: enough to do the run again.

    Args:
        kernel: ``module:name``, or ``path/to/file.py:name``.
        source: the hash of the kernel's source file.
        ranks: P.
        calls: back to back.
        memory: the memory model.
        seed: of the inputs.
        choices: the actors by name, step by step.
        edits: what was removed from or added to the kernel.
        ending: how the run ended; None if that is not known.
        limit: after how many steps it had to end, if its ending is that it did not, and the case said so itself.

    """

    _: KW_ONLY
    kernel: str
    source: str
    ranks: int
    calls: int
    memory: str
    seed: int
    choices: tuple[str, ...]
    edits: tuple[str, ...] = ()
    ending: str | None = None
    limit: int | None = None

    @classmethod
    def of(cls, header: Header, choices: Sequence[str], *, ending: str | None = None) -> Token:
        """Return the token of a run, by the header that its trace has or would have.

        Args:
            header: of the run.
            choices: the name of the actor that took each step.
            ending: how the run ended; a run that was stopped by its limit of steps keeps that limit.

        """
        return cls(
            kernel=header.kernel, source=header.source, ranks=header.world.ranks, calls=header.calls,
            memory=header.memory, seed=header.seed, choices=tuple(choices), edits=tuple(header.edits), ending=ending,
            limit=header.max_steps if ending == STEP_LIMIT else None,
        )  # fmt: skip

    @property
    def header(self) -> Token:
        """Itself: it says what a trace says in its header."""
        return self


def read_record(text: str, folder: Path | str = "") -> Token | Trace:
    """Read a recorded run: a token, or a trace file.

    Args:
        text: the token, or the path of the file.
        folder: what the path starts from; by default the working directory.

    Raises:
        MisuseError: there is no such file.
        TraceError: it cannot be read.

    """
    if text.startswith(PREFIX):
        return decode(text)
    path = Path(folder, text)
    if not path.is_file():
        raise MisuseError(f"there is no trace file {text!r}; a token begins with {PREFIX!r}")
    return read_trace(path)


def encode(token: Token) -> str:
    """Return the token as text: letters, digits, ``-``, ``_`` and one dot."""
    numbers: dict[str, int] = {}
    runs = []
    for name, same in groupby(token.choices):
        number = numbers.setdefault(name, len(numbers))
        count = sum(1 for _ in same)
        runs.append(f"{number}*{count}" if count > 1 else str(number))
    head = _HEAD.write(token, actors=list(numbers))
    text = f"{json_text(head)}\n{','.join(runs)}"
    return PREFIX + base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).rstrip(b"=").decode()


def decode(text: str) -> Token:
    """Return what a token says.

    Raises:
        TraceError: it is no token, or a damaged one; nothing in it is run, and it is never unpacked
            beyond `MAX_BYTES`.

    """
    try:
        return _decode(text.strip())
    except BadFieldError as error:
        raise TraceError(str(error), source="token") from None


def _decode(text: str) -> Token:
    if not text.startswith(PREFIX):
        raise BadFieldError(f"it does not begin with {PREFIX!r}")
    head, newline, runs = _unpacked(text.removeprefix(PREFIX)).partition("\n")
    if not newline or len(head) > _MAX_HEAD:
        raise BadFieldError("damaged: its first line is not whole")
    made = _HEAD.read(parse_json(head))
    return Token(choices=tuple(_choices(runs, made.pop("actors"))), **made)


def _unpacked(text: str) -> str:
    """Return the text that was packed, whole and not too large."""
    if not _ALPHABET.match(text):
        raise BadFieldError("damaged: it holds characters that no token has")
    if len(text) % 4 == 1:
        raise BadFieldError("truncated, or a character too long")
    packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    unpacker = zlib.decompressobj()
    try:
        raw = unpacker.decompress(packed, MAX_BYTES + 1)
    except zlib.error:
        raise BadFieldError("damaged: it cannot be unpacked") from None
    if len(raw) > MAX_BYTES:
        raise BadFieldError(f"it unpacks to more than {MAX_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise BadFieldError("truncated")
    if unpacker.unused_data:
        raise BadFieldError("damaged: something follows its end")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadFieldError("damaged: what it packs is no text") from None


def _choices(runs: str, actors: tuple[str, ...]) -> Iterator[str]:
    """Unroll the schedule, piece by piece: it can be much longer than its text."""
    at = total = 0
    while at < len(runs):
        run = _RUN.match(runs, at)
        number = int(run[1]) if run is not None else len(actors)
        if run is None or number >= len(actors):
            raise BadFieldError(f"damaged: {runs[at : at + 20]!r} is no part of a schedule of {len(actors)} actors")
        count = int(run[2] or 1)
        total += count
        if not count or total > MAX_CHOICES:
            raise BadFieldError(f"a schedule of more than {MAX_CHOICES} choices, or an empty run in it")
        for _ in range(count):
            yield actors[number]
        at = run.end()
