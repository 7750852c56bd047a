"""Scripts that start their ranks themselves, by ``mp.spawn`` or ``Process``: they are the ranks of the launch.

Every rank runs the script, and what it starts as its own number is run by that rank, in its place.
"""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.session import participant
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

_RealProcess = multiprocessing.Process


def _refuse(started: int, ranks: int) -> None:
    if started != ranks:
        raise MisuseError(f"the script starts {started} processes, and -n says {ranks} ranks; give -n {started}")


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Do ``torch.multiprocessing.spawn``: this rank runs the function, with its number before the arguments.

    Args:
        fn: the function.
        args: for it, after the number.
        nprocs: must be the number of ranks.
        join: as in torch; it is joined in any case.
        daemon: as in torch; not used.
        start_method: likewise.

    Raises:
        MisuseError: there are more ranks, or fewer.

    """
    me = participant()
    if me is None:
        raise MisuseError("mp.spawn: there are no ranks: start the script with asyncsim torchrun -n P SCRIPT.py")
    _refuse(nprocs, me.session.ranks)
    del daemon, start_method
    fn(me.rank, *args)
    return None if join else _Joined()


class _Joined:
    """Stands for the context of processes that have ended."""

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:  # noqa: ARG002 - torch's
        """Say that all have ended."""
        return True


class Process(_RealProcess):
    """A process that a script starts: the n-th is rank n, run by that rank; torch's own, as a loader's, are real."""

    def start(self) -> None:
        """Start it."""
        me = participant()
        target: Any = getattr(self, "_target", None)
        if me is None or (getattr(target, "__module__", "") or "").startswith("torch."):
            super().start()
            return
        number, me.started = me.started, me.started + 1
        if number >= me.session.ranks:
            raise MisuseError(
                f"the script starts {number + 1} processes or more, and -n says {me.session.ranks} ranks; "
                "give -n the number of its processes"
            )
        if number == me.rank:
            self.run()
        self._ended = True

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if not hasattr(self, "_ended"):
            super().join(timeout)

    @property
    def exitcode(self) -> int | None:
        """The status that it ended with; None: it goes on."""
        return 0 if hasattr(self, "_ended") else super().exitcode
