"""Who a rank is: its number, its peers and its group, the call it is in, and what it says of itself."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Self

from asyncsim.machine.phase import Phase
from asyncsim.trace.declare import WORLD

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.machine.calluse import CallUse
    from asyncsim.machine.stream import Named, Stream
    from asyncsim.trace.declare import Group
    from asyncsim.trace.world import Actor, World


class Member:
    """What a rank is without a step of its own; `asyncsim.Rank` adds what it does.

    Args:
        actor: the rank itself, or one of its streams.
        world: what it is a member of.
        deferred: what it does to peers lands later.

    """

    __slots__ = (
        "_adapter", "_barriers", "_deferred", "_home", "_number", "_streams", "_whole", "_world", "actor", "begin",
        "call", "group", "id", "members", "named", "note", "open_streams", "peers", "phase_name", "size",
        "unfinished",
    )  # fmt: skip

    def __init__(self, actor: Actor, world: World, *, deferred: bool = False, adapter: bool = False) -> None:
        """Act as `actor` in `world`; `deferred`: its effects on peers land later; `adapter`: and its puts to itself."""
        self._home = actor.rank
        self._be(WORLD, world.groups[WORLD])
        self._whole: Self | None = None  # a rank that led to itself would wait for the garbage collector
        self.calling(0)
        self.phase_name = ""
        self.actor = actor
        self.open_streams: list[str] = []
        self.named: dict[str, Named[Any]] = {}  # the streams with a name that this actor has started
        self.unfinished: list[str] = []  # what it may not return in the middle of, as the end of a sentence
        self.begin: Callable[[Stream[Any], Member], None] | None = None
        self.note: Callable[[Any, str, dict[str, Any]], None] | None = None
        self._streams = count(1)
        self._barriers = count(1)
        self._world = world
        self._deferred = deferred
        self._adapter = adapter

    def _be(self, group: str, members: tuple[int, ...]) -> None:
        """Take the numbers of a group."""
        self.group = group
        self.members = members
        self.id = members.index(self._home)
        self.size = len(members)
        self.peers = (*range(self.id), *range(self.id + 1, self.size))

    def calling(self, number: int, use: CallUse | None = None) -> None:
        """Begin a call; `use` is told what the kernel does with its number.

        Args:
            number: of the call, from 0.
            use: None: it is not asked for.

        """
        self._number = number
        # To a kernel it is an integer; one that tells of its use is handed out in a single run.
        self.call: int = number if use is None else use.number(number)  # type: ignore[assignment]

    def _join(self, rank: Self, group: str, members: tuple[int, ...]) -> None:
        """Be `rank`, as a member of a group."""
        self._be(group, members)
        self._whole, self._streams, self._barriers = rank.whole, rank._streams, rank._barriers
        self.call, self._number, self.open_streams = rank.call, rank._number, rank.open_streams
        self.note, self.begin, self.unfinished, self.named = rank.note, rank.begin, rank.unfinished, rank.named

    def within(self, group: Group) -> Self:
        """Return this rank as a member of a group, for the present call.

        Its ``id``, ``size`` and ``peers`` are numbers of the group, as ``at`` takes them of windows and
        signals that were declared with ``group=``. All else is the same, so composites need not know.
        """
        members = self._world.members(group, self._home)
        team = type(self)(self.actor, self._world, deferred=self._deferred, adapter=self._adapter)
        team._join(self, group.name, members)  # noqa: SLF001 - it is one of these, too
        return team

    @property
    def whole(self) -> Self:
        """The same rank as a member of the world."""
        return self._whole or self

    def phase(self, name: str) -> Phase:
        """Label what happens in a ``with`` block, for reports and traces."""
        return Phase(self.whole, name)

    def collective(self, name: str, **facts: Any) -> None:  # noqa: ANN401 - texts, numbers, dtypes, tuples of these
        """Say that this rank now takes part in a collective, as every rank must that is in the same group.

        Composites say it; a kernel that writes its collectives by hand may. The n-th collective of a call is
        then compared between the ranks: another name, another fact (op, shape, dtype, root), or none at all
        is the finding *call-mismatch*. Where several streams of a rank say so, there is no order among them,
        and what the rank takes part in is compared as a whole. Nothing is scheduled, and nothing kept unless
        the run is recorded.

        Args:
            name: of the collective, not empty.
            facts: what must be the same on all members, by name.

        """
        if self.note is not None:
            self.note(self, name, facts)
