"""How much of what can happen a sample has not shown: Good and Turing's estimate, in bounded memory.

The probability that the next schedule shows a behaviour that none so far showed is about the share of
schedules whose behaviour was seen exactly once: Good, "The population frequencies of species and the
estimation of population parameters", Biometrika 40 (1953), equation 9. It is about what the same mix
of schedulers would show, not about what there is.

Memory stays bounded by keeping only the behaviours whose number lies below a threshold, which is
halved whenever they become too many, and counting each of them for all those that were dropped
(Gibbons, "Distinct sampling for highly-accurate answers to distinct values queries", VLDB 2001).
The outcome depends on the sample alone, not on its order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = 1 << 15
"""So many behaviours are kept; beyond it their numbers are estimates, within about one in a hundred."""
_BITS = 64


class GoodTuring:
    """The behaviours of a sample.

    Args:
        kept: how many are kept at most.

    """

    def __init__(self, kept: int = KEPT) -> None:
        self.schedules = 0
        self._most = kept
        self._shift = 0
        self._again: dict[int, bool] = {}

    def add(self, numbers: Iterable[int]) -> None:
        """Take the behaviours of some schedules, as uniform numbers of 64 bits."""
        again = self._again
        limit = 1 << _BITS - self._shift
        for number in numbers:
            self.schedules += 1
            if number < limit:
                again[number] = number in again
                if len(again) > self._most:
                    limit = self._halve()
                    again = self._again

    def _halve(self) -> int:
        while len(self._again) > self._most:
            self._shift += 1
            limit = 1 << _BITS - self._shift
            self._again = {number: again for number, again in self._again.items() if number < limit}
        return limit

    @property
    def exact(self) -> bool:
        """Whether nothing was dropped."""
        return not self._shift

    @property
    def behaviours(self) -> int:
        """How many different ones there are in the sample; an estimate unless `exact`."""
        return len(self._again) << self._shift

    @property
    def unseen(self) -> float:
        """The probability that the next schedule shows a new one, estimated; 1 for an empty sample."""
        once = sum(not again for again in self._again.values()) << self._shift
        return min(once / self.schedules, 1.0) if self.schedules else 1.0

    def summary(self) -> str:
        """Say it in words."""
        about = "" if self.exact else "about "
        number, schedules = self.behaviours, self.schedules
        seen = f"{schedules} schedule{'s' * (schedules != 1)}, {about}{number} behaviour{'s' * (number != 1)}"
        unseen = self.unseen
        chance = f"about {unseen:.2g}" if unseen else f"less than about {1 / schedules:.2g}"
        return (
            f"{seen}, that is, orders of the operations that conflict; "
            f"the next schedule shows a new one with probability {chance}"
        )
