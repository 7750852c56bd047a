"""The recorded calls as a kernel: one collective at once, or all that a script made."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from asyncsim.collectives.barrier import barrier, settle
from asyncsim.frontends.torch_dist.library import library
from asyncsim.frontends.torch_dist.step import Workspace, perform
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.table import make
from asyncsim.trace.declare import Group, Signal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from asyncsim.frontends.torch_dist.call import Call
    from asyncsim.frontends.torch_dist.line import Line
    from asyncsim.frontends.torch_dist.step import Step
    from asyncsim.frontends.torch_dist.team import Team
    from asyncsim.frontends.torch_dist.tensors import Array
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.declare import Declaration

NAME = "collectives"
"""What the kernel of a script's calls is called."""


def run_step(step: Step, *, memory: str, scheduler: str, seed: int) -> int:
    """Run one collective on a machine of its members alone, and fill in its results.

    Args:
        step: the collective.
        memory: the memory model.
        scheduler: which schedule is run, as text.
        seed: of that.

    Returns:
        How many operations that took.

    """
    members = step.team.members

    async def alone(rank: Rank, x: Array, *views: Any) -> Array:  # noqa: ANN401 - windows and a signal
        return await perform(library(rank, memory), step, x, Workspace(*views))

    kernel = Kernel(
        alone, memory=tuple(step.memory(None)), inputs=lambda *_: [step.tile(rank) for rank in members], given_name=NAME
    )
    run = drive(Case(kernel, len(members), 1, memory, seed), make(scheduler, seed=seed))
    for rank, tile in zip(members, run.outputs[0], strict=True):
        step.results[rank] = step.received(rank, tile)
    return len(run.choices)


def kernel_of(
    steps: Sequence[Step], unfinished: Mapping[int, Sequence[Call]], *, ranks: int, path: str, memory: str
) -> Kernel:
    """Return everything that a script's ranks called as one kernel; its golden is what the script got.

    A rank takes part in its collectives in the order in which they were complete, which is the order of
    its calls but for asynchronous ones. Calls that never found their peers come last: their ranks announce
    them, and then wait for the others as a collective would.

    Args:
        steps: the collectives that were complete, in that order.
        unfinished: by rank, what it called besides.
        ranks: P.
        path: of the script, as the user gave it.
        memory: the memory model that it is for.

    """
    teams = [step.team for step in steps] + [call.team for calls in unfinished.values() for call in calls]
    groups = {team.name: None if team.name == "world" else Group(team.name, team.members) for team in teams}
    declared: dict[str, Declaration] = {}
    for team in teams:
        name = _signal(team)
        declared[name] = Signal(name, ("P", 1), self_cleaning=True, group=groups[team.name])
    for step in steps:
        declared.update((made.name, made) for made in step.memory(groups[step.team.name]))

    def within(rank: Rank, team: Team) -> Rank:
        group = groups[team.name]
        return rank if group is None else rank.within(group)

    async def take_part(rank: Rank, step: Step, tile: Array, views: Mapping[str, Any]) -> Array:
        own = within(rank, step.team)
        own.collective(step.first.name, **step.first.told)
        space = Workspace(*(views[name] for name in step.names))
        return step.received(rank.actor.rank, await perform(library(own, memory), step, tile, space))

    async def announce(rank: Rank, call: Call) -> None:
        within(rank, call.team).collective(call.name, **call.told)

    async def wait_for_peers(rank: Rank, call: Call, views: Mapping[str, Any]) -> None:
        own, signal = library(within(rank, call.team), memory), views[_signal(call.team)]
        await barrier(own, signal)
        await settle(own, signal, credits=1)

    async def everything(rank: Rank, tiles: Sequence[Array], given: Sequence[Any]) -> tuple[Array, ...]:
        views = dict(zip(declared, given, strict=True))
        home = rank.actor.rank
        mine = [step for step in steps if home in step.calls]
        got = [
            await _from(step.calls[home].line)(take_part(rank, step, tile, views))
            for step, tile in zip(mine, tiles, strict=True)
        ]
        left = unfinished.get(home, ())
        for call in left:
            await _from(call.line)(announce(rank, call))
        for call in left:
            await _from(call.line)(wait_for_peers(rank, call, views))
        return tuple(got)

    return Kernel(
        _program(path, everything),
        memory=tuple(declared.values()),
        inputs=lambda *_: [tuple(step.tile(r) for step in steps if r in step.calls) for r in range(ranks)],
        golden=lambda _: [tuple(step.results[r] for step in steps if r in step.calls) for r in range(ranks)],
        rtol=0.0,
        atol=0.0,
        given_name=NAME,
    )


def _signal(team: Team) -> str:
    return f"{team.name}_ready"


def _program(path: str, everything: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """Return the program, as if it stood in the script: reports show where a kernel's file says it is."""
    space: dict[str, Any] = {"__name__": "__main__", "__asyncsim_path__": path, "everything": everything}
    source = f"async def {NAME}(rank, x, *memory):\n    return await everything(rank, x, memory)"
    exec(compile(source, path, "exec", dont_inherit=True), space)  # noqa: S102 - our own two lines
    made: Callable[..., Any] = space[NAME]
    return made


@cache
def _from(line: Line) -> Callable[[Awaitable[Any]], Awaitable[Any]]:
    """Return a function that awaits something on a line of the script, so that reports and traces name it."""
    space: dict[str, Any] = {"__name__": line.module}
    source = "\n" * (line.number - 1) + "async def call(step): return await step"
    exec(compile(source, line.file, "exec", dont_inherit=True), space)  # noqa: S102 - our own line
    made: Callable[[Awaitable[Any]], Awaitable[Any]] = space["call"]
    return made
