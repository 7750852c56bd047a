"""Reading the header of a trace: a world is made of it only when every number in it was looked at."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from asyncsim.trace.declare import Group, Signal, Window
from asyncsim.trace.edit import check_added, edits_of
from asyncsim.trace.event import Header
from asyncsim.trace.jsonl_elsewhere import ELSEWHERE, filled_header
from asyncsim.trace.late import MODELS, model_of
from asyncsim.trace.strict import (
    MAX_CALLS,
    MAX_RANKS,
    BadFieldError,
    Fields,
    integer_in,
    list_in,
    shown,
    text_in,
)
from asyncsim.trace.values import DTYPES, decode_number, dtype_named, hex_in
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from asyncsim.trace.declare import Declaration

FORMAT = 1
"""The version of the format. A reader reads its own version only."""
MAX_WINDOW = 1 << 48
"""Bytes of one window, at all ranks."""
MAX_CELLS = 1 << 24
"""Cells of one signal, at all ranks: an analysis keeps a number for each."""


_MEMORY = re.compile(r"[a-z]{1,20}(:atom=[1-9][0-9]{0,17})?\Z")


def read_header(fields: Fields) -> Header:
    """Return the header of a trace.

    Raises:
        BadFieldError: something in it cannot be.
        MisuseError: a declaration, a group or an edit cannot be right.

    """
    recorded = fields.text("recorded", "")
    if recorded not in ("", ELSEWHERE):
        raise BadFieldError(f"'recorded' is {shown(recorded)}; it is left out, or {ELSEWHERE!r}")
    if recorded:
        fields = filled_header(fields)
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
    return Header(kernel, source, world, calls, memory, seed, scheduler, edits, asyncsim, recorded)


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
        over = fields.text("over") if "over" in fields else ""
        declared = Window(
            name, shape, dtype, initialised=fields.flag("initialised"), dirty=dirty, group=group, over=over
        )
    else:
        start = fields.integer("start", -(1 << 63))
        wrap, cleaning = fields.flag("wrap"), fields.flag("self_cleaning")
        declared = Signal(name, shape, dtype, start=start, wrap=wrap, self_cleaning=cleaning, group=group)
    fields.end()
    return declared
