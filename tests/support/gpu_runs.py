"""Runs of toy programs with orders and scopes, as traces under ``gpu``: each step is done at once, for all."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
from gpu_toy import ACQUIRE, BLOCK, BOTH, RANK, RELAXED, RELEASE, WORLD
from sync_brute import COMPARE, UPDATE
from sync_runs import HOWS, UPDATES, kind_of
from sync_toy import LOAD, NOTHING

from asyncsim.trace.declare import Signal, Window
from asyncsim.trace.event import COMPLETE, DEADLOCK, Event, Footer, Header, Trace
from asyncsim.trace.kinds import FENCE, NOTIFY, REMOTE_LOAD, REMOTE_STORE, SYNC
from asyncsim.trace.kinds import LOAD as DO_LOAD
from asyncsim.trace.kinds import STORE as DO_STORE
from asyncsim.trace.op import Op as Operation
from asyncsim.trace.op import SyncOp
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from gpu_toy import Program, Step

    from asyncsim.trace.world import Actor

ORDERS = {RELAXED: "relaxed", ACQUIRE: "acquire", RELEASE: "release", BOTH: "acq_rel"}
SCOPES = {BLOCK: "block", RANK: "rank", WORLD: "world"}
ELEMENTS = 4


def world_of(program: Program) -> World:
    """Return the world of a program: its elements and its cells are at rank 0."""
    data = Window("data", (ELEMENTS,), np.int64, initialised=True)
    cells = (Signal(f"cell{n}", (1,), "int32", start=start, wrap=True) for n, start in enumerate(program.starts))
    return World(1 + max(rank for rank, _ in program.homes), (data, *cells))


def actors_of(program: Program, world: World) -> list[Actor]:
    """Return who does what: each actor is a stream of its rank, in its block."""
    return [
        world.actors[rank].stream(number + 1, block=f"block {block}")
        for number, (rank, block) in enumerate(program.homes)
    ]


def operation(world: World, actor: Actor, step: Step, value: int) -> Operation:
    """Return what an actor stands at the gate with; `value` is what a store writes."""
    op = step.op
    order, scope = ORDERS.get(step.order, ""), SCOPES[step.scope]
    if op is None:
        return SyncOp(actor, FENCE, order=order, scope=scope)
    views = world.views(actor.rank)
    if op.data:
        region = views[0].at(0)[op.place]
        own = actor.rank == 0
        kind = (DO_LOAD if own else REMOTE_LOAD) if op.data == LOAD else (DO_STORE if own else REMOTE_STORE)
        return Operation(actor, kind, region.reads if op.data == LOAD else region.writes, payload=value)
    how, amount = (HOWS[op.how], op.value) if op.how else (UPDATES.get(op.update, ""), op.operand)
    update, operand = (UPDATES[op.update], op.operand) if op.how and op.update else ("", 0)
    return SyncOp(
        actor, kind_of(op), cell=views[1 + op.place].at(0)[0], how=how, amount=amount, update=update, operand=operand,
        result=op.blocks and op.gives != NOTHING, order=order, scope=scope,
    )  # fmt: skip


def _barrier(program: Program, actors: list[Actor], actor: int, index: int) -> Operation:
    parties = program.meeting(actor, index)
    first = min(parties)
    return Operation(actors[actor], SYNC, link=f"barrier {first} {parties[first]}", amount=len(parties))


def played(program: Program, seed: int) -> Trace:
    """Play a program by dice, one step at a time."""
    rng = random.Random(seed)  # noqa: S311 - dice, no secret
    world = world_of(program)
    actors = actors_of(program, world)
    ops = [
        [
            operation(world, actors[a], step, 10 * a + n) if step.barrier < 0 else _barrier(program, actors, a, n)
            for n, step in enumerate(steps)
        ]
        for a, steps in enumerate(program.actors)
    ]
    at, cells = [0] * len(actors), list(program.starts)
    events: list[Event] = []

    def may_go_on(actor: int) -> bool:
        if at[actor] == len(ops[actor]):
            return False
        if program.actors[actor][at[actor]].barrier >= 0:
            parties = program.meeting(actor, at[actor])
            return all(at[other] >= index < len(ops[other]) for other, index in parties.items())
        op = program.actors[actor][at[actor]].op
        return op is None or not op.blocks or COMPARE[op.how](cells[op.place], op.value)

    while ready := [actor for actor in range(len(actors)) if may_go_on(actor)]:
        actor = rng.choice(ready)
        op, now = ops[actor][at[actor]], program.actors[actor][at[actor]].op
        have = None
        if now is not None and not now.data:
            have = cells[now.place]
            if now.update and (not now.how or COMPARE[now.how](have, now.value)):
                cells[now.place] = UPDATE[now.update](have, now.operand)
            have = cells[now.place] if op.kind == NOTIFY else have
        value = None if now is None or not now.data else bytes(8)
        events.append(Event(len(events), op, 0, "", ("toy.py:1",), value, have))
        at[actor] += 1
    pending = [
        Event(None, ops[actor][n], 0, "", ("toy.py:1",), None, None if now is None else cells[now.place])
        for actor, n in enumerate(at)
        if n < len(ops[actor])
        for now in (program.actors[actor][n].op,)
    ]
    return Trace(
        Header("toy", "", world, 1, "gpu", 0, "dice"), events, Footer(DEADLOCK if pending else COMPLETE, [], pending)
    )
