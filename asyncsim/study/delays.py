"""The few delays that provoke a failure on a real machine: a rank is held at a line until the others can go no further.

A model's finding is doubted until a device shows it. A schedule of a thousand choices cannot be forced on a device, but
a rank can be made to sleep at a line. So the failure of a witness is looked for again under the fair scheduler with as
few delays as possible: none, each operation alone, then pairs and triples of those that the witness does later than the
fair run. A set that is found was run, and failed in the same way.

Source: few delays find most bugs: Emmi, Qadeer and Rakamaric, "Delay-bounded scheduling", POPL 2011.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice, permutations
from typing import TYPE_CHECKING

from asyncsim.checking.diagnose.symptoms import Symptoms
from asyncsim.checking.record.replay import replay
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.late import is_with_old_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from asyncsim.machine.case import Run
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Event, Trace
    from asyncsim.trace.op import Op
    from asyncsim.trace.token import Token
    from asyncsim.trace.world import Actor

RAISES = "raises"
"""How a run fails whose kernel raises."""
BUDGET = 3_000
"""How many runs a search may make."""
_AT_MOST = {1: None, 2: 24, 3: 9}
"""By the number of delays, among how many of the latest operations they are looked for; None: among all."""
_PATIENCE = 4
"""A delay is over when the others have done so many times the steps of a fair run: they spin."""


@dataclass(frozen=True, slots=True)
class Delay:
    """One delay: an actor is held before one of its operations.

    Args:
        actor: its name: a rank, a stream, or a wire, which the hardware holds, not a program.
        index: the number of the operation among those of its actor, from 0.
        rank: whose it is.
        call: of the operation, from 0.
        op: the operation, in words.
        at: the author's line, file and number; empty: there is none.
        nth: the how many-th operation of this actor at this line in this call, from 1.
        of: how many there are.
        landing: whether it is one: what is late is not a rank but what it sent.

    """

    actor: str
    index: int
    rank: int
    call: int
    op: str
    at: str
    nth: int
    of: int
    landing: bool


class Delayed:
    """The fair scheduler, with actors held before some operations until nothing else is ready.

    Args:
        delays: those listed first end first.
        patience: after so many steps of others a delay ends, too.

    """

    def __init__(self, delays: Sequence[Delay], patience: int) -> None:
        self._delays, self._patience = delays, patience
        self._fifo = Fifo()
        self._done: Counter[str] = Counter()
        self._left: list[tuple[str, int]] = []
        self._waited = 0

    def __str__(self) -> str:
        return "fifo with delays"

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run."""
        self._fifo.begin(actors)
        self._done.clear()
        self._left = [(each.actor, each.index) for each in self._delays]
        self._waited = 0

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the next operation of an actor that is not held; the first that is held where all are."""
        held = [op for op in ready if (op.actor.name, self._done[op.actor.name]) in self._left]
        self._waited += bool(held)
        if held and (len(held) == len(ready) or self._waited > self._patience):
            first = min(held, key=lambda op: self._left.index((op.actor.name, self._done[op.actor.name])))
            self._left.remove((first.actor.name, self._done[first.actor.name]))
            held.remove(first)
            self._waited = 0
            op = first if len(held) + 1 == len(ready) else ready[self._fifo.pick(ready, held)]
        else:
            op = ready[self._fifo.pick(ready, held)]
        self._done[op.actor.name] += 1
        return op


@dataclass(frozen=True, slots=True)
class Provoked:
    """What provokes a failure.

    Args:
        kinds: how the witness fails, as kinds of findings; `RAISES`: its kernel raises.
        delays: as few as were found; None: none were.

    """

    kinds: frozenset[str]
    delays: tuple[Delay, ...] | None


def provoke(recorded: Trace | Token, kernel: Kernel, *, budget: int = BUDGET) -> Provoked:
    """Look for as few delays as provoke what a witness shows, where all else runs fairly.

    Args:
        recorded: a run that fails.
        kernel: of that run.
        budget: how many runs may be made.

    Raises:
        MisuseError: the run does not fail, or fails because loads return older values.
        DivergenceError: the kernel does something else than was recorded.

    """
    run = recorded.header
    if is_with_old_reads(run.memory):
        raise MisuseError(
            "in this witness loads return older values, which the memory of a GPU may do and no delay brings about; "
            "give the witness of a finding under sc"
        )
    case = Case(kernel, run.ranks, run.calls, run.memory, run.seed, edits=run.edits)
    symptoms = Symptoms(case)

    def kinds_of(tried: Run) -> set[str]:
        tried.trace = None  # what is left of a failure without a record is what a search can look for
        return {finding.kind for finding in symptoms.findings(tried)}

    try:
        again = replay(recorded, kernel)
    except KernelError as error:
        witness, kinds = error.trace, {RAISES}
    else:
        witness = again.run.trace
        kinds = kinds_of(again.run)
    if not kinds or witness is None:
        raise MisuseError("the recorded run shows no failure that its schedule decides, so no delay can provoke it")
    try:
        fair = drive(case, Fifo(), record="fifo").trace
    except KernelError as error:
        fair = error.trace
    patience = _PATIENCE * max(len(fair.events) if fair is not None else 0, len(witness.events), 1)
    tried = islice(_sets(candidates(witness, fair)), budget)
    found = next((delays for delays in tried if kinds & outcome(case, delays, kinds_of, patience)), None)
    return Provoked(frozenset(kinds), found)


def outcome(case: Case, delays: Sequence[Delay], kinds_of: Callable[[Run], set[str]], patience: int) -> set[str]:
    """Return how the fair run with these delays fails.

    Args:
        case: what is run.
        delays: of the run.
        kinds_of: says how a run fails.
        patience: of `Delayed`.

    """
    try:
        return kinds_of(drive(case, Delayed(delays, patience)))
    except KernelError:
        return {RAISES}


def _sets(latest: Sequence[Delay]) -> Iterator[tuple[Delay, ...]]:
    yield ()
    for size, most in _AT_MOST.items():
        yield from permutations(latest[:most], size)


def candidates(witness: Trace, fair: Trace | None) -> list[Delay]:
    """Return the operations of a witness as delays, those first that it does later than the fair run does.

    What counts is by how much more an operation is late than the one before it: an actor that is held is late from
    there on.

    Args:
        witness: a run that fails.
        fair: the fair run of the same case; None: it is not known.

    """
    events = [] if fair is None else fair.events
    steps = dict(_numbered(events))
    late: dict[str, int] = {}
    found: list[tuple[int, int, tuple[str, int], Event]] = []
    for (name, index), at in _numbered(witness.events):
        by = at - steps.pop((name, index), at)
        found.append((late.get(name, 0) - by, at, (name, index), witness.events[at]))
        late[name] = by
    # What the witness never comes to is as late as can be.
    found += [(-len(events) - len(witness.events), at, key, events[at]) for key, at in steps.items()]
    found.sort(key=lambda each: each[:2])
    lines = Counter(_where(key[0], event) for _, _, key, event in found)
    earlier: Counter[tuple[str, int, str]] = Counter()
    nth: dict[tuple[str, int], int] = {}
    for _, _, key, event in sorted(found, key=lambda each: each[2][1]):
        where = _where(key[0], event)
        earlier[where] += 1
        nth[key] = earlier[where]
    return [
        Delay(
            *key, event.op.actor.rank, event.call, str(event.op), _line(event), nth[key], lines[_where(key[0], event)],
            landing=event.op.actor.wire,
        )
        for _, _, key, event in found
    ]  # fmt: skip


def _where(actor: str, event: Event) -> tuple[str, int, str]:
    return actor, event.call, _line(event)


def _numbered(events: Sequence[Event]) -> Iterator[tuple[tuple[str, int], int]]:
    done: Counter[str] = Counter()
    for at, event in enumerate(events):
        name = event.op.actor.name
        yield (name, done[name]), at
        done[name] += 1


def _line(event: Event) -> str:
    return event.at[0] if event.at and event.at[0] else ""
