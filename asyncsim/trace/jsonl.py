"""Traces as JSON Lines: a header, one line a step, a footer. This file writes; `jsonl_read` reads.

A step has ``step rank actor call op`` and, where they are not empty, ``phase``, ``at`` (source lines),
``unwritten`` and ``time`` (virtual, in seconds). The rest depends on ``op``:

    load remote_load poll        one access, ``value``
    store remote_store           one access, ``value``
    get put                      a source (none for a private array) and a target; ``value``, ``late``
    put_signal                   as a put; ``how cell amount have`` of its signal
    notify                       ``how cell value have``, ``relaxed``; ``link`` is "stores" where it is ordered
                                 after its actor's stores alone
    wait test                    ``how cell need have``, for a wait ``consume``
    start join                   ``link``: the stream
    sync                         ``link``: the meeting, one round of a barrier; ``parties``
    fence quiet                  nothing; ``link`` of a quiet is "rank" where it is for all streams of the rank
    fetch land                   one access, ``value``; or as a notify. ``link`` is "local" where a local
                                 store becomes visible to the peers, and "queued" where a signal comes
                                 behind a non-blocking copy, so that its own actor sees it no earlier, either

Actors are called ``2`` (rank 2), ``2.1`` (the first stream it started), ``2>7`` (the wire with the
landing of its operation 7, counted from 0; ``2>7.1`` carries the second piece of its tile, ``2>7s``
the signal of a put with signal). Only the ranks stand in the header. A stream is first named by
the step that starts it; which wires an operation leaves follows from the memory model, and
`asyncsim.trace.landing` says how. An access is ``window owner region mode``; on a wire that carries one
piece of a tile also ``piece``: from which to which element, in row-major order.

Memory of a group names it (``group``), and the header's ``groups`` say which ranks, in the numbers of the
world, its members are. An owner is always a rank of the world.

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
from typing import TYPE_CHECKING, Any, TextIO
from uuid import uuid4

from asyncsim.trace.declare import WORLD, Window
from asyncsim.trace.jsonl_header import FORMAT
from asyncsim.trace.jsonl_read import FOOTER, HEADER, STEP, read_trace
from asyncsim.trace.kinds import KINDS
from asyncsim.trace.packed import open_for_writing
from asyncsim.trace.strict import json_text
from asyncsim.trace.values import dtype_name, encode_data, encode_number

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    import structlog

    from asyncsim.trace.event import Collective, Event, Footer, Header, Trace
    from asyncsim.trace.region import Access
    from asyncsim.trace.world import World

__all__ = ["FORMAT", "TraceWriter", "read_trace", "write_trace"]


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
        self._log.line(HEADER, **header_fields(header))

    def step(self, event: Event) -> None:
        """Write the line of one step."""
        self._log.line(STEP, step=self._steps, **step_fields(event))
        self._steps += 1

    def finish(self, footer: Footer) -> None:
        """Write the footer, after which nothing may come."""
        self._log.line(FOOTER, **_footer(footer, self._steps))


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


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is empty: None, false, and empty texts and lists. Zero stays."""
    return {key: value for key, value in fields.items() if value not in (None, "", [], ()) and value is not False}


def header_fields(header: Header) -> dict[str, Any]:
    """Return the fields of a header, in their order."""
    world = header.world
    return {
        "format": FORMAT,
        "asyncsim": header.version,
        "kernel": header.kernel,
        "source": header.source,
        "ranks": world.ranks,
        "calls": header.calls,
        "memory": header.memory,
        "seed": header.seed,
        "declarations": declarations(world),
        "groups": groups(world),
        "actors": [{"actor": actor.name, "rank": actor.rank} for actor in world.actors],
        "edits": list(header.edits),
        "scheduler": header.scheduler,
        **_filled({"recorded": header.recorded}),
    }


def groups(world: World) -> list[dict[str, Any]]:
    """Return the groups that own memory as JSON objects, in the order in which the declarations name them."""
    layouts = [layout for declared in world.memory if (layout := world.layouts[declared.name]).group != WORLD]
    return [
        {"name": name, "ranks": list(members)} for name, members in {at.group: at.members for at in layouts}.items()
    ]


def declarations(world: World) -> list[dict[str, Any]]:
    """Return the windows and signals of a world as JSON objects, in the order in which a kernel takes them."""
    made = []
    for declared in world.memory:
        layout = world.layouts[declared.name]
        place = {"shape": list(layout.shape), "dtype": dtype_name(layout.dtype)}
        group = {} if layout.group == WORLD else {"group": layout.group}
        if isinstance(declared, Window):
            dirty = declared.dirty if declared.dirty in (None, "random") else encode_number(declared.dirty)
            extras = {} if dirty is None else {"dirty": dirty}  # dirty=0 and False are said, not left out
            extras |= _filled({"over": declared.over})
            made.append(
                {"window": declared.name, **place, **_filled({"initialised": declared.initialised}), **extras, **group}
            )
        else:
            flags = _filled({"wrap": declared.wrap, "self_cleaning": declared.self_cleaning})
            made.append({"signal": declared.name, **place, "start": int(declared.start), **flags, **group})
    return made


def step_fields(event: Event) -> dict[str, Any]:
    """Return the fields of a step, or of an operation that was pending at the end."""
    op = event.op
    cell = op.cell
    amount = KINDS[op.kind].amount if cell is not None or not op.accesses else ""
    value: Any = None
    if amount == "value":
        value = op.amount
    elif event.data is not None:
        value = encode_data(event.data, op.accesses[-1].region.dtype)
    fields = {
        "rank": op.actor.rank,
        "actor": op.actor.name,
        "call": event.call,
        "op": op.kind,
        "link": op.link,
        "parties": op.amount if amount == "parties" else None,
        "how": op.how,
        "accesses": [_access(access) for access in op.accesses],
        "cell": None if cell is None else {"signal": cell.signal, "owner": cell.owner, "index": list(cell.index)},
    }
    rest = {
        "need": op.amount if amount == "need" else None,
        "amount": op.amount if amount == "amount" else None,
        "have": event.have,
        "consume": op.consume,
        "late": op.late,
        "relaxed": op.relaxed,
        "phase": event.phase,
        "at": list(event.at),
        "unwritten": event.unwritten,
        "time": event.time,
    }
    # A value may be an empty list: a tile without elements. That is not the same as no value.
    return {**_filled(fields), **({} if value is None else {"value": value}), **_filled(rest)}


def _access(access: Access) -> dict[str, Any]:
    region = access.region
    places = [[at.start, at.stop, at.step] if isinstance(at, slice) else at for at in region.index]
    made = {"window": region.window, "owner": region.owner, "region": places, "mode": access.mode}
    if access.atomic and access.mode != "add":  # an add always is
        made["atomic"] = True
    return made if region.part is None else {**made, "piece": list(region.part)}


def _collective(said: Collective) -> dict[str, Any]:
    fields = {"actor": said.actor, "rank": said.rank, "group": said.group, "members": list(said.members)}
    rest = {"call": said.call, "name": said.name, "facts": dict(said.facts), "at": list(said.at)}
    return {**fields, **{key: value for key, value in rest.items() if value not in ({}, [])}}


def _footer(footer: Footer, steps: int) -> dict[str, Any]:
    return {
        "ending": footer.ending,
        "steps": steps,
        **_filled(
            {
                "outputs": footer.outputs,
                "pending": [step_fields(event) for event in footer.pending],
                "verdict": footer.verdict,
                "findings": footer.findings,
                "collectives": [_collective(said) for said in footer.collectives],
            }
        ),
    }
