"""The journal of an exploration: what was done and found, so that it can be continued.

JSON Lines, only ever appended to, each line on the disk before the next. Every line opens with the
CRC-32 of the rest of it. The first says what is explored; the others hold a shard each (schedules that
were run, and what they showed), or a failure that a worker has just found, while its shard is not done.
A line that was cut off at the end, by a crash, is dropped; damage anywhere else is an error.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.checking.search.shard import FAILURE, Shard
from asyncsim.trace.errors import MisuseError, TraceError
from asyncsim.trace.fields import COUNT, TEXT, Field, Object, object_in
from asyncsim.trace.strict import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.machine.case import Case

FORMAT = "asyncsim exploration 1"
_FOUND = Object("the line", (Field("found", FAILURE), Field("schedule", COUNT), Field("key", TEXT)), more=True)
_CRC = len('{"crc":"01234567",')


class Journal:
    """A journal on disk, opened to be continued.

    Args:
        path: the file; it is made if there is none.
        subject: what is explored: the names of its facts, and the facts. They must be those of the file.

    Attributes:
        shards: what was done before, in the order of the plan, each schedule at most once.

    Raises:
        MisuseError: the file is the journal of something else; the message says what differs.
        TraceError: the file is damaged, or no journal.

    """

    def __init__(self, path: Path | str, subject: Mapping[str, Any]) -> None:
        """Read what is there; write the first line if nothing is."""
        self.path = Path(path)
        self._found: list[Shard] = []
        shards: list[Shard] = []
        lines, whole = _lines(self.path)
        for number, made in enumerate(lines, 1):
            try:
                self._take(made, subject, shards, first=number == 1)
            except ValueError as error:
                raise TraceError(f"not a line of a journal ({error})", line=number, source=str(self.path)) from None
        self.shards = _disjoint(shards)
        self._done = [(shard.start, shard.stop) for shard in shards]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        os.ftruncate(self._file, whole)
        if not lines:
            self._write({"journal": FORMAT, "subject": dict(subject)})

    def _take(self, made: Mapping[str, Any], subject: Mapping[str, Any], shards: list[Shard], *, first: bool) -> None:
        if first:
            if made.get("journal") != FORMAT:
                raise MisuseError(f"{self.path} is no journal of an exploration; --resume makes one where no file is")
            _check_subject(self.path, object_in(made.get("subject"), "'subject'"), subject)
        elif "found" in made:
            noted = _FOUND.read(made)
            key = noted["key"]
            self._found.append(Shard(noted["schedule"], 0, times={key: 1}, first={key: noted["found"]}))
        else:
            shard = Shard.of_json(made.get("part"))
            if subject.get("behaviours") and len(shard.behaviours) != shard.judged:
                raise ValueError(f"{shard.judged} schedules with {len(shard.behaviours)} behaviours")
            shards.append(shard)

    def add(self, shard: Shard) -> None:
        """Note a part; it is on the disk when this returns."""
        if shard.count:
            self._write({"part": shard.to_json()})
            self._done.append((shard.start, shard.stop))

    def unfinished_failures(self) -> list[Shard]:
        """Return what was found by schedules whose shards were never done: their process was killed."""
        return [shard for shard in self._found if not any(start <= shard.start < stop for start, stop in self._done)]

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _write(self, made: Mapping[str, Any]) -> None:
        os.write(self._file, _line(made))
        os.fsync(self._file)


def new_journal_path(folder: Path, case: Case) -> Path:
    """Return where in a folder of witnesses a new journal of this case is kept; an old one is gone then.

    Args:
        folder: of witnesses.
        case: its kernel, P, calls and memory model make the file's name.

    """
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", f"{case.kernel.ref}-P{case.ranks}-calls{case.calls}-{case.memory}")
    path = folder / f"{name}.journal"
    path.unlink(missing_ok=True)
    return path


def append_failures(path: str, shard: Shard, known: Shard) -> None:
    """Append what a schedule was the first to show to the journal that another process keeps, at once.

    One write of a file opened for appending: lines of several processes do not mix. Nothing is done
    where there is no such file, on another machine: there, what is found travels with its shard alone.

    Args:
        path: of the journal.
        shard: of one schedule.
        known: the shard of those before it.

    """
    new = [key for key in shard.first if key not in known.first]
    if not new:
        return
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND)
    except FileNotFoundError:
        return
    try:
        for key in new:
            os.write(file, _line({"found": shard.first[key].to_json(), "schedule": shard.start, "key": key}))
        os.fsync(file)
    finally:
        os.close(file)


def _line(made: Mapping[str, Any]) -> bytes:
    rest = json.dumps(made, separators=(",", ":"), ensure_ascii=True)[1:]
    return f'{{"crc":"{zlib.crc32(rest.encode()):08x}",{rest}\n'.encode()


def _lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of a file, and how many bytes of it are good; a last line that was cut off is not."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    made: list[dict[str, Any]] = []
    at = 0
    for number, line in enumerate(data.splitlines(keepends=True), 1):
        rest = line[_CRC:].removesuffix(b"\n")
        good = line.endswith(b"\n") and line[:_CRC] == f'{{"crc":"{zlib.crc32(rest):08x}",'.encode()
        if not good:
            if at + len(line) == len(data) and number > 1:
                break
            if number == 1:
                raise TraceError("not the first line of a journal; it is left as it is", line=1, source=str(path))
            raise TraceError("damaged: its checksum does not fit", line=number, source=str(path))
        try:
            made.append(parse_json(line.decode()))
        except ValueError as error:
            raise TraceError(f"not a line of a journal ({error})", line=number, source=str(path)) from None
        at += len(line)
    return made, at


def _check_subject(path: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    different = [
        f"{name} {theirs.get(name)!r} there, {value!r} here"
        for name, value in ours.items()
        if theirs.get(name) != value
    ]
    if different:
        raise MisuseError(f"{path} is the journal of another exploration: {'; '.join(different)}; name another file")


def _disjoint(shards: list[Shard]) -> list[Shard]:
    """Return the shards in order, without those that repeat schedules of another one."""
    kept: list[Shard] = []
    for shard in sorted(shards, key=lambda shard: shard.start):
        if not kept or shard.start >= kept[-1].stop:
            kept.append(shard)
    return kept
