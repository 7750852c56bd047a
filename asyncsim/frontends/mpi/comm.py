"""Communicators: messages and collectives, as far as scripts with windows need them."""

# ruff: noqa: N802 - MPI's names
from __future__ import annotations

from functools import reduce as fold
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.mpi.datatypes import OPS, Op, buffer
from asyncsim.frontends.mpi.proc import Proc, present_rank
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from asyncsim.guest.places import Array

ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED = -1, -1, -2, -32766


class Request:
    """An operation under way."""

    def __init__(self, finish: Callable[[], Any]) -> None:
        self._finish: Callable[[], Any] | None = finish
        self._result: Any = None

    def wait(self, status: Any = None) -> Any:
        """Wait for it, and return what it gives."""
        del status
        if self._finish is not None:
            finish, self._finish = self._finish, None
            self._result = finish()
        return self._result

    def Wait(self, status: Any = None) -> bool:
        """Wait for it."""
        self.wait(status)
        return True

    @staticmethod
    @answers
    def Waitall(requests: Sequence[Request], statuses: Any = None) -> bool:
        """Wait for all."""
        del statuses
        for request in requests:
            request.wait()
        return True

    waitall = Waitall


class Group:
    """Ranks, by their numbers in the world."""

    def __init__(self, members: Sequence[int]) -> None:
        self.members = tuple(members)

    @answers
    def Incl(self, ranks: Sequence[int]) -> Group:
        """Return the group of some of them."""
        return Group([self.members[int(rank)] for rank in ranks])

    @answers
    def Excl(self, ranks: Sequence[int]) -> Group:
        """Return the group of all but some."""
        return Group([world for number, world in enumerate(self.members) if number not in set(ranks)])

    def Get_size(self) -> int:
        """Return how many there are."""
        return len(self.members)

    def Free(self) -> None:
        """Do nothing."""


class Comm:
    """A communicator.

    Args:
        key: what sets it apart; None: none that can be used.
        members: its ranks, by their numbers in the world; None: all.

    """

    def __init__(self, key: Hashable, members: Sequence[int] | None = None) -> None:
        self.key = key
        self._members = members

    @property
    def members(self) -> list[int]:
        """Its ranks, by their numbers in the world."""
        return list(range(present_rank().size)) if self._members is None else list(self._members)

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return self.members.index(present_rank().me)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.members)

    def Get_rank(self) -> int:
        """Return the number of this rank."""
        return self.rank

    def Get_size(self) -> int:
        """Return how many there are."""
        return self.size

    def Get_group(self) -> Group:
        """Return its ranks."""
        return Group(self.members)

    def Free(self) -> None:
        """Do nothing."""

    @answers
    def Abort(self, errorcode: int = 0) -> None:
        """Refuse to end the other ranks."""
        raise RefusedError(f"Abort({errorcode}) ends all ranks wherever they are, which is not followed")

    def begin(self, what: str, **facts: Any) -> Proc:
        """Take part in a collective; return this rank.

        Args:
            what: the call.
            facts: what must be the same for all.

        """
        own = present_rank()
        own.collective(what, self.key, **facts)
        return own

    def world(self, what: str, rank: Any) -> int:
        """Return the number in the world of one of its ranks.

        Args:
            what: the call, for the message.
            rank: what was given for it.

        """
        return self.members[present_rank().number(what, "rank", rank, self.size)]

    @answers
    def Split(self, color: int = 0, key: int = 0) -> Comm:
        """Return the communicator of those with the same colour."""
        own = self.begin("Split")
        number = own.next(("split", self.key))
        told = own.hand(self.key, (color, key), to=self.members, of=self.members)
        if color == UNDEFINED:
            return Comm(None, ())
        same = sorted(
            (told[world][1], place, world) for place, world in enumerate(self.members) if told[world][0] == color
        )
        members = tuple(world for _, _, world in same)
        return Comm((self.key, number, members), members)

    @answers
    def Split_type(self, split_type: int = 0, key: int = 0, info: Any = None) -> Comm:
        """Return all: the ranks share one machine."""
        del split_type, info
        return self.Split(0, key)

    def Dup(self) -> Comm:
        """Return another one of the same ranks."""
        return self.Split(0, self.rank)

    # ---- messages

    def _channel(self, tag: int) -> Hashable:
        if tag == ANY_TAG:
            raise RefusedError("ANY_TAG is not followed; name the tag")
        return (self.key, int(tag))

    def _of(self, what: str, source: int) -> int:
        if source == ANY_SOURCE:
            raise RefusedError(f"{what} from ANY_SOURCE is not followed; name the rank")
        return self.world(what, source)

    @answers
    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        if dest != PROC_NULL:
            present_rank().send(self._channel(tag), self.world("send", dest), use(obj))

    @answers
    def recv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = 0, status: Any = None) -> Any:
        """Receive an object."""
        del buf, status
        return None if source == PROC_NULL else present_rank().receive(self._channel(tag), self._of("recv", source))()

    @answers
    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Send an object."""
        self.send(obj, dest, tag)
        return Request(lambda: None)

    @answers
    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        """Receive an object."""
        del buf
        return Request(present_rank().receive(self._channel(tag), self._of("irecv", source)))

    @answers
    def sendrecv(self, sendobj: Any, dest: int, sendtag: int = 0, recvbuf: Any = None, source: int = ANY_SOURCE,
                 recvtag: int = 0, status: Any = None) -> Any:  # fmt: skip
        """Send one, and receive one."""
        self.send(sendobj, dest, sendtag)
        return self.recv(recvbuf, source, recvtag, status)

    @answers
    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send elements."""
        self.send(buffer("Send", buf), dest, tag)

    Ssend = Bsend = Rsend = Send

    @answers
    def Recv(self, buf: Any, source: int = ANY_SOURCE, tag: int = 0, status: Any = None) -> None:
        """Receive elements."""
        del status
        if source != PROC_NULL:
            self.Irecv(buf, source, tag).wait()

    @answers
    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Send elements."""
        self.send(buffer("Isend", buf), dest, tag)
        return Request(lambda: None)

    @answers
    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        """Receive elements."""
        wait = present_rank().receive(self._channel(tag), self._of("Recv", source))
        return Request(lambda: fill("Recv", buffer("Recv", buf), wait()))

    @answers
    def Sendrecv(self, sendbuf: Any, dest: int, sendtag: int = 0, recvbuf: Any = None, source: int = ANY_SOURCE,
                 recvtag: int = 0, status: Any = None) -> None:  # fmt: skip
        """Send some, and receive some."""
        self.Send(sendbuf, dest, sendtag)
        self.Recv(recvbuf, source, recvtag, status)

    # ---- collectives

    def Barrier(self) -> None:
        """Meet; completes no operation on a window."""
        self.begin("Barrier").sync(self.key, self.members)

    barrier = Barrier

    @answers
    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Hand the root's object to all."""
        own, home = self.begin("bcast", root=root), self.world("bcast", root)
        mine = own.me == home
        told = own.hand(self.key, use(obj), to=self.members if mine else [], of=[home])
        return told[home]

    @answers
    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Hand all objects to the root."""
        own, home = self.begin("gather", root=root), self.world("gather", root)
        told = own.hand(self.key, use(sendobj), to=[home], of=self.members if own.me == home else [])
        return [told[world] for world in self.members] if own.me == home else None

    @answers
    def scatter(self, sendobj: Any, root: int = 0) -> Any:
        """Hand each its own of the root's objects."""
        own, home = self.begin("scatter", root=root), self.world("scatter", root)
        told = own.hand(self.key, use(sendobj), to=self.members if own.me == home else [], of=[home])
        return told[home][self.rank]

    @answers
    def allgather(self, sendobj: Any) -> list[Any]:
        """Hand all objects to all."""
        told = self.begin("allgather").hand(self.key, use(sendobj), to=self.members, of=self.members)
        return [told[world] for world in self.members]

    @answers
    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Hand the n-th object to the n-th rank."""
        told = self.begin("alltoall").hand(self.key, list(sendobj), to=self.members, of=self.members)
        return [told[world][self.rank] for world in self.members]

    @answers
    def allreduce(self, sendobj: Any, op: Op = OPS["SUM"]) -> Any:
        """Combine all objects."""
        return fold(op.apply, self.allgather(sendobj))

    @answers
    def reduce(self, sendobj: Any, op: Op = OPS["SUM"], root: int = 0) -> Any:
        """Combine all objects at the root."""
        told = self.gather(sendobj, root)
        return None if told is None else fold(op.apply, told)

    @answers
    def Bcast(self, buf: Any, root: int = 0) -> None:
        """Copy the root's elements to all."""
        flat = buffer("Bcast", buf)
        told = self.bcast(flat.copy() if use(flat) is not None and self.rank == root else None, root)
        if self.rank != root:
            fill("Bcast", flat, told)

    @answers
    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = OPS["SUM"]) -> None:
        """Combine the elements of all."""
        target = buffer("Allreduce", recvbuf)
        fill("Allreduce", target, self.allreduce(_sent("Allreduce", sendbuf, target), op))

    @answers
    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = OPS["SUM"], root: int = 0) -> None:
        """Combine the elements of all at the root."""
        mine = self.rank == root
        made = self.reduce(_sent("Reduce", sendbuf, buffer("Reduce", recvbuf) if mine else None), op, root)
        if mine:
            fill("Reduce", buffer("Reduce", recvbuf), made)

    @answers
    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Concatenate the elements of all."""
        target = buffer("Allgather", recvbuf)
        fill("Allgather", target, np.concatenate(self.allgather(_sent("Allgather", sendbuf, None))))

    @answers
    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Concatenate the elements of all at the root."""
        told = self.gather(_sent("Gather", sendbuf, None), root)
        if told is not None:
            fill("Gather", buffer("Gather", recvbuf), np.concatenate(told))

    @answers
    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        """Hand each its own part of the root's elements."""
        parts = np.split(_sent("Scatter", sendbuf, None), self.size) if self.rank == root else None
        fill("Scatter", buffer("Scatter", recvbuf), self.scatter(parts, root))

    @answers
    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Hand the n-th part to the n-th rank."""
        parts = np.split(_sent("Alltoall", sendbuf, None), self.size)
        fill("Alltoall", buffer("Alltoall", recvbuf), np.concatenate(self.alltoall(parts)))


def _sent(what: str, given: Any, in_place: Array | None) -> Array:
    """Return a copy of what is sent; of MPI.IN_PLACE, what is there already."""
    flat = in_place if isinstance(given, str) and given == IN_PLACE and in_place is not None else buffer(what, given)
    made: Array = use(flat).copy()
    return made


def fill(what: str, target: Array, values: Any) -> None:
    """Store values to an array.

    Args:
        what: the call, for the message.
        target: where to.
        values: of them.

    Raises:
        MisuseError: they are more than it holds, or of another type.

    """
    given = np.asarray(values).reshape(-1)
    if given.size > target.size:
        raise MisuseError(f"{what}: {given.size} elements come, and the buffer has {target.size}: truncated")
    if given.dtype.itemsize != target.itemsize:
        raise MisuseError(f"{what}: {given.dtype} comes, and the buffer holds {target.dtype}")
    target[: given.size] = given
    own = present_rank()
    block = own.places.find(target)
    if block is not None:
        own.store(block, target[: given.size])


IN_PLACE = "MPI.IN_PLACE"
