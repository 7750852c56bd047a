"""A run under way: what is the same whichever engine drives it.

Each actor has a *life*, a generator: it stops whenever its actor has come to the gate with an
operation, and is resumed when that operation was chosen. An engine starts lives, asks the gate whose
turn it is whenever one has stopped or ended, and resumes that one. That is all an engine does.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from asyncsim.machine.case import MISSING, Run, checked, copied
from asyncsim.machine.edit import Editor
from asyncsim.machine.effect import Immediate
from asyncsim.machine.failure import FOREIGN, kernel_error
from asyncsim.machine.forgotten import NoticedRank, forgotten_in
from asyncsim.machine.gate import Effects, Gate
from asyncsim.machine.memory import Memory
from asyncsim.machine.onward import Onward
from asyncsim.machine.rank import Rank
from asyncsim.machine.record import Place, Recorder
from asyncsim.machine.stream import Named, check_joined, started
from asyncsim.machine.versions import Versions
from asyncsim.machine.wires import Wires
from asyncsim.trace.digest import digest_value
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import STOPPED, Footer, Trace
from asyncsim.trace.guest import is_ctrl_c
from asyncsim.trace.kinds import MEETING
from asyncsim.trace.late import model_of
from asyncsim.trace.op import Op, SyncOp

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from asyncsim.machine.calluse import CallUse
    from asyncsim.machine.case import Case
    from asyncsim.machine.edit import Watch
    from asyncsim.machine.member import Member
    from asyncsim.machine.pick import Scheduler
    from asyncsim.machine.stream import Stream
    from asyncsim.trace.event import Collective, Event
    from asyncsim.trace.late import Model
    from asyncsim.trace.world import Actor

    Life = Generator[Op | None, None, None]
    """Yields whose turn it is, as `Gate.turn` tells; is resumed when its own turn has come."""
    _Start = Callable[[Place, int], Any]
    """Starts the program for a call, and returns its coroutine."""
    _Take = Callable[[Place, int, Any], None]
    """Takes what the program returned."""
    Begun = Callable[[Sequence[Actor]], None]
    """Takes the choices of a run as it begins."""


_name = attrgetter("name")
COMPACT_RANKS = 32
"""From so many ranks on the events of a run are kept in columns."""


class Course:
    """One run under way.

    Args:
        case: what is run.
        scheduler: makes every choice.
        record: the scheduler as text, for the header of the trace; None: no trace is kept.
        watch: is told of each operation of the kernel, before it stands at the gate.
        use: is told what the kernel does with the number of its call.
        begun: is given the choices of the run, none so far, when it begins; they grow as it goes on.
        lines: whether the trace says where each operation stands in the source.
        notice: whether operations are coroutines, too, so that Python tells of a forgotten await.
        onward: where the run hangs, nobody waits any more: see `Onward`, which takes it.

    """

    def __init__(  # noqa: PLR0913 - each is one thing that a caller may want of a run
        self,
        case: Case,
        scheduler: Scheduler,
        *,
        record: str | None = None,
        watch: Watch | None = None,
        use: CallUse | None = None,
        begun: Begun | None = None,
        lines: bool = True,
        notice: bool = False,
        onward: Mapping[str, int] | None = None,
    ) -> None:
        """Make the memory, and a life for every rank, none of which has begun."""
        world = case.world
        self._case = case
        self._inputs = case.inputs  # made here, where a mistake in them reaches the caller as it is
        self._memory = Memory(world, case.seed)
        model = model_of(case.memory)
        effects = self._effects = _effects_of(self._memory, model)
        if onward is not None:
            effects = Onward(effects, onward)
        self.unstarted: list[tuple[Actor, Life]] = []
        """The lives that are to begin, the last one first, each when the one before stands at the gate."""
        self._model = model
        # Edits and watches look for lines, too.
        self._rank = (
            NoticedRank if notice or (record is not None and lines) or watch is not None or case.edits else Rank
        )
        self._use = use
        self._places: dict[int, Place] = {}
        self._outputs: list[list[Any]] = [[MISSING] * world.ranks for _ in range(case.calls)]
        self._pending: list[Event] = []
        self._collectives: list[Collective] = []
        self._record = record
        self._recorder: Recorder | None = None
        if record is not None:
            compact = world.ranks >= COMPACT_RANKS
            self._recorder = Recorder(
                self._memory, effects.seen, effects.peek, self._places, case.sites,
                late=model.late, compact=compact, lines=lines,
            )  # fmt: skip
            self._recorder.clock = getattr(scheduler, "now", None)
            self._recorder.told = getattr(scheduler, "told", None)
        self.gate = Gate(
            self._memory,
            effects,
            scheduler,
            awaited=self.unstarted,
            max_steps=case.step_limit,
            observer=self._recorder,
        )
        self._editor: Editor | None = None
        if case.edits or watch is not None:
            self._editor = Editor(case.changes, world, case.sites, watch, deferred=model.late)
        self.unstarted += [(actor, self._of_rank(actor)) for actor in reversed(world.actors)]
        scheduler.begin(world.actors)
        if begun is not None:
            begun(self.gate.choices)

    def end(self) -> None:
        """Note what the run leaves, now, while the kernels still stand at their lines; the gate knows its ending."""
        if self._recorder is not None:
            self._pending = [self._recorder.pending(op) for op in self._standing()]
            self._collectives = list(self._recorder.collectives)

    def _standing(self) -> list[Op]:
        """Return what stands at the gate, but for streams with a name at their doors: these wait for nothing."""
        return [op for op in self.gate.pending() if not (op.kind in MEETING and op.payload)]

    def result(self) -> Run:
        """Return the run, which has ended."""
        ending = self.gate.ending
        if ending is None:
            raise RuntimeError("the run stopped without an ending")
        choices = list(map(_name, self.gate.choices))
        unwritten = [str(region) for region in self._memory.unwritten]
        unapplied = () if self._editor is None else self._editor.unapplied
        trace = self._trace(ending)
        arrays = self._memory.arrays
        offers = self._effects.offers if isinstance(self._effects, Versions) else {}
        standing = bool(self._standing())
        return Run(
            self._case, choices, self._outputs, ending, unwritten, arrays, trace, unapplied, offers, standing
        )  # fmt: skip

    def _of_rank(self, actor: Actor) -> Life:
        """Return the life of a rank: all its calls."""
        return self._live(self._place(actor), range(self._case.calls), self._start, self._take)

    def _start(self, place: Place, call: int) -> Any:  # noqa: ANN401 - what an author's function returned
        rank = place.rank
        place.call = call
        rank.calling(call, self._use)
        rank.phase_name = ""
        home = rank.actor.rank
        return self._case.kernel.start(rank, copied(self._inputs[call][home]), self._case.views(home))

    def _take(self, place: Place, call: int, value: Any) -> None:  # noqa: ANN401 - checked here
        try:
            # Copied, as what a kernel returns may be an array that its next call uses again.
            self._outputs[call][place.rank.actor.rank] = copied(checked(value))
        except MisuseError as error:
            if found := forgotten_in([value]):
                raise MisuseError(f"it returns what is no value yet: {found}") from error
            raise

    def _begin(self, stream: Stream[Any], parent: Member) -> None:
        """Let a stream begin that its parent has started, when the parent stands at the gate again.

        One with a name tells itself when it comes to its door, and when it goes on in another call.
        """
        place = self._places.get(stream.actor.order)
        if place is None or not isinstance(stream, Named):
            self.unstarted.append((stream.actor, self._of_stream(stream, parent)))
            return
        place.inserted = (stream.site,) if stream.idle else None
        if stream.idle:
            return
        place.call = stream.call
        place.rank.calling(stream.call, self._use)
        place.rank.phase_name = stream.phase_name

    def _of_stream(self, stream: Stream[Any], parent: Member) -> Life:
        """Return the life of a stream; its call and phase are those of its parent when it was started."""
        place = self._place(stream.actor)
        call = place.call = self._places[parent.actor.order].call
        place.rank.calling(call, self._use)
        place.rank.phase_name = parent.phase_name

        def start(place: Place, _: int) -> Any:  # noqa: ANN401 - what an author's function returned
            return stream.run(place.rank)

        def take(_place: Place, _: int, value: Any) -> None:  # noqa: ANN401 - a program returns what it likes
            stream.value = value

        return self._live(place, (call,), start, take)

    def _place(self, actor: Actor) -> Place:
        rank = self._rank(actor, self._case.world, deferred=self._model.late, adapter=self._model.adapter)
        place = self._places[actor.order] = Place(rank)
        return place

    def _live(  # noqa: C901 - every step comes through here
        self, place: Place, calls: Sequence[int], start: _Start, take: _Take
    ) -> Life:
        """Take an actor through its calls, sending into each program what its operations gave.

        Raises:
            KernelError: the program failed.

        """
        gate, actor = self.gate, place.rank.actor
        turn = gate.turn
        coroutine: Any = None
        try:
            place.rank.begin = self._begin
            if self._recorder is not None:
                place.rank.note = self._recorder.collective
            for call in calls:
                outcome: Any = None
                try:
                    coroutine = place.coroutine = started(start(place, call))
                    coroutine = coroutine if self._editor is None else self._editor.drive(place)
                    send = coroutine.send
                except BaseException as error:  # noqa: BLE001 - whatever the author's function raises
                    raise (failure := self._failed(place, error)) from failure.__cause__
                while True:
                    try:
                        op = send(outcome)
                        if (op.__class__ is not Op and op.__class__ is not SyncOp) or op.actor is not actor:
                            _refuse(coroutine, op, actor)
                    except StopIteration as stop:
                        outcome = stop.value
                        break
                    except BaseException as error:  # noqa: BLE001 - as above
                        raise (failure := self._failed(place, error)) from failure.__cause__
                    chosen = turn(op)
                    if chosen is not op:
                        yield chosen
                    outcome = gate.outcome
                try:
                    check_joined(place.rank)
                    take(place, call, outcome)
                except BaseException as error:  # noqa: BLE001 - what was returned may be an object of the author's
                    raise (failure := self._failed(place, error)) from failure.__cause__
            gate.leave(actor)
        finally:
            if coroutine is not None:
                _close(coroutine, place.coroutine)
                place.coroutine = None
            # They lead back to here; what is left of a run goes without a garbage collector.
            place.rank.note = place.rank.begin = None

    def _failed(self, place: Place, error: BaseException) -> BaseException:
        """Return what to raise where a kernel raised: who it was, and where; Ctrl-C is nobody's mistake."""
        if is_ctrl_c(error):
            return error
        return kernel_error(error, place.rank.actor, place.call, self._trace(STOPPED), kernel=self._case.kernel.ref)

    def _trace(self, ending: str) -> Trace | None:
        if self._recorder is None or self._record is None:
            return None
        outputs = [[None if y is MISSING else digest_value(y) for y in ys] for ys in self._outputs]
        collectives = list(self._recorder.collectives) if ending == STOPPED else self._collectives
        footer = Footer(ending, outputs, self._pending, collectives=collectives)
        return Trace(self._case.header(self._record), self._recorder.events, footer)


def _effects_of(memory: Memory, model: Model) -> Effects:
    """Return the effects of a memory model, made for one run."""
    if model.late:
        return Wires(memory, model)
    return Immediate(memory) if model.old is None else Versions(memory, model.old)


def _refuse(coroutine: Any, op: object, actor: Actor) -> None:  # noqa: ANN401
    """Refuse a foreign await, or another actor's operation, at its line; swallowing that makes it no less wrong."""
    why = FOREIGN
    if isinstance(op, Op):
        why = (
            f"actor {actor.name} awaits an operation of actor {op.actor.name}; "
            "a kernel awaits methods of the Rank that it was given, and a stream those of the one that it was given"
        )
    with suppress(StopIteration):
        coroutine.throw(MisuseError(why))
    raise MisuseError(why)


def _close(coroutine: Any, program: Any) -> None:  # noqa: ANN401
    """Close a kernel that will not go on; what it does then, such as awaiting in its ``finally``, is in no run."""
    try:
        coroutine.close()
    except BaseException as error:  # the run is over, and says already how
        if is_ctrl_c(error):
            raise
        if getattr(program, "cr_frame", None) is not None:
            # It swallows what ends it, and would do so again where it is dropped: Python complains of that.
            if not _UNENDING:
                atexit.register(_hear_no_unending)
            _UNENDING.append(program)


_UNENDING: list[Any] = []
"""Kernels that cannot be ended, such as a loop around ``except BaseException: pass``; kept, so that none is dropped."""


def _hear_no_unending() -> None:
    """Let the process end without a complaint of what ended long ago."""
    others = sys.unraisablehook

    def hear(what: sys.UnraisableHookArgs) -> None:
        if str(what.exc_value) != "coroutine ignored GeneratorExit":
            others(what)

    sys.unraisablehook = hear
