"""Virtual time: of all ready operations, the one that would be done first.

Every operation keeps its actor busy for as long as the alpha-beta model says (`asyncsim.trace.price`),
on a rank of half the speed twice as long, and with jitter up to so much longer. A wait is done when
its cell is; what lands later begins to fly when it may. Each event gets the time at which it is done.
So a run shows what ordinary timing does; what other timing does is for the other schedulers.

Source: discrete-event simulation, as in SimPy; Hockney's model of a message.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from asyncsim.schedulers.seeds import checked, generator
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.price import ALPHA, BETA, Price

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Latency:
    """Operations in the order in which they are done in virtual time; of equals, the first actor's.

    Args:
        alpha: seconds a message or notify; also as text, ``1e-6``.
        beta: seconds a byte, likewise.
        jitter: an operation takes up to so much longer: 0.5 is half as long again.
        speeds: of rank 0, 1, … with a slash between: ``1/1/0.25`` makes rank 2 take four times as long.
            Ranks that are not named have speed 1.
        seed: of the jitter; runs of one scheduler differ.

    """

    __slots__ = ("_dice", "_done", "_jitter", "_now", "_price", "_runs", "_seed", "_speeds", "_text")

    def __init__(
        self,
        alpha: float | str = ALPHA,
        beta: float | str = BETA,
        jitter: float | str = 0.0,
        speeds: float | str = "",
        seed: int = 0,
    ) -> None:
        self._price = Price(alpha=_number("alpha", alpha), beta=_number("beta", beta))
        self._jitter = _number("jitter", jitter)
        self._speeds = [_number("speeds", part) for part in str(speeds).split("/")] if str(speeds) else []
        if 0.0 in self._speeds:
            raise MisuseError(f"latency: speeds={speeds!r}; a rank of speed 0 never gets anywhere")
        self._text = f",speeds={speeds}" if self._speeds else ""
        self._seed = checked("latency", "seed", seed)
        self._runs = 0
        self._start()

    def __str__(self) -> str:
        price = self._price
        return f"latency:alpha={price.alpha},beta={price.beta},jitter={self._jitter}{self._text},seed={self._seed}"

    def _start(self) -> None:
        self._dice = generator(self._seed, self._runs).random
        self._now = 0.0
        self._done: dict[int, tuple[Op, float]] = {}

    def now(self) -> float:
        """Return the time, in seconds, at which the operation that was chosen last is done."""
        return self._now

    def begin(self, actors: Sequence[Actor]) -> None:  # noqa: ARG002 - the protocol's
        """Start a run at time 0, with jitter of its own."""
        self._start()
        self._runs += 1

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return the operation that is done first."""
        known = self._done
        self._done = {}
        first, when = ready[0], inf
        for op in ready:
            order = op.actor.order
            before = known.get(order)
            # A wait that was ready, and is again after it was not, begins anew: it is another moment.
            time = before[1] if before is not None and before[0] is op else self._begin(op)
            self._done[order] = op, time
            if time < when:
                first, when = op, time
        self._now = when
        return first

    def _begin(self, op: Op) -> float:
        """Return when an operation is done that has just become ready.

        Its actor came to the gate when its last operation was done, which was the last choice; what was
        blocked became ready by that choice.
        """
        seconds = self._price.seconds(op)
        if self._jitter and seconds:
            seconds *= 1 + self._jitter * self._dice()
        if op.actor.rank < len(self._speeds):
            seconds /= self._speeds[op.actor.rank]
        return self._now + seconds


def _number(name: str, value: object) -> float:
    """Return a number that is at least 0, also from its text."""
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number < inf:
        raise MisuseError(f"latency: {name}={value!r}; give a number, at least 0")
    return number
