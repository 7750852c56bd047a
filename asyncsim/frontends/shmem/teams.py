"""Teams of PEs, and contexts: each a domain of its own."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.guest.answers import answers
from asyncsim.guest.domain import Domain
from asyncsim.guest.party import WORLD
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


class Team(AbstractContextManager["Team"]):
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
        """Its PEs, by their numbers in the world; none if it is invalid."""
        return range(present_pe().size) if self.key == WORLD else self._members if self.key else ()

    def usable(self, what: str) -> Team:
        """Return it.

        Raises:
            MisuseError: it is the invalid team, or was destroyed, or this PE is not in it.

        """
        if present_pe().me not in self.members:
            raise MisuseError(f"{what}: this PE is in no such team: it is invalid, destroyed, or of others")
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
        return self.members.index(me) if me in self.members else -1

    def n_pes(self) -> int:
        """Return how many PEs it has; -1: it is invalid."""
        return len(self.members) or -1

    @answers
    def translate_pe(self, pe: int | None = None, team: Team | None = None) -> int:
        """Return the number in `team` of a PE of this one; -1: it is not there."""
        number = self.my_pe() if pe is None else pe
        there = (TEAM_WORLD if team is None else team).members
        world = self.members[number] if 0 <= number < len(self.members) else -1
        return there.index(world) if world in there else -1

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

    def __exit__(self, *_: object) -> None:
        self.destroy()


class Ctx(AbstractContextManager["Ctx"]):
    """A context.

    Args:
        ctx: another one, which this is, too; None: none that can be used.

    """

    def __init__(self, ctx: Ctx | None = None) -> None:
        self.is_default: bool = ctx is not None and ctx.is_default
        self._domain: Domain | None = None if ctx is None else ctx._domain  # noqa: SLF001 - of the same class
        self._team: Team | None = None

    @staticmethod
    @answers
    def create(options: int = 0, team: Team | None = None) -> Ctx:
        """Make one."""
        del options
        pe, made = present_pe(), Ctx()
        made._domain, made._team = Domain(pe), None if team is None else team.usable("Ctx.create")
        pe.contexts.append(made)
        return made

    def destroy(self) -> None:
        """Complete what was issued on it, and end it."""
        pe, domain = present_pe(), self._domain
        if domain is not None:
            pe.quiet(domain)
            self._domain = None
            domain.end(pe)
            pe.contexts.remove(self)

    def domain(self) -> Domain | None:
        """Return the domain of its operations; None: that of the PE.

        Raises:
            MisuseError: it was destroyed, or never made.

        """
        if not self:
            raise MisuseError("this context is not valid: it was destroyed, or never made")
        return self._domain

    def get_team(self) -> Team:
        """Return the team that it was made of."""
        return self._team or Team()

    def fence(self) -> None:
        """Order what was issued on it before what will be."""
        present_pe().issue(self.domain(), lambda rank: rank.fence())

    def quiet(self) -> None:
        """Complete what was issued on it."""
        present_pe().quiet(self.domain())

    def __bool__(self) -> bool:
        return self.is_default or self._domain is not None

    def __exit__(self, *_: object) -> None:
        self.destroy()


TEAM_WORLD, TEAM_SHARED, TEAM_INVALID = Team(), Team(), Team()
TEAM_WORLD.key = TEAM_SHARED.key = WORLD
CTX_DEFAULT, CTX_INVALID = Ctx(), Ctx()
CTX_DEFAULT.is_default = True


def issued(what: str, pe: Any, ctx: Ctx | None) -> tuple[Domain | None, int]:
    """Return the domain of an operation, and the number in the world of the PE that it is to.

    Args:
        what: the call, for the message.
        pe: its number in the team of the context.
        ctx: the context; None: the default one.

    """
    team = TEAM_WORLD if ctx is None or not ctx.get_team() else ctx.get_team()
    return domain_of(ctx), team.members[present_pe().number(what, "PE", pe, len(team.members))]


def domain_of(ctx: Ctx | None) -> Domain | None:
    """Return the domain of a context; None: that of the PE, as the default context's."""
    return None if ctx is None else ctx.domain()
