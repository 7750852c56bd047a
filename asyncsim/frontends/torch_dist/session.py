"""A session: the ranks of one launch, what they call, and the moment at which calls meet.

A rank's n-th call on a group belongs to the n-th call of each other member. When the last of them has
come, the calls are compared; if they fit, the collective is run on the simulated machine, and everybody
gets the result. If they do not, or if nobody can go on, the session is broken: each rank that waits, or
calls anything later, ends with the same error, which says who called what.
"""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.call import MAKING, Call, disagreement, spoken
from asyncsim.frontends.torch_dist.line import here
from asyncsim.frontends.torch_dist.replayed import run_step
from asyncsim.frontends.torch_dist.step import Step
from asyncsim.guest.lane import Lane, enter_lane, lane
from asyncsim.guest.modules import LocalModules, is_importing
from asyncsim.guest.turns import Turns
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from asyncsim.frontends.torch_dist.team import ProcessGroup, Team
    from asyncsim.guest.process import Process

_NOT_INITIALISED = "Default process group has not been initialized, please make sure to call init_process_group."


class CallMismatchError(RuntimeError):
    """The calls of the ranks do not fit each other, or a rank that the others wait for is absent."""


class NotRunError(RuntimeError):
    """A collective whose calls fit could not be run: nothing that was called can be judged."""


class RaceError(RuntimeError):
    """A tensor is touched while an asynchronous call reads or writes it."""


when_brought: list[Callable[[Participant], None]] = []
"""Called in a rank's thread whenever it has the turn again."""


class Participant(Lane):
    """One rank of a session, as the functions of this dialect find it.

    Args:
        session: whose.
        rank: its number.

    """

    def __init__(self, session: Session, rank: int) -> None:
        super().__init__(rank)
        self.session = session
        self.world: ProcessGroup | None = None
        self.groups = 0
        self.local_groups: dict[tuple[int, ...], int] = {}
        self.calls: list[Call] = []
        self.waiting: Call | None = None
        """What it waits for, or waited for last."""
        self._counts: dict[str, int] = defaultdict(int)
        # What real torch has once a process.
        self.torch: Any = None
        self.kept: list[Any] = []
        self.flights: list[Any] = []
        self.watch: Any = None
        self.started = 0
        self.device = 0
        self.mode: Any = None

    def make(self, call: Call, team: Team) -> Call:
        """Make a call on a group, without waiting for anybody.

        Args:
            call: what is called; it is told who calls, on which group, from which line, and its number there.
            team: the group.

        Raises:
            MisuseError: the present thread is not the rank's own, but one that it started.

        """
        self._refuse_in_thread(call.name)
        call.rank, call.team, call.line = self.rank, team, here()
        call.number = self._counts[team.name]
        self._counts[team.name] += 1
        self.calls.append(call)
        self.session.meet(call)
        return call

    def wait(self, call: Call) -> None:
        """Wait until a call of this rank is complete.

        After a synchronous call also the rank that came last gives the turn away, so that all go on in
        the order of their numbers.

        Raises:
            CallMismatchError: it never will be.
            NotRunError: it, or one before, could not be run.

        """
        self._refuse_in_thread(f"wait() for {call.name}")
        session = self.session
        self.waiting = call
        call.awaited = True
        if not call.done or not call.asynchronous:
            _refuse_in_import(call)
            session.turns.pause(self.rank, lambda: call.done or session.broken is not None)
        if not call.done:
            raise session.error()

    def look(self, call: Call) -> bool:
        """Say whether a call is complete, after all others had a turn."""
        self._refuse_in_thread(f"is_completed() of {call.name}")
        self.waiting = call
        if not call.done:
            _refuse_in_import(call)
            self.session.turns.look(self.rank)
        if not call.done and self.session.broken is not None:
            raise self.session.error()
        call.awaited = call.awaited or call.done
        return call.done

    def _refuse_in_thread(self, name: str) -> None:
        if threading.get_ident() == self.thread:
            return
        said = (
            f"rank {self.rank}: {name} at {here()} in the thread {threading.current_thread().name!r}, which the script "
            "started; asyncsim runs each rank as one thread, so that a run is the same every time: call it in the "
            "thread that runs the script"
        )
        self.session.refused = self.session.refused or said
        raise MisuseError(said)


def _refuse_in_import(call: Call) -> None:
    """Refuse to wait where Python holds the lock of a module, which the other ranks may import, too."""
    if len(call.team.members) > 1 and is_importing(sys._getframe(2)):  # noqa: SLF001 - the only way to ask
        raise RuntimeError(
            f"{call.name} at {call.line} waits for the other ranks while a module is being imported, and they could "
            "not import it meanwhile; asyncsim runs ranks as threads: call it in the script, or in a function"
        )


def participant() -> Participant | None:
    """Return the rank that the present thread is; None outside a session."""
    found: Participant | None = lane()
    return found


def initialised() -> Participant:
    """Return the rank that the present thread is, if it has a default group.

    Raises:
        ValueError: it has none.

    """
    found = participant()
    if found is None or found.world is None:
        raise ValueError(_NOT_INITIALISED)
    return found


class Session:
    """The ranks of one launch.

    Args:
        processes: what each rank has for its own.
        modules: which modules are a rank's own.
        memory, scheduler, seed: how each collective is run.

    """

    def __init__(
        self, processes: Sequence[Process], modules: LocalModules, *, memory: str, scheduler: str, seed: int
    ) -> None:
        self.ranks = len(processes)
        self.broken: str | None = None
        """Why nobody can call anything any more."""
        self.failed: Exception | None = None
        """What was raised where a collective could not be run; then nothing can be judged."""
        self.refused: str | None = None
        """What a thread asked for that a rank had started; then nothing can be judged, also if it caught the error."""
        self.steps: list[Step] = []
        """The collectives that are complete, in that order."""
        self.stores: dict[str, dict[str, bytes]] = {}
        """Values that ranks leave for each other, by the store's name."""
        self.raced: str | None = None
        """The first race on a tensor in flight; then the script is refuted, also if it caught the error."""
        self.operations = 0
        """How many operations of the machine they took."""
        self.participants = [Participant(self, rank) for rank in range(self.ranks)]
        self.ends: list[str | None] = [None] * self.ranks
        """How each rank ended, in words, if it has."""
        self._processes = list(processes)
        self._modules = modules
        self._imported: list[dict[str, ModuleType]] = [{} for _ in processes]
        self._how = {"memory": memory, "scheduler": scheduler}
        self._seed = seed
        self._slots: dict[tuple[str, int], dict[int, Call]] = defaultdict(dict)
        self.turns = Turns(self.ranks, stuck=self._stuck, keep=self._keep, bring=self._bring)

    def process(self, rank: int) -> Process:
        """Return what a rank has for its own, as it was when it got the turn."""
        return self._processes[rank]

    def enter(self, rank: int) -> None:
        """Let the present thread be a rank, and wait for its turn."""
        enter_lane(self.participants[rank])
        self.participants[rank].thread = threading.get_ident()
        self.turns.enter(rank)

    def leave(self, rank: int, ended: str) -> None:
        """End a rank; `ended` says how: "has finished".

        Args:
            rank: in the world.
            ended: for the message to those who still wait for it.

        """
        self.ends[rank] = ended
        enter_lane(None)
        self.turns.leave(rank)

    def meet(self, call: Call) -> None:
        """Put a call beside those of its peers; the last one has the collective run.

        Raises:
            CallMismatchError: the calls do not fit, or the session was broken before.
            NotRunError: the collective could not be run, or one before.

        """
        if self.broken is not None:
            raise self.error()
        slot = self._slots[call.team.name, call.number]
        slot[call.rank] = call
        if len(slot) < len(call.team.members):
            return
        calls = {rank: slot[rank] for rank in call.team.members}
        differing = disagreement(calls)
        if differing is not None:
            self._break_at(calls, differing)
            raise self.error()
        try:
            self._run(Step(call.team, calls))
        except Exception as error:
            # A script may catch what is raised here, and end well: the session must not forget it.
            self.failed = error
            said = f"{type(error).__name__}: {error}"
            told = spoken(list(calls.values()))
            self.broken = f"collective {call.number} of {call.team} could not be run ({said}): {told}"
            raise self.error() from error

    def error(self) -> CallMismatchError | NotRunError:
        """Return what ends a rank of a broken session."""
        return (CallMismatchError if self.failed is None else NotRunError)(self.broken)

    def race(self, said: str) -> str:
        """Note a race, and return what is said of it.

        Args:
            said: both lines, and what each does.

        """
        self.raced = self.raced or said
        return said

    def check_ran(self) -> None:
        """Refuse to go on with a session in which a collective could not be run.

        Raises:
            NotRunError: there was one.
            MisuseError: a thread that a rank had started asked for one.

        """
        if self.refused is not None:
            raise MisuseError(self.refused)
        if self.failed is not None:
            raise self.error() from self.failed

    def _run(self, step: Step) -> None:
        """Run a collective, and give each member its result."""
        self.operations += run_step(step, **self._how, seed=self._seed)
        self.steps.append(step)
        for rank, own in step.calls.items():
            if own.deliver is not None:
                own.deliver(step.results[rank])
            own.done = True

    @property
    def collectives(self) -> int:
        """How many collectives of the script's own are complete: those that only make a group do not count."""
        return sum(step.first.name not in MAKING for step in self.steps)

    @property
    def idle(self) -> bool:
        """Whether the ranks called no collective, complete or not, but to make groups: nothing is there to judge."""
        return not self.collectives and not any(self.unfinished().values())

    def unfinished(self) -> dict[int, list[Call]]:
        """Return, by rank, the calls that never found all their peers."""
        return {own.rank: [call for call in own.calls if not call.done] for own in self.participants}

    def never_awaited(self) -> list[Call]:
        """Return the asynchronous calls that their ranks never waited for."""
        return [call for own in self.participants for call in own.calls if call.asynchronous and not call.awaited]

    def _break_at(self, calls: dict[int, Call], differing: str) -> None:
        first = next(iter(calls.values()))
        if "sends" in differing:  # equal facts may still not fit: tell each rank's own
            for call in calls.values():
                sends = ", ".join(str(piece.size) for piece in call.sent)
                expects = ", ".join(map(str, call.lengths))
                call.facts = {**call.facts, "transfers": f"rank {call.rank} sends {sends} and expects {expects}"}
        self.broken = (
            f"call mismatch in collective {first.number} of {first.team}{differing}: {spoken(list(calls.values()))}"
        )

    def _stuck(self) -> None:
        """Say who waits for whom, now that nobody can go on."""
        lines = []
        for (_, number), slot in sorted(self._slots.items()):
            waiting = [call for call in slot.values() if not call.done]
            if not waiting:
                continue
            team = waiting[0].team
            absent = [rank for rank in team.members if rank not in slot]
            missing = "; ".join(f"rank {rank} {self._instead(rank)}" for rank in absent)
            lines.append(f"in collective {number} of {team} {spoken(waiting)}; {missing}")
        self.broken = f"deadlock: {'. And '.join(lines)}" if lines else "deadlock: every rank waits"

    def _instead(self, rank: int) -> str:
        """Say what an absent rank does instead of coming."""
        ended, stands = self.ends[rank], self.participants[rank].waiting
        return f"stands in {stands} of {stands.team} at {stands.line}" if ended is None and stands else f"{ended}"

    def _keep(self, rank: int) -> None:
        own = self._processes[rank]
        self._processes[rank] = own.present(torch_seed=own.torch_seed)
        self._imported[rank] = self._modules.take()

    def _bring(self, rank: int) -> None:
        self._processes[rank].install()
        sys.modules.update(self._imported[rank])
        for enter in when_brought:
            enter(self.participants[rank])
