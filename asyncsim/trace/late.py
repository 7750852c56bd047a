"""The memory models: what lands late.

Under ``sc`` an effect happens at its step, for everybody. Under ``ldst`` and ``nic`` a remote store,
a put, a notify and, in the eyes of peers, a local store *land* later. A landing is an operation of
its own; its actor is a *wire*, which nothing but this landing (and for a non-blocking copy the
fetch before it) ever uses.

    ldst   loads and stores over NVLink or PCIe peer mapping: an actor sees its own pending writes,
           and its writes to one place land in order. A put to oneself is a store.
    nic    puts through a network adapter (OpenSHMEM, NVSHMEM): neither holds, and a put to oneself goes
           through the adapter, too.

    gpu    words of synchronisation as PTX has them: values come to be as under ``sc``, but only a release that
           is acquired, by scopes that include each other, makes what was written before known to another actor.
           ``gpu:old=1#3,2#5~2`` says which reads return an older version; see `asyncsim.machine.versions`.

Either of the late models may tear: under ``ldst:atom=4`` a tile of more than four elements lands in pieces, each by
itself.

What each operation leaves to land, and in which order, is in `asyncsim.trace.landing`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from asyncsim.trace.columns import LATE, RELAXED, Columns, among
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.kinds import FENCING, PUTTING, QUIETING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncsim.trace.event import Event


@dataclass(frozen=True, slots=True)
class Model:
    """A memory model.

    Args:
        name: what the command line calls it.
        late: remote effects land later.
        forwarding: an actor sees its own pending writes.
        place_order: one actor's writes to one place land in the order in which they were issued.
        atom: a tile of more elements lands in pieces of so many, each by itself; None: whole.
        scoped: order and scope of an operation decide what happens before what.
        old: how many versions back a read goes, by actor and index; None: the run keeps no older versions.

    """

    name: str
    late: bool
    forwarding: bool
    place_order: bool
    atom: int | None = None
    scoped: bool = False
    old: Mapping[tuple[str, int], int] | None = None

    @property
    def adapter(self) -> bool:
        """Whether a network adapter makes the copies, not the actor itself."""
        return self.late and not self.forwarding


MODELS = {
    "sc": Model("sc", late=False, forwarding=True, place_order=True),
    "ldst": Model("ldst", late=True, forwarding=True, place_order=True),
    "nic": Model("nic", late=True, forwarding=False, place_order=False),
    "gpu": Model("gpu", late=False, forwarding=True, place_order=True, scoped=True),
}


OLD = "gpu:old"
OLD_READ = "([0-9]{1,5}([.]([0-9]{1,4}|[A-Za-z_][A-Za-z0-9_]*))*)#([0-9]{1,9})(~[1-9][0-9]{0,8})?"
_ATOM = re.compile(r"[1-9]\d{0,17}", re.ASCII)
"""Written as whoever reads it writes it: ``ldst:atom=04`` would be another text for the same model."""


def model_of(text: str) -> Model:
    """Return the memory model that a text names: ``sc``, ``nic``, ``ldst:atom=4``."""
    if isinstance(text, str) and is_with_old_reads(text):
        return replace(MODELS["gpu"], name=text, old=_old_reads(text))
    name, colon, atom = text.partition(":atom=") if isinstance(text, str) else (text, "", "")
    if name not in MODELS:
        raise MisuseError(f"memory={text!r}; the memory models are: {', '.join(MODELS)}")
    model = MODELS[name]
    if not colon:
        return model
    if not model.late or not _ATOM.fullmatch(atom):
        raise MisuseError(f"memory={text!r}; a model that is late lands tiles in pieces of at least one: ldst:atom=1")
    return replace(model, name=text, atom=int(atom))


def is_with_old_reads(text: str) -> bool:
    """Whether a memory model's text says which reads return older versions."""
    return text.partition("=")[0] == OLD


def with_old_reads(reads: Mapping[tuple[str, int], int]) -> str:
    """Return the text of ``gpu`` under which these reads return older versions.

    Args:
        reads: how many versions back, at least 1, by actor and index; none: older versions are kept all the same.

    """
    listed = [f"{actor}#{index}" + (f"~{back}" if back > 1 else "") for (actor, index), back in sorted(reads.items())]
    return OLD + ("=" + ",".join(listed) if listed else "")


def _old_reads(text: str) -> dict[tuple[str, int], int]:
    found: dict[tuple[str, int], int] = {}
    _, equals, listed = text.partition("=")
    for each in listed.split(",") if equals else ():
        read = re.fullmatch(OLD_READ, each)
        if read is None:
            raise MisuseError(f"memory={text!r}: {each!r} names no read; name operation 3 of actor 1 so: gpu:old=1#3")
        found[read[1], int(read[4])] = int((read[5] or "~1")[1:])
    return found


def models_said(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the memory models besides ``sc`` that the author's own words belong to, those of copies first.

    Put, put with signal, non-blocking and quiet are words of memory where writes land late: ``ldst`` and ``nic``. An
    order or a scope is a word of ``gpu``. A relaxed notify and a fence are words of both: of ``gpu`` where an order or
    a scope is said as well. Under ``sc`` all of them mean nothing. What a composite says inside is not its caller's
    word.

    Args:
        events: of one recorded run, under any model.

    """
    if isinstance(events, Columns):
        own = np.array([len(at) < 2 for _, at in events.wheres], bool)  # noqa: PLR2004 - a second line is a composite's
        steps = events.steps

        def said(kinds: frozenset[str], flags: int) -> bool:
            steps_said = among(kinds)[steps.kind] | (steps.flags & flags > 0)
            return bool(own[steps.where[steps_said]].any())

        copies, shared = said(_COPIES, LATE), said(FENCING, RELAXED)
        scoped = any(_says_scope(events[step]) for step in events.saying)
    else:
        ours = [event for event in events if len(event.at) < 2]  # noqa: PLR2004 - as above
        copies = any(event.op.kind in _COPIES or event.op.late for event in ours)
        shared = any(event.op.kind in FENCING or event.op.relaxed for event in ours)
        scoped = any(map(_says_scope, ours))
    late = LATE_MODELS if copies or (shared and not scoped) else ()
    return (*late, "gpu") if scoped else late


def _says_scope(event: Event) -> bool:
    return len(event.at) < 2 and bool(event.op.order or event.op.scope)  # noqa: PLR2004 - as above


LATE_MODELS = ("ldst", "nic")
_COPIES = PUTTING | QUIETING
