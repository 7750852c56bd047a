"""Making a call: what the functions of the dialect do when they have checked their arguments."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from asyncsim.frontends.torch_dist.groups import found
from asyncsim.frontends.torch_dist.line import here

if TYPE_CHECKING:
    from asyncsim.frontends.torch_dist.call import Call
    from asyncsim.frontends.torch_dist.groups import Group
    from asyncsim.frontends.torch_dist.session import Participant
    from asyncsim.frontends.torch_dist.team import ProcessGroup, Team


class Work:
    """An asynchronous call under way.

    Args:
        me: the rank that made it.
        call: the call.

    """

    def __init__(self, me: Participant, call: Call) -> None:
        self._me = me
        self._call = call

    @property
    def name(self) -> str:
        """What was called."""
        return self._call.name

    @property
    def asynchronous(self) -> bool:
        """Whether the call returns before it is complete; torch's own code says so after it has made the call."""
        return self._call.asynchronous

    @asynchronous.setter
    def asynchronous(self, value: bool) -> None:
        self._call.asynchronous = value

    def wait(self, timeout: object = None) -> bool:  # noqa: ARG002 - nothing takes time here
        """Wait until the call is complete and its result is there; return True."""
        self._me.wait(self._call)
        return True

    def is_completed(self) -> bool:
        """Say whether the call is complete, after every other rank had a turn."""
        return self._me.look(self._call)

    def is_success(self) -> bool:
        """Say whether the call is complete; one that cannot be raises."""
        return self.is_completed()


def member(name: str, group: Group) -> tuple[Participant, ProcessGroup] | None:
    """Return who calls on which group; None, with a warning, if the rank is no member of it.

    Args:
        name: of the collective, for the warning.
        group: None: the default group.

    """
    me, own = found(group)
    if own is None:
        line = here()
        text = f"Running {name} on global rank {me.rank} which does not belong to the given group."
        warnings.warn_explicit(text, UserWarning, line.file, line.number)
        return None
    return me, own


def made(me: Participant, own: ProcessGroup, call: Call, *, async_op: bool, team: Team | None = None) -> Work | None:
    """Make a call, and wait for it unless it is asynchronous.

    Args:
        me: the rank that calls.
        own: the group.
        call: what is called.
        async_op: return at once.
        team: who meets, if not all members of the group.

    Returns:
        None for a synchronous call, else its `Work`.

    """
    call.asynchronous = async_op
    me.make(call, own.team if team is None else team)
    if async_op:
        return Work(me, call)
    me.wait(call)
    return None
