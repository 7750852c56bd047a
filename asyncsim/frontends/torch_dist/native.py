"""Real torch, a thread a rank: what a process has once of ``torch.distributed`` is a rank's own; groups are ours."""

from __future__ import annotations

import importlib
import re
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist import backend, cuda, profiler
from asyncsim.frontends.torch_dist.call import BARRIER, Call
from asyncsim.frontends.torch_dist.launching import Process, spawn
from asyncsim.frontends.torch_dist.session import participant, when_brought
from asyncsim.frontends.torch_dist.stores import SharedStore, store_at
from asyncsim.frontends.torch_dist.team import ProcessGroup, Team
from asyncsim.frontends.torch_dist.torch_parts import DDP, c10d, torch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.frontends.torch_dist.session import Participant


class _Worlds:
    """Stands for ``_world``, in which torch keeps its groups: every rank has one of its own."""

    def __init__(self, real: Any) -> None:
        vars(self)["_real"] = real

    def _present(self) -> Any:
        me = participant()
        if me is None:
            return vars(self)["_real"]
        if me.torch is None:
            me.torch = SimpleNamespace(
                default_pg=None, pg_map={}, pg_names={}, pg_group_ranks={}, pg_backend_config={}, group_count=0,
                tags_to_pg={}, pg_to_tag={}, pg_coalesce_state={}, comms=[], pg_config_info=[],
            )  # fmt: skip
        return me.torch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._present(), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._present(), name, value)


def _rendezvous(url: str, rank: int = -1, world_size: int = -1, **_others: Any) -> Iterator[Any]:
    """Return what torch's function does: the ranks know each other already, whatever the URL names."""
    me = participant()
    if me is None:
        return iter(_REAL["rendezvous"](url, rank, world_size, **_others))
    _check_launch(me, rank, world_size)
    return iter([(store_at(me.session, url), me.rank, me.session.ranks)])


def _check_launch(me: Participant, rank: int, world_size: int) -> None:
    for what, given, right in (("world_size", world_size, me.session.ranks), ("rank", rank, me.rank)):
        if given not in (-1, right):
            raise ValueError(
                f"{what}={given}, but asyncsim launched this as rank {me.rank} of {me.session.ranks}; "
                "leave it out, or read it from the environment"
            )


def _new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Let all ranks meet, as `new_group` does; then let torch make the group."""
    me = participant()
    if me is None or me.torch is None or me.torch.default_pg is None:
        return _REAL["_new_group_with_tag"](ranks, *args, **kwargs)
    world = Team("world", tuple(range(me.session.ranks)))
    if not kwargs.get("sort_ranks", True):
        raise ValueError("new_group: asyncsim sorts the ranks of every group; leave sort_ranks out")
    local = kwargs.get("use_local_synchronization", False)
    made = _REAL["_new_group_with_tag"](ranks, *args, **kwargs)
    members = world.members if ranks is None else tuple(sorted(map(int, ranks)))
    if local and me.rank not in members:
        return made
    team = Team(f"local_{'_'.join(map(str, members))}", members) if local else world
    me.wait(me.make(Call("new_group", BARRIER, facts={"ranks": members}), team))
    return made


def _new_process_group(
    group_size: int, group_rank: int, ranks: Any, asked: Any, store: Any, group_name: str, backend_options: Any = None,
    timeout: Any = None, pg_tag: Any = None, device_id: Any = None, group_desc: Any = None,
) -> Any:  # fmt: skip
    """Make a group of ours where torch makes one of gloo's or NCCL's."""
    me = participant()
    if me is None:
        return _REAL["_new_process_group_helper"](
            group_size, group_rank, ranks, asked, store, group_name, backend_options, timeout, pg_tag, device_id,
            group_desc,
        )  # fmt: skip
    if group_name in c10d._world.pg_names.values():
        raise ValueError("The specified group name has already been created, please use a different group name")
    if pg_tag:
        existing = c10d._find_pg_by_ranks_and_tag(pg_tag, ranks)
        if existing:
            return existing, c10d._world.pg_map[existing][1]
    world = tuple(range(me.session.ranks))
    if ranks:
        members = tuple(ranks)
        if me.rank not in members:
            return c10d.GroupMember.NON_GROUP_MEMBER, None
        team = Team(re.sub(r"\W", "_", f"group_{group_name}"), members)
    else:
        _check_launch(me, group_rank, group_size)
        team = Team("world", world)
        me.wait(me.make(Call("init_process_group", BARRIER), Team("rendezvous", world)))
    group = backend.group_of(ProcessGroup(team, me.rank, str(asked)), group_name)
    group._set_group_name(group_name)
    group._set_group_desc(group_desc or "undefined")
    prefixed = c10d.PrefixStore(f"{group_name}/", store)
    tag = {"add_to_default_tag": True} if not pg_tag else {"pg_tag": f"user:{pg_tag}"}
    c10d._register_pg_in_world(
        group, backend_name=asked, store=prefixed, group_name=group_name,
        backend_config=str(c10d.BackendConfig(asked)), **tag,
    )  # fmt: skip
    return group, prefixed


def _table() -> list[tuple[Any, str, Any]]:
    spawning = importlib.import_module("torch.multiprocessing.spawn")
    multiprocessing = torch.multiprocessing
    stores = [
        (module, name, getattr(SharedStore, name.lower()))
        for module in (torch.distributed, c10d, importlib.import_module("torch.distributed.rendezvous"))
        for name in ("TCPStore", "FileStore", "HashStore")
        if hasattr(module, name)
    ]
    return [
        (c10d, "rendezvous", _rendezvous),
        (c10d, "_new_process_group_helper", _new_process_group),
        (c10d, "_new_group_with_tag", _new_group),
        (c10d, "_world", _Worlds(c10d._world)),
        (multiprocessing, "spawn", spawn),
        (spawning, "spawn", spawn),
        (multiprocessing, "Process", Process),
        (importlib.import_module("multiprocessing"), "Process", Process),
        *stores,
        *cuda.table(),
        *profiler.table(),
        (DDP, "__init__", _wrap),
    ]


_REAL: dict[str, Any] = {}


def _wrap(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any) -> None:  # noqa: ARG001 - torch's
    """Do ``DistributedDataParallel(module, device_ids=[rank])`` for a module that is on the CPU."""
    _REAL["__init__"](self, module, None, None, *args, **kwargs)


def _enter(me: Participant) -> None:
    """Let a rank find CUDA's devices; called in its thread."""
    if me.mode is None:
        me.mode = cuda.OnCpu()
        me.mode.__enter__()


def install() -> list[tuple[Any, str, Any]]:
    """Let ranks have torch's machinery, each its own; return what to put back."""
    table = _table()
    before = [(module, name, getattr(module, name)) for module, name, _ in table]
    before.append((sys, "excepthook", sys.excepthook))
    _REAL.update({name: value for module, name, value in before if module in (c10d, DDP)})
    for module, name, value in table:
        setattr(module, name, value)
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    when_brought.append(_enter)
    me = participant()
    if me is not None:
        _enter(me)
    return before


def remove(before: list[tuple[Any, str, Any]]) -> None:
    """Put everything back.

    Args:
        before: what `install` returned.

    """
    torch._C._distributed_c10d._set_thread_isolation_mode(False)
    when_brought.remove(_enter)
    for module, name, value in before:
        setattr(module, name, value)
