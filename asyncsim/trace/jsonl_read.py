"""Reading a trace: line by line, and nothing in a line is believed until it was checked.

A trace can come from anybody. What is returned is a `Trace` that a recorder could have made: every
place lies inside its window, every operation has what its kind needs. Anything else is a
`TraceError` with the number of the line. Reading runs no code of the kernel.
"""

from __future__ import annotations

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from asyncsim.trace.errors import MisuseError, TraceError
from asyncsim.trace.event import Collective, Event, Footer, Trace
from asyncsim.trace.fields import object_in
from asyncsim.trace.format import FOOTER, FOOTER_LINE, HEADER_LINE, STEP_LINE
from asyncsim.trace.jsonl_header import read_header
from asyncsim.trace.jsonl_step import Steps
from asyncsim.trace.packed import Unpacking, open_for_reading
from asyncsim.trace.strict import BadFieldError, integer_in, parse_json, shown

if TYPE_CHECKING:
    from asyncsim.trace.event import Header

MAX_LINE = 1 << 24
"""A longer line is refused before it is held in memory: characters, the newline included."""
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
    return survey_trace(source, partial=partial, name=name).trace


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """A trace, and how much of its file it is.

    Args:
        trace: what was read; its footer is None if the run was broken off.
        lines: how many whole lines were read, the header's included.
        cut: why that is not the whole trace, as a clause; empty if it is.

    """

    trace: Trace
    lines: int
    cut: str


def survey_trace(
    source: TextIO | str | os.PathLike[str],
    *,
    partial: bool = True,
    elsewhere: bool = False,
    name: str | None = None,
) -> Survey:
    """Read a trace, and say how far it is whole.

    Args:
        source: a text stream, or a path.
        partial: a run that was broken off is read up to its last whole line.
        elsewhere: a trace that was recorded elsewhere is read too. Its events may have no numbers.
        name: what errors call the source; by default the path, or "trace".

    Raises:
        TraceError: it is no trace, or a damaged one.
        MisuseError: it ends in ``.zst``, and zstandard is not installed.
        OSError: the file cannot be opened.

    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source) if name is None else name
        stream, unpacking = open_for_reading(Path(source))
        with stream:
            return _Reader(stream, name, unpacking, partial=partial, elsewhere=elsewhere).read()
    return _Reader(source, "trace" if name is None else name, None, partial=partial, elsewhere=elsewhere).read()


class _Reader:
    def __init__(
        self, stream: TextIO, name: str, unpacking: Unpacking | None, *, partial: bool, elsewhere: bool
    ) -> None:
        self._stream = stream
        self._name = name
        self._unpacking = unpacking
        self._partial = partial
        self._elsewhere = elsewhere
        self._number = 0
        self._whole = True  # the line ended in a newline
        self._cut = ""
        self._numbered: bool | None = None  # a trace recorded elsewhere: whether its steps have numbers
        self._crc: int | None = 0  # None: this trace has none

    def read(self) -> Survey:
        try:
            trace = self._read()
            return Survey(trace, self._number, self._cut)
        except (BadFieldError, MisuseError) as error:
            if not self._whole and not isinstance(error, MisuseError):
                raise self._error(f"truncated: the last line is not whole ({error})") from None
            raise self._error(str(error)) from None

    def _read(self) -> Trace:
        line = self._next_line()
        if line is None:
            self._number = 1
            raise BadFieldError("empty: a trace begins with its header")
        events: list[Event] = []
        first = self._fields(line, HEADER_LINE)
        del first["event"]
        trace = Trace(read_header(first), events)
        foreign = bool(trace.header.recorded)
        if foreign and not self._elsewhere:
            raise BadFieldError("recorded elsewhere: there is no schedule to follow; asyncsim explain analyses it")
        steps = Steps(trace.header)
        while (line := self._next_line()) is not None:
            try:
                fields = self._fields(line, STEP_LINE, FOOTER_LINE)
            except BadFieldError:
                if self._partial and not self._whole:
                    self._number -= 1
                    self._cut = "its last line is not whole"
                    return trace
                raise
            if trace.footer is not None:
                raise BadFieldError("content after the footer")
            if fields.pop("event") == STEP_LINE:
                number = self._step_number(fields, len(events)) if foreign else len(events)
                events.append(steps.read(fields, number))
            else:
                trace.footer = _footer(fields, steps, trace)
        if trace.footer is None:
            if not self._partial:
                raise BadFieldError("truncated: the trace ends without a footer")
            self._cut = self._cut or "it has no footer"
        return trace

    def _step_number(self, fields: dict[str, Any], due: int) -> int | None:
        """Return the number that a step has; None where the steps of this trace have none: all or nobody."""
        if self._numbered is None:
            self._numbered = "step" in fields
        if not self._numbered and "step" in fields:
            raise BadFieldError("a number of a step, though the steps before have none")
        return due if self._numbered else None

    def _next_line(self) -> str | None:
        self._number += 1
        try:
            line = self._stream.readline(MAX_LINE)
        except UnicodeDecodeError:
            raise BadFieldError("bytes that are no text") from None
        if not line:
            self._number -= 1
            self._check_unpacked()
            return None
        self._whole = line.endswith("\n")
        if not self._whole and self._unpacking is not None and self._unpacking.fault and not self._unpacking.cut:
            self._whole = True  # a fault of its own, not one of truncation
            raise BadFieldError(self._unpacking.fault)
        if not self._whole and len(line) == MAX_LINE:
            self._whole = True  # a fault of its own, not one of truncation
            raise BadFieldError(f"the line is longer than {MAX_LINE} characters")
        if not line.isascii() and any("\ud800" <= sign <= "\udfff" for sign in line):
            raise BadFieldError("bytes that are no UTF-8")
        return line.rstrip("\r\n")

    def _check_unpacked(self) -> None:
        """Tell the end of a compressed file from where it is damaged."""
        if self._unpacking is not None and self._unpacking.fault:
            if not (self._partial and self._unpacking.cut):
                self._number += 1
                raise BadFieldError(self._unpacking.fault)
            self._cut = "its compressed data ends too early"

    def _fields(self, line: str, *kinds: str) -> dict[str, Any]:
        """Check the sum of a line and what kind it is."""
        fields = object_in(parse_json(self._unchained(line)), "the line")
        kind = fields.get("event")
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


def _footer(line: dict[str, Any], steps: Steps, trace: Trace) -> Footer:
    """Return the footer of a trace whose steps were all read."""
    header = trace.header
    made = FOOTER.read(line, elsewhere=bool(header.recorded))
    if made["steps"] not in {None, len(trace.events)}:
        raise BadFieldError(f"the footer counts {made['steps']} steps; the trace has {len(trace.events)}")
    outputs = [list(row) for row in made["outputs"]]
    if outputs and len(outputs) != header.calls:
        raise BadFieldError(f"'outputs' of {len(outputs)} calls; the run makes {header.calls}")
    for row in outputs:
        if len(row) != header.ranks:
            raise BadFieldError(f"{len(row)} outputs of a call; there are {header.ranks} ranks")
    pending = [steps.read(item, None, pending=True) for item in made["pending"]]
    collectives = [_collective(each, steps, header) for each in made["collectives"]]
    return Footer(made["ending"], outputs, pending, made["verdict"] or None, list(made["findings"]), collectives)


def _collective(made: dict[str, Any], steps: Steps, header: Header) -> Collective:
    actor, rank = steps.task(made["actor"]), made["rank"]
    members = made["members"] = tuple(integer_in(each, "a member", 0, header.ranks - 1) for each in made["members"])
    if rank != actor.rank or rank not in members:
        raise BadFieldError(
            f"actor {actor.name} is of rank {actor.rank}, and calls a collective as {rank} of {members}"
        )
    integer_in(made["call"], "'call'", 0, header.calls - 1)
    return Collective(**{**made, "facts": tuple(dict(made["facts"]).items())})
