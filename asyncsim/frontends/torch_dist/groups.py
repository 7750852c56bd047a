"""Process groups, and the functions that make and ask them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.call import BARRIER, Call
from asyncsim.frontends.torch_dist.session import Participant, initialised, participant
from asyncsim.frontends.torch_dist.team import BACKEND, ProcessGroup, Team

if TYPE_CHECKING:
    from collections.abc import Sequence


class GroupMember:
    """What stands for groups that are not objects of their own."""

    NON_GROUP_MEMBER = -100


class _World(type):
    """Lets ``group.WORLD`` be the present rank's default group."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 - torch's name
        """The default group; None before it is initialised."""
        found = participant()
        return None if found is None else found.world


class group(metaclass=_World):  # noqa: N801 - torch's name
    """Holds the default group: ``group.WORLD``."""


Group = ProcessGroup | int | None
"""What functions take as `group`: a group, `GroupMember.NON_GROUP_MEMBER`, or None for the default one."""


def found(given: Any) -> tuple[Participant, ProcessGroup | None]:  # noqa: ANN401 - whatever a script gives
    """Return who asks, and the group that is meant; None for one that this rank is no member of."""
    me = participant()
    if me is not None and isinstance(given, ProcessGroup):
        return me, given if me.rank in given.team.members else None
    me = initialised()
    if given is None:
        return me, me.world
    if given == GroupMember.NON_GROUP_MEMBER:
        return me, None
    raise TypeError(f"group must be a process group of new_group, or None, got {type(given).__name__}")


def init_process_group(  # noqa: PLR0913, PLR0917 - torch's parameters
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,  # noqa: ANN401, ARG001 - nothing takes time here
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,  # noqa: ANN401, ARG001 - the ranks know each other already
    group_name: str = "",  # noqa: ARG001
    pg_options: Any = None,  # noqa: ANN401, ARG001
    device_id: Any = None,  # noqa: ANN401, ARG001
) -> None:
    """Make the default group, of all ranks; every rank must, and waits for the others.

    Whatever `init_method` says, the ranks are those of the launch.

    Args:
        backend: its name, as `get_backend` shall return it; None: "gloo". What is simulated is the same.
        init_method: as in torch; not used.
        timeout: as in torch; nothing takes time here.
        world_size: P; -1: that of the launch.
        rank: from 0; -1: that of the launch.
        store: as in torch; not used.
        group_name: as in torch; not used.
        pg_options: as in torch; not used.
        device_id: as in torch; not used.

    Raises:
        ValueError: it was made before; or world_size or rank are not those of the launch.
        RuntimeError: nobody launched any ranks.

    """
    me = participant()
    if me is None:
        raise RuntimeError("there are no ranks: start the script with asyncsim torchrun -n P SCRIPT.py")
    if me.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    ranks = me.session.ranks
    for what, given, right in (("world_size", world_size, ranks), ("rank", rank, me.rank)):
        if given not in (-1, right):
            raise ValueError(
                f"{what}={given}, but asyncsim launched this as rank {me.rank} of {ranks}; "
                "leave it out, or read it from the environment"
            )
    del init_method
    team = Team("world", tuple(range(ranks)))
    me.wait(me.make(Call("init_process_group", BARRIER), Team("rendezvous", team.members)))
    me.world = ProcessGroup(team, me.rank, BACKEND if backend is None else str(backend).lower())


def is_available() -> bool:
    """Say that there is a ``torch.distributed``."""
    return True


def is_gloo_available() -> bool:
    """Say that there is gloo: its behaviour is followed."""
    return True


def is_nccl_available() -> bool:
    """Say that there is no NCCL: tensors are on the CPU."""
    return False


def is_mpi_available() -> bool:
    """Say that there is no MPI."""
    return False


def is_initialized() -> bool:
    """Say whether this rank has a default group."""
    return group.WORLD is not None


def destroy_process_group(group: Group = None) -> None:
    """Forget a group, or with None all of them.

    Raises:
        AssertionError: there is none.

    """
    me = participant()
    if me is None or me.world is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is me.world:
        me.world = None


def new_group(  # noqa: PLR0913, PLR0917 - torch's parameters
    ranks: Sequence[int] | None = None,
    timeout: Any = None,  # noqa: ANN401, ARG001 - nothing takes time here
    backend: str | None = None,
    pg_options: Any = None,  # noqa: ANN401, ARG001
    use_local_synchronization: bool = False,  # noqa: FBT001, FBT002 - torch's parameter
    group_desc: str | None = None,  # noqa: ARG001
    device_id: Any = None,  # noqa: ANN401, ARG001
    sort_ranks: bool = True,  # noqa: FBT001, FBT002 - torch's parameter
) -> ProcessGroup | int:
    """Make a group of some ranks, sorted; every rank of the world must, member or not, and waits for the others.

    Args:
        ranks: the members; None: all.
        timeout: of no effect, as nothing takes time here.
        backend: a name for `get_backend`.
        pg_options: of no effect.
        use_local_synchronization: only the members call it.
        group_desc: of no effect.
        device_id: of no effect.
        sort_ranks: must be true.

    Returns:
        The group; for a rank that is no member `GroupMember.NON_GROUP_MEMBER`.

    Raises:
        ValueError: a rank is named twice, or is none.

    """
    me = initialised()
    if not sort_ranks:
        raise ValueError("new_group: asyncsim sorts the ranks of every group; leave sort_ranks out")
    size = me.session.ranks
    listed = list(range(size)) if ranks is None else [int(rank) for rank in ranks]
    if len(set(listed)) < len(listed):
        raise ValueError(f"ranks list must not contain duplicate entries, got {listed}")
    for rank in listed:
        if not 0 <= rank < size:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    members = tuple(sorted(listed))
    call = Call("new_group", BARRIER, facts={"ranks": members})
    if use_local_synchronization:
        if me.rank not in members:
            return GroupMember.NON_GROUP_MEMBER
        made = me.local_groups[members] = me.local_groups.get(members, 0) + 1
        team = Team(f"local_{'_'.join(map(str, members))}_{made}", members)
        me.wait(me.make(call, team))
    else:
        me.groups += 1
        team = Team(f"group_{me.groups}", members)
        me.wait(me.make(call, Team("world", tuple(range(size)))))
    if me.rank not in members:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(team, me.rank, _backend(me) if backend is None else str(backend).lower())


def get_rank(group: Group = None) -> int:
    """Return this rank's number in a group; -1 if it is no member."""
    _, own = found(group)
    return -1 if own is None else own.rank()


def get_world_size(group: Group = None) -> int:
    """Return how many members a group has; -1 if this rank is none."""
    _, own = found(group)
    return -1 if own is None else own.size()


def get_backend(group: Group = None) -> str:
    """Return what the group was asked for as; every group behaves as gloo's do."""
    _, own = found(group)
    if own is None:
        raise ValueError("Invalid process group specified")
    return own.backend


def get_group_rank(group: Group, global_rank: int) -> int:
    """Return the number in a group of a rank of the world.

    Args:
        group: None: the default group.
        global_rank: a number in the world.

    Raises:
        ValueError: the rank is not in the group.

    """
    own = _given(group)
    if global_rank not in own.team.members:
        raise ValueError(f"Global rank {global_rank} is not part of group {own}")
    return own.team.members.index(global_rank)


def get_global_rank(group: Group, group_rank: int) -> int:
    """Return the number in the world of a member of a group.

    Args:
        group: None: the default group.
        group_rank: a number in the group.

    Raises:
        ValueError: the group has no such member.

    """
    own = _given(group)
    if not 0 <= group_rank < own.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {own}")
    return own.team.members[group_rank]


def get_process_group_ranks(group: Group = None) -> list[int]:
    """Return the members of a group by their numbers in the world, ascending."""
    return list(_given(group).team.members)


def _given(group: Group) -> ProcessGroup:
    """Return the group that is meant, member or not."""
    _, own = found(group)
    given = group if isinstance(group, ProcessGroup) else own
    if given is None:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return given


def _backend(me: Participant) -> str:
    return BACKEND if me.world is None else me.world.backend
