"""Reading the header of a trace: a world is made of it only when every number in it was looked at."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from asyncsim.trace.declare import Group, Signal, Window
from asyncsim.trace.edit import check_added, edits_of
from asyncsim.trace.event import Header
from asyncsim.trace.format import ELSEWHERE, HEADER, RECORDED
from asyncsim.trace.strict import BadFieldError, integer_in, shown
from asyncsim.trace.values import dtype_named
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asyncsim.trace.declare import Declaration

MAX_WINDOW = 1 << 48
"""Bytes of one window, at all ranks."""
MAX_CELLS = 1 << 24
"""Cells of one signal, at all ranks: an analysis keeps a number for each."""


def read_header(line: dict[str, Any]) -> Header:
    """Return the header of a trace.

    Args:
        line: the first of the trace.

    Raises:
        BadFieldError: something in it cannot be.
        MisuseError: a declaration, a group or an edit cannot be right.

    """
    made = HEADER.read(line, elsewhere=RECORDED.check(line.get("recorded", ""), "'recorded'") == ELSEWHERE)
    ranks = made["ranks"]
    groups = _groups(made["groups"], ranks)
    declared = [_declaration(each, ranks, groups) for each in made["declarations"]]
    unused = set(groups) - {each.group.name for each in declared if each.group is not None}
    if unused:
        raise BadFieldError(f"group {shown(min(unused))} owns nothing; only groups of windows and signals are listed")
    # Before the world is made, so that a large number alone costs nothing.
    if made["actors"] is not None:
        _check_actors(made["actors"], ranks)
    world = World(ranks, declared)
    check_added(edits_of(made["edits"]), world)
    return Header(
        made["kernel"], made["source"], world, made["calls"], made["memory"], made["seed"], made["scheduler"],
        made["edits"], made["asyncsim"], made["recorded"],
    )  # fmt: skip


def _check_actors(actors: tuple[dict[str, Any], ...], ranks: int) -> None:
    if len(actors) != ranks:
        raise BadFieldError(f"{len(actors)} actors for {ranks} ranks; every rank is one")
    for rank, actor in enumerate(actors):
        if (actor["actor"], actor["rank"]) != (str(rank), rank):
            raise BadFieldError(f"actor {shown(actor)}; the actor of rank {rank} is called '{rank}'")


def _groups(listed: Iterable[dict[str, Any]], ranks: int) -> dict[str, Group]:
    """Read who belongs together; `Group` itself refuses a bad name, and members that are none."""
    groups: dict[str, Group] = {}
    for made in listed:
        name, members = made["name"], tuple(integer_in(rank, "a member", 0, ranks - 1) for rank in made["ranks"])
        if name in groups:
            raise BadFieldError(f"two groups are called {shown(name)}")
        groups[name] = Group(name, members)
    return groups


def _declaration(made: dict[str, Any], ranks: int, groups: dict[str, Group]) -> Declaration:
    kind = "window" if "window" in made else "signal"
    name, shape, dtype = made.pop(kind), made["shape"], dtype_named(made["dtype"])
    size = math.prod(shape) * ranks * (dtype.itemsize if kind == "window" else 1)
    limit, what = (MAX_WINDOW, "bytes") if kind == "window" else (MAX_CELLS, "cells")
    if size > limit:
        raise BadFieldError(f"{shown(name)} has {size} {what}; at most {limit} are read")
    group = made["group"]
    if group is not None and group not in groups:
        raise BadFieldError(f"the header knows no group {shown(group)}")
    rest = {**made, "dtype": dtype, "group": None if group is None else groups[group]}
    return Window(name, **rest) if kind == "window" else Signal(name, **rest)
