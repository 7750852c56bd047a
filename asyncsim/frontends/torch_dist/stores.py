"""Stores of torch's, in which ranks leave values for each other: a dictionary of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.session import CallMismatchError, participant
from asyncsim.frontends.torch_dist.torch_parts import StoreBase
from asyncsim.guest.answers import answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.torch_dist.session import Session


def store_at(session: Session, name: str) -> SharedStore:
    """Return the store that all ranks of a session find under a name.

    Args:
        session: whose.
        name: such as its host and port.

    """
    return SharedStore(session, session.stores.setdefault(name, {}))


class SharedStore(StoreBase):  # type: ignore[misc]  # torch need not be installed
    """A store; whoever waits for a key gives its turn away.

    Args:
        session: whose.
        values: by key.

    """

    def __init__(self, session: Session, values: dict[str, bytes]) -> None:
        super().__init__()
        self._session, self._values = session, values

    @staticmethod
    @answers
    def tcpstore(host_name: str, port: int = 0, *_args: object, **_kwargs: object) -> SharedStore:
        """Return the store of a host and a port."""
        return _present(f"tcp://{host_name}:{port}")

    @staticmethod
    @answers
    def filestore(file_name: str, world_size: int = -1) -> SharedStore:  # noqa: ARG004 - torch's
        """Return the store of a file, which is not made."""
        return _present(f"file://{file_name}")

    @staticmethod
    def hashstore() -> SharedStore:
        """Return a store of the process's own: here it serves the ranks, which are processes, one each."""
        me: Any = participant()
        return _present(f"hash://{me.rank}")

    @answers
    def set(self, key: str, value: str | bytes) -> None:
        """Leave a value."""
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key: str) -> bytes:
        """Return a value, as soon as it is there."""
        self.wait([key])
        return self._values[key]

    @answers
    def add(self, key: str, amount: int) -> int:
        """Add to a number, and return the sum."""
        total = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(total).encode()
        return total

    @answers
    def compare_set(self, key: str, expected: str | bytes, desired: str | bytes) -> bytes:
        """Set a value if it is the expected one; return the value that is there then."""
        old = self._values.get(key)
        wanted = expected.encode() if isinstance(expected, str) else bytes(expected)
        if old == wanted or (old is None and not wanted):
            self.set(key, desired)
        return self._values.get(key, wanted)

    def check(self, keys: Sequence[str]) -> bool:
        """Say whether all keys are there."""
        return all(key in self._values for key in keys)

    @answers
    def wait(self, keys: Sequence[str], timeout: object = None) -> None:  # noqa: ARG002 - nothing takes time here
        """Wait until all keys are there."""
        me = participant()
        session = self._session
        if me is None or self.check(keys):
            return
        session.turns.pause(me.rank, lambda: self.check(keys) or session.broken is not None)
        if not self.check(keys):
            raise CallMismatchError(f"rank {me.rank} waits for {list(keys)} in a store, and nobody sets it")

    def delete_key(self, key: str) -> bool:
        """Remove a value; say whether it was there."""
        return self._values.pop(key, None) is not None

    def num_keys(self) -> int:
        """Return how many values there are."""
        return len(self._values)

    def set_timeout(self, timeout: object) -> None:
        """Do nothing: nothing takes time here."""


def _present(name: str) -> SharedStore:
    me = participant()
    if me is None:
        raise RuntimeError("a store belongs to ranks; start the script with asyncsim torchrun -n P SCRIPT.py")
    return store_at(me.session, name)
