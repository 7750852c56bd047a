"""How processes meet: syncs, which complete nothing that was put, and what they hand each other."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.host import blocking, hosted
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import at_line, present_line
from asyncsim.guest.memory import Memory
from asyncsim.guest.places import sliced
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from asyncsim.guest.domain import Domain, Make
    from asyncsim.guest.places import Array, Block, Run
    from asyncsim.machine.rank import Rank

WORLD = "world"
"""The team of all."""
_ROUNDS = 8
"""Collectives come to new cells; so many are declared at a time."""


@dataclass(frozen=True, slots=True)
class _Promise:
    """An array that an operation under way has taken."""

    of: Hashable
    array: Array
    value: Any
    held: Any
    line: str


class Party(Memory):
    """A process that meets others.

    Args:
        rank: as for `Memory`.
        given: likewise.
        mail: what processes hand each other, by team, round and process; read after the signal that it is there.

    Attributes:
        finalised: it has come to its end.

    """

    completes = "a quiet completes"
    """What its interface says of operations, for messages."""

    def __init__(self, rank: Rank, *given: Any, mail: dict[Any, Any]) -> None:  # noqa: ANN401 - as `Memory` takes them
        super().__init__(rank, *given)
        self.mail = mail
        self.finalised = False
        self._counts: dict[Hashable, int] = {}
        self._promises: list[_Promise] = []
        self._beside: list[tuple[Hashable, Any]] = []

    def collective(self, name: str, team: Hashable = WORLD, **facts: Any) -> None:  # noqa: ANN401 - whatever they are
        """Note that the process is in a collective.

        Args:
            name: of it.
            team: of which processes; one of less than all is not compared.
            facts: what must be the same for all.

        """
        if team == WORLD:
            self.rank.collective(name, **facts)

    def number(self, what: str, kind: str, given: Any, count: int) -> int:  # noqa: ANN401 - whatever is given
        """Return the number of a process.

        Args:
            what: the call, for the message.
            kind: what its interface calls a process.
            given: by the author.
            count: how many there are.

        Raises:
            MisuseError: there is none of that number.

        """
        if isinstance(given, bool) or not hasattr(given, "__index__") or not 0 <= int(given) < count:
            raise MisuseError(f"{what}: there is no {kind} {given!r}; {kind}s are 0 to {count - 1}")
        return int(given)

    # ---- operations under way

    def issue(self, domain: Domain | None, make: Make) -> Any:  # noqa: ANN401 - what the operation gives
        """Do an operation in a domain.

        Args:
            domain: None: the process's own.
            make: makes it, of the actor that does it.

        """
        return self.do(make(self.rank)) if domain is None else domain.run(self, make)

    def looked(self, asked: Hashable, domain: Domain | None, cell: Any, make: Make) -> Any:  # noqa: ANN401 - likewise
        """Do an operation that returns what a cell held, and changes nothing where it returns the same again.

        Args:
            asked: what it is, and of what.
            domain: as for `issue`.
            cell: the cell.
            make: as for `issue`.

        """
        return self.tried(
            asked,
            lambda: self.issue(domain, make),
            lambda held: self.issue(domain, lambda rank: rank.wait(cell != held)),
        )

    def beside(self, of: Hashable, make: Make) -> Callable[[], None]:
        """Do an operation that goes on beside what follows; return what waits for it.

        Args:
            of: with what it is complete at the latest.
            make: makes it, of the actor that does it.

        """
        line = present_line()

        async def going_on(rank: Rank) -> None:
            await hosted(lambda: at_line(line)(blocking, make(rank)))

        entry = (of, self.do(self.rank.start(going_on)))
        self._beside.append(entry)
        return lambda: self.join(lambda _: False, entry)

    def join(self, chosen: Callable[[Any], bool], one: Any = None) -> None:  # noqa: ANN401 - what `beside` keeps
        """Wait for what goes on beside.

        Args:
            chosen: says of what completes with this whether it is waited for.
            one: likewise this one, if it is not over.

        """
        for entry in [each for each in self._beside if each is one or chosen(each[0])]:
            self._beside.remove(entry)
            self.do(self.rank.join(entry[1]))

    def followed(self, array: Array) -> Block:
        """Return the block of an array; a private one is followed from now on: an operation on it outlasts its call.

        Args:
            array: as the author gave it.

        """
        block = self.places.find(array)
        if block is not None:
            return block
        whole = array
        while isinstance(whole.base, np.ndarray) and whole.base.dtype == array.dtype:
            whole = whole.base
        if not (whole.flags.c_contiguous or whole.flags.f_contiguous):
            whole = array
        flat = whole.reshape(-1, order="A")
        wanted = Wanted(present_line().assigned() or "buffer", flat.size, flat.dtype.name)
        promises, self._promises = self._promises, []  # what it holds was stored before
        try:
            return self.make(("private", self.me, self.next("private")), wanted, flat=flat, private=True)
        finally:
            self._promises = promises

    def promise(self, of: Hashable, array: Array, value: Any = None) -> None:  # noqa: ANN401 - of any type
        """Let an array have a value when an operation completes; until then the author may not touch it.

        Args:
            of: with what it completes.
            array: of one's own.
            value: what it then has; None: the operation reads the array, and it may be read.

        """
        if value is not None:
            self.followed(array)
        self._promises.append(_Promise(of, array, value, array.copy(), str(present_line())))

    def deliver(self, chosen: Callable[[Any], bool]) -> None:
        """Give arrays what they were promised.

        Args:
            chosen: says whether what completes with this is complete.

        Raises:
            MisuseError: one that was only to be read has changed.

        """
        done = [each for each in self._promises if chosen(each.of)]
        self._promises = [each for each in self._promises if not chosen(each.of)]
        for each in done:
            block = self.places.find(each.array)
            if each.value is None and each.array.tobytes() != each.held.tobytes():
                raise MisuseError(f"what the operation at {each.line} reads was written before {self.completes} it")
            if each.value is not None and block is not None:
                each.array[...] = each.value
                self.store(block, each.array)

    def load_runs(self, block: Block, runs: Sequence[Run]) -> None:
        """Load, unless it is the result of an operation that is not complete.

        Args:
            block: as for all memory.
            runs: likewise.

        Raises:
            MisuseError: it is.

        """
        for each in self._touched(block, runs):
            if each.value is not None:
                raise MisuseError(f"the result of the operation at {each.line} is read before {self.completes} it")
        super().load_runs(block, runs)

    def note_store(self, block: Block, runs: Sequence[Run]) -> None:
        """Store, unless an operation that is not complete reads or writes it.

        Args:
            block: as for all memory.
            runs: likewise.

        Raises:
            MisuseError: one does.

        """
        for each in self._touched(block, runs):
            raise MisuseError(f"what the operation at {each.line} is on is written before {self.completes} it")
        super().note_store(block, runs)

    def _touched(self, block: Block, runs: Sequence[Run]) -> list[_Promise]:
        return [
            each
            for each in self._promises
            if any(np.may_share_memory(each.array, block.flat[sliced(run)]) for run in runs)
        ]

    # ---- meeting

    def next(self, key: Hashable) -> int:
        """Return how often it was asked for this before."""
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        return number

    def counted(self, key: Hashable) -> int:
        """Return what `next` would, and count nothing."""
        return self._counts.get(key, 0)

    def sync(self, team: Hashable = WORLD, members: Sequence[int] = ()) -> None:
        """Meet: own stores are visible to the others then, and no put is complete.

        Args:
            team: what sets it apart from other teams.
            members: its processes; empty: all.

        """
        others = [other for other in members or range(self.size) if other != self.me]
        arrived = self.wanted(("sync", team), Wanted("sync", self.size, "int64", signal=True))
        number = self.next(("sync", team)) + 1

        async def meet(rank: Rank) -> None:
            await rank.notify_all([arrived.at(other)[self.me] for other in others], 1, order="stores")
            await rank.wait_all([arrived[other] >= number for other in others])

        self.do(meet(self.rank))

    def round(self, team: Hashable) -> tuple[Any, int, int]:
        """Return the cells of a new round of a team's, where they begin, and the number of the round."""
        number = self.next(("round", team))
        count = (number // _ROUNDS + 1) * _ROUNDS * self.size
        cells = self.wanted(("round", team), Wanted("arrived", count, "int64", signal=True))
        return cells, number * self.size, number

    def hand(
        self,
        team: Hashable,
        value: Any,  # noqa: ANN401 - whatever they hand each other
        *,
        to: Sequence[int],
        of: Sequence[int],
        order: str = "relaxed",
    ) -> dict[int, Any]:
        """Hand a value to some members of a team, and return what some hand to this one, in a round of theirs.

        Args:
            team: what sets it apart.
            value: by receiver, or one for all.
            to: the receivers, by their numbers in the world.
            of: whose values are waited for.
            order: of the signal, as of a notify.

        """
        cells, base, number = self.round(team)
        others = [other for other in to if other != self.me]
        for other in to:
            self.mail[team, number, self.me, other] = value
        awaited = [other for other in of if other != self.me]

        async def meet(rank: Rank) -> None:
            await rank.notify_all([cells.at(other)[base + self.me] for other in others], 1, order=order)  # type: ignore[arg-type]
            await rank.wait_all([cells[base + other] >= 1 for other in awaited])

        self.do(meet(self.rank))
        return {other: self.mail[team, number, other, self.me] for other in of}

    # ---- messages

    def send(self, channel: Hashable, to: int, value: Any) -> None:  # noqa: ANN401 - whatever is sent
        """Send a value; it is in the mail when this returns.

        Args:
            channel: messages of one are received in the order in which they are sent.
            to: the receiver, by its number in the world.
            value: a copy is sent.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("sent", channel, to))
        self.mail["message", channel, number, self.me, to] = copy.deepcopy(value)
        cell = arrived[self.me] if to == self.me else arrived.at(to)[self.me]
        self.do(self.rank.notify(cell, 1, order="stores"))

    def receive(self, channel: Hashable, of: int) -> Callable[[], Any]:
        """Return a function that waits for the next message of a rank and returns its value.

        Args:
            channel: as for `send`.
            of: the sender, by its number in the world.

        """
        arrived = self.wanted(("message", channel), Wanted("messages", self.size, "int64", signal=True))
        number = self.next(("received", channel, of))

        def wait() -> Any:  # noqa: ANN401 - likewise
            self.do(self.rank.wait(arrived[of] >= number + 1))
            return self.mail["message", channel, number, of, self.me]

        return wait
