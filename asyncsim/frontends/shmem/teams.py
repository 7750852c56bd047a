"""Teams of PEs, and contexts.

Operations on a context are ordered and completed apart from those on others. Each is a stream of its PE, which does
what it is handed and nothing else; so a fence or a quiet on it concerns what was issued on it alone. The PE waits while
its context issues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.guest.answers import answers
from asyncsim.guest.host import blocking, hosted
from asyncsim.guest.line import at_line, present_line
from asyncsim.guest.party import WORLD
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence

    from asyncsim.guest.line import Line
    from asyncsim.machine.rank import Rank
    from asyncsim.machine.stream import StreamBarrier


class Team:
    """A team.

    Args:
        team: another one, which this is, too; None: none that can be used.

    Attributes:
        key: what sets it apart from other teams; None: it is the invalid one.

    """

    def __init__(self, team: Team | None = None) -> None:
        self.key: Hashable = None if team is None else team.key
        self._members: Sequence[int] = () if team is None else team._members  # noqa: SLF001 - of the same class

    @property
    def members(self) -> Sequence[int]:
        """Its PEs, by their numbers in the world."""
        return range(present_pe().size) if self.key == WORLD else self._members

    def usable(self, what: str) -> Team:
        """Return it.

        Raises:
            MisuseError: it is the invalid team, or was destroyed, or this PE is not in it.

        """
        if self.key is None or present_pe().me not in self.members:
            raise MisuseError(
                f"{what}: this PE is in no such team: it is invalid, was destroyed, or was made of others"
            )
        return self

    def destroy(self) -> None:
        """Make it unusable; the world stays."""
        if self.key not in (None, WORLD):
            self.key = None

    @answers
    def split_strided(self, start: int = 0, stride: int = 1, size: int | None = None,
                      config: Mapping[str, int] | None = None, **kwargs: int) -> Team:  # fmt: skip
        """Return the team of every `stride`-th member from `start` on; an invalid one to all others."""
        del config, kwargs
        pe = present_pe()
        members = self.usable("split_strided").members
        if size is None:
            size = len(range(start, len(members), stride))
        places = [start + n * stride for n in range(size)]
        if not places or not all(0 <= place < len(members) for place in places):
            raise MisuseError(
                f"split_strided: start {start}, stride {stride}, size {size}: the team has {len(members)} PEs"
            )
        pe.collective("team_split_strided", self.key, start=start, stride=stride, size=size)
        made = Team()
        number = pe.next(("split", self.key))
        chosen = tuple(members[place] for place in places)
        if pe.me in chosen:
            made.key, made._members = (self.key, number, chosen), chosen
        return made

    def my_pe(self) -> int:
        """Return the number of this PE in it; -1: it is not in it."""
        me = present_pe().me
        return list(self.members).index(me) if self.key is not None and me in self.members else -1

    def n_pes(self) -> int:
        """Return how many PEs it has; -1: it is invalid."""
        return -1 if self.key is None else len(self.members)

    @answers
    def translate_pe(self, pe: int | None = None, team: Team | None = None) -> int:
        """Return the number in `team` of a PE of this one; -1: it is not there."""
        number = self.my_pe() if pe is None else pe
        other = TEAM_WORLD if team is None else team
        if self.key is None or other.key is None or not 0 <= number < len(self.members):
            return -1
        world = self.members[number]
        return list(other.members).index(world) if world in other.members else -1

    def get_config(self) -> dict[str, int]:
        """Return its configuration."""
        return {"num_contexts": 0}

    def create_ctx(self, options: int = 0) -> Ctx:
        """Make a context of it."""
        return Ctx.create(options, self)

    def sync(self) -> None:
        """Meet its other members; completes no put."""
        pe = present_pe()
        self.usable("sync")
        pe.collective("sync_all", self.key)
        pe.sync(self.key, self.members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Team) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __bool__(self) -> bool:
        return self.key is not None

    def __enter__(self) -> Team:  # noqa: PYI034 - it returns itself
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


class _Desk:
    """What a PE hands to a context, and what comes back."""

    def __init__(self, meeting: StreamBarrier) -> None:
        self.meeting = meeting
        self.order: Callable[[Rank], Coroutine[Any, Any, Any]] | None = None
        self.line: Line | None = None
        self.result: Any = None


async def _context(rank: Rank, desk: _Desk) -> None:
    await hosted(_serve, rank, desk)


def _serve(rank: Rank, desk: _Desk) -> None:
    """Do what is handed over, until nothing is."""
    while True:
        blocking(rank.sync(desk.meeting))
        if desk.order is None or desk.line is None:
            return
        desk.result = at_line(desk.line)(blocking, desk.order(rank))
        blocking(rank.sync(desk.meeting))


class Ctx:
    """A context.

    Args:
        ctx: another one, which this is, too; None: none that can be used.

    """

    def __init__(self, ctx: Ctx | None = None) -> None:
        self.is_default: bool = ctx is not None and ctx.is_default
        self._desk: _Desk | None = None if ctx is None else ctx._desk  # noqa: SLF001 - of the same class
        self._stream: Any = None if ctx is None else ctx._stream  # noqa: SLF001 - as above
        self._team: Team | None = None

    @staticmethod
    @answers
    def create(options: int = 0, team: Team | None = None) -> Ctx:
        """Make one."""
        del options
        pe = present_pe()
        made = Ctx()
        made._desk, made._team = _Desk(pe.rank.stream_barrier(2)), team
        made._stream = pe.do(pe.rank.start(_context, made._desk))
        pe.contexts.append(made)
        return made

    def run(self, make: Callable[[Rank], Coroutine[Any, Any, Any]]) -> Any:
        """Do an operation on it.

        Raises:
            MisuseError: it was destroyed, or never made.

        """
        desk, pe = self._desk, present_pe()
        if desk is None:
            raise MisuseError("this context is not valid: it was destroyed, or never made")
        desk.order, desk.line = make, present_line()
        meeting = desk.meeting

        async def both(rank: Rank) -> None:
            await rank.sync(meeting)
            await rank.sync(meeting)

        pe.do(both(pe.rank))
        return desk.result

    def destroy(self) -> None:
        """Complete what was issued on it, and end it."""
        desk, stream, pe = self._desk, self._stream, present_pe()
        if desk is None:
            return
        pe.quiet(self)
        self._desk, desk.order, meeting = None, None, desk.meeting

        async def end(rank: Rank) -> None:
            await rank.sync(meeting)
            await rank.join(stream)

        pe.do(end(pe.rank))
        pe.contexts.remove(self)

    def get_team(self) -> Team:
        """Return the team that it was made of."""
        return self._team or Team()

    def fence(self) -> None:
        """Order what was issued on it before what will be."""
        present_pe().issue(self, lambda rank: rank.fence())

    def quiet(self) -> None:
        """Complete what was issued on it."""
        present_pe().quiet(self)

    def __bool__(self) -> bool:
        return self.is_default or self._desk is not None

    def __enter__(self) -> Ctx:  # noqa: PYI034 - it returns itself
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()


TEAM_WORLD, TEAM_SHARED, TEAM_INVALID = Team(), Team(), Team()
TEAM_WORLD.key = TEAM_SHARED.key = WORLD
CTX_DEFAULT, CTX_INVALID = Ctx(), Ctx()
CTX_DEFAULT.is_default = True
