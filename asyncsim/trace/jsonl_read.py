"""Reading a trace: line by line, and nothing in a line is believed until it was checked.

A trace can come from anybody. What is returned is a `Trace` that a recorder could have made: every
place lies inside its window, every operation has what its kind needs. Anything else is a
`TraceError` with the number of the line. Reading runs no code of the kernel.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from asyncsim.trace.declare import Group, Signal, Window
from asyncsim.trace.edit import check_added, edits_of
from asyncsim.trace.errors import MisuseError, TraceError
from asyncsim.trace.event import Header, Trace
from asyncsim.trace.jsonl_footer import read_footer
from asyncsim.trace.jsonl_step import Steps
from asyncsim.trace.late import MODELS, model_of
from asyncsim.trace.strict import (
    MAX_CALLS,
    MAX_RANKS,
    BadFieldError,
    Fields,
    integer_in,
    list_in,
    parse_json,
    shown,
    text_in,
)
from asyncsim.trace.values import DTYPES, decode_number, dtype_named, hex_in
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from asyncsim.trace.declare import Declaration

FORMAT = 1
"""The version of the format. A reader reads its own version only."""
HEADER, STEP, FOOTER = "header", "step", "footer"
MAX_LINE = 1 << 24
"""A longer line is refused before it is held in memory: characters, the newline included."""
MAX_WINDOW = 1 << 48
"""Bytes of one window, at all ranks."""
MAX_CELLS = 1 << 24
"""Cells of one signal, at all ranks: an analysis keeps a number for each."""

_MEMORY = re.compile(r"[a-z]{1,20}(:atom=[1-9][0-9]{0,17})?\Z")
_CRC = re.compile(r',"crc":"([0-9a-f]{8})"\}\Z')


def read_trace(source: TextIO | str | os.PathLike[str], *, partial: bool = False, name: str | None = None) -> Trace:
    """Read a trace back.

    Args:
        source: a text stream, or a path.
        partial: a run that was broken off is read up to its last whole line; its footer is None.
        name: what errors call the source; by default the path, or "trace".

    Raises:
        TraceError: it is no trace, or a damaged one.
        OSError: the file cannot be opened.

    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source) if name is None else name
        # Bytes that are no UTF-8 become lone surrogates, so that their line can be named.
        with Path(source).open(encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            return _Reader(stream, name, partial=partial).read()
    return _Reader(source, "trace" if name is None else name, partial=partial).read()


class _Reader:
    def __init__(self, stream: TextIO, name: str, *, partial: bool) -> None:
        self._stream = stream
        self._name = name
        self._partial = partial
        self._number = 0
        self._whole = True  # the line ended in a newline
        self._crc: int | None = 0  # None: this trace has none

    def read(self) -> Trace:
        try:
            return self._read()
        except (BadFieldError, MisuseError) as error:
            if not self._whole and not isinstance(error, MisuseError):
                raise self._error(f"truncated: the last line is not whole ({error})") from None
            raise self._error(str(error)) from None

    def _read(self) -> Trace:
        line = self._next_line()
        if line is None:
            self._number = 1
            raise BadFieldError("empty: a trace begins with its header")
        trace = Trace(_header(self._fields(line, HEADER)))
        steps = Steps(trace.header)
        while (line := self._next_line()) is not None:
            try:
                fields = self._fields(line, STEP, FOOTER)
            except BadFieldError:
                if self._partial and not self._whole:
                    return trace
                raise
            if trace.footer is not None:
                raise BadFieldError("content after the footer")
            if fields.take("event") == STEP:
                trace.events.append(steps.read(fields, len(trace.events)))
            else:
                trace.footer = read_footer(fields, steps, trace)
        if trace.footer is None and not self._partial:
            raise BadFieldError("truncated: the trace ends without a footer")
        return trace

    def _next_line(self) -> str | None:
        self._number += 1
        try:
            line = self._stream.readline(MAX_LINE)
        except UnicodeDecodeError:
            raise BadFieldError("bytes that are no text") from None
        if not line:
            self._number -= 1
            return None
        self._whole = line.endswith("\n")
        if not self._whole and len(line) == MAX_LINE:
            self._whole = True  # a fault of its own, not one of truncation
            raise BadFieldError(f"the line is longer than {MAX_LINE} characters")
        if not line.isascii() and any("\ud800" <= sign <= "\udfff" for sign in line):
            raise BadFieldError("bytes that are no UTF-8")
        return line.rstrip("\r\n")

    def _fields(self, line: str, *kinds: str) -> Fields:
        """Check the sum of a line and what kind it is."""
        value = parse_json(self._unchained(line))
        fields = Fields(value, "the line")
        kind = value.get("event")
        if kind not in kinds:
            raise BadFieldError(f"a line of the kind {shown(kind)}, where a {' or '.join(kinds)} belongs")
        return fields

    def _unchained(self, line: str) -> str:
        """Return a line without its crc, which is checked."""
        found = _CRC.search(line)
        first = self._number == 1
        if found is None:
            if not first and self._crc is not None:
                raise BadFieldError("no crc, though the lines before have one")
            self._crc = None
            return line
        if not first and self._crc is None:
            raise BadFieldError("a crc, though the lines before have none")
        body = f"{line[: found.start()]}}}"
        self._crc = zlib.crc32(body.encode(), self._crc or 0)
        if self._crc != int(found[1], 16):
            raise BadFieldError("the crc does not fit: this line was changed, or one before it lost or moved")
        return body

    def _error(self, reason: str) -> TraceError:
        return TraceError(reason, line=self._number, source=self._name)


def _header(fields: Fields) -> Header:
    fields.take("event")
    version = fields.take("format")
    if type(version) is not int or version != FORMAT:
        raise BadFieldError(f"format {shown(version)}; this asyncsim reads format {FORMAT}")
    asyncsim = fields.text("asyncsim")
    kernel = fields.text("kernel")
    source = fields.text("source")
    if source:
        hex_in(source, "'source'")
    ranks = fields.integer("ranks", 1, MAX_RANKS)
    calls = fields.integer("calls", 1, MAX_CALLS)
    memory = fields.text("memory")
    if not _MEMORY.match(memory):  # before anybody makes a number of it
        raise BadFieldError(f"'memory' is {shown(memory)}; the memory models are {', '.join(MODELS)}")
    model_of(memory)
    seed = fields.integer("seed", 0)
    groups = _groups(fields.items("groups"), ranks)
    declared = [_declaration(item, ranks, groups) for item in fields.items("declarations")]
    unused = set(groups) - {each.group.name for each in declared if each.group is not None}
    if unused:
        raise BadFieldError(f"group {shown(min(unused))} owns nothing; only groups of windows and signals are listed")
    # Before the world is made, so that a large number alone costs nothing.
    _check_actors(fields.items("actors"), ranks)
    edits = tuple(text_in(edit, "an edit") for edit in fields.items("edits"))
    scheduler = fields.text("scheduler")
    fields.end()
    world = World(ranks, declared)
    check_added(edits_of(edits), world)
    return Header(kernel, source, world, calls, memory, seed, scheduler, edits, asyncsim)


def _check_actors(actors: list[Any], ranks: int) -> None:
    if len(actors) != ranks:
        raise BadFieldError(f"{len(actors)} actors for {ranks} ranks; every rank is one")
    for rank, item in enumerate(actors):
        fields = Fields(item, "an actor")
        if fields.text("actor") != str(rank) or fields.integer("rank", 0) != rank:
            raise BadFieldError(f"actor {shown(item)}; the actor of rank {rank} is called '{rank}'")
        fields.end()


def _groups(items: list[Any], ranks: int) -> dict[str, Group]:
    """Read who belongs together; `Group` itself refuses a bad name, and members that are none."""
    groups: dict[str, Group] = {}
    for item in items:
        fields = Fields(item, "a group")
        name = fields.text("name")
        members = [integer_in(rank, "a member", 0, ranks - 1) for rank in list_in(fields.take("ranks"), "'ranks'")]
        fields.end()
        if name in groups:
            raise BadFieldError(f"two groups are called {shown(name)}")
        groups[name] = Group(name, tuple(members))
    return groups


def _group(fields: Fields, groups: dict[str, Group]) -> Group | None:
    if "group" not in fields:
        return None
    name = fields.text("group")
    if name not in groups:
        raise BadFieldError(f"the header knows no group {shown(name)}")
    return groups[name]


def _declaration(item: Any, ranks: int, groups: dict[str, Group]) -> Declaration:  # noqa: ANN401 - any JSON value
    fields = Fields(item, "a declaration")
    is_window = "window" in fields
    name = fields.text("window" if is_window else "signal")
    shape = tuple(integer_in(extent, "an extent", 0, 1 << 62) for extent in list_in(fields.take("shape"), "'shape'"))
    dtype = dtype_named(fields.choice("dtype", DTYPES))
    size = math.prod(shape) * ranks * (dtype.itemsize if is_window else 1)
    limit = MAX_WINDOW if is_window else MAX_CELLS
    if size > limit:
        raise BadFieldError(f"{shown(name)} has {size} {'bytes' if is_window else 'cells'}; at most {limit} are read")
    group = _group(fields, groups)
    declared: Declaration
    if is_window:
        dirty = fields.take("dirty", None)
        if dirty is not None and dirty != "random":
            dirty = decode_number(dirty, "'dirty'")
        declared = Window(name, shape, dtype, initialised=fields.flag("initialised"), dirty=dirty, group=group)
    else:
        start = fields.integer("start", -(1 << 63))
        wrap, cleaning = fields.flag("wrap"), fields.flag("self_cleaning")
        declared = Signal(name, shape, dtype, start=start, wrap=wrap, self_cleaning=cleaning, group=group)
    fields.end()
    return declared
