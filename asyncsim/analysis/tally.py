"""What one actor does to one cell while one of its epochs lasts: see `asyncsim.analysis.streams`."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate


@dataclass(slots=True)
class Tally:
    """What one actor does in one epoch: indexes in its stream, amounts, and of sums how they run.

    Where a task's adds land late and are kept by their issues, `places` says where each lands.
    """

    indexes: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)
    places: list[tuple[int, int]] = field(default_factory=list)
    _come: dict[int, list[int]] = field(default_factory=dict)

    def before(self, index: int) -> int:
        """Return the sum of all amounts added before `index`."""
        return sum(self.amounts[: bisect_left(self.indexes, index)])

    def credits_before(self, index: int, sign: int = 1) -> int:
        """Return by how much the amounts of this sign that were added before `index` move the cell that way.

        Args:
            index: in the actor's stream.
            sign: 1: upwards; -1: downwards. What is returned is at least 0.

        """
        if sign not in self._come:
            self._come[sign] = [0, *accumulate(max(sign * amount, 0) for amount in self.amounts)]
        return self._come[sign][bisect_left(self.indexes, index)]
