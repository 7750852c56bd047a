"""Host memory that more than one tensor of a dispatch shows.

A run for the script works in the script's own memory; each run of a check gives every tensor a copy of its own. Where
two tensors share memory and one of them is written, the two would not be the same program: refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.refusals import at_line, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = np.ndarray[Any, Any]
WORK = 10_000
"""How long it is searched for an element that two strided slices share; then they count as overlapping."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Where the host function passed a tensor first.

    Args:
        parameter: of the function, and its name.
        device: the rank that it went to.
        place: the author's line, as (file, line).

    """

    parameter: str
    device: int
    place: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Overlap:
    """A tensor whose memory another one shows, too: fine, as long as nobody writes to it.

    Args:
        passed: the tensor.
        other: the other one; on the same device, or on another.

    """

    passed: Passed
    other: Passed

    def error(self) -> Exception:
        """Return the refusal of a kernel that writes to it, at the line of the dispatch."""
        passed, other = self.passed, self.other
        to_each = f"{passed.parameter} to device={passed.device} is written and shares memory with what goes as "
        if passed.device == other.device:
            right = "pass the larger slice alone, and load its parts in the kernel"
            message = f"{to_each}{other.parameter} to the same device; {right}"
        else:
            right = "ranks meet in windows only: pass a slice of its own to each, such as y[r]"
            message = f"{to_each}{other.parameter} to device={other.device}; {right}"
        return at_line(refused(message), *passed.place)


def overlaps(arrays: Sequence[Sequence[Array]], passed: Sequence[Sequence[Passed]]) -> list[dict[int, Overlap]]:
    """Return for each rank which of its tensors overlap another one, each with the first such.

    Args:
        arrays: by rank, each tensor of a rank once.
        passed: where each was passed first.

    """
    found: list[dict[int, Overlap]] = [{} for _ in arrays]
    places = [(rank, number) for rank, tensors in enumerate(arrays) for number in range(len(tensors))]
    spans = {at: np.lib.array_utils.byte_bounds(arrays[at[0]][at[1]]) for at in places if arrays[at[0]][at[1]].size}
    begun: list[tuple[int, int]] = []
    for at in sorted(spans, key=lambda at: (spans[at], at)):
        begun = [other for other in begun if spans[other][1] > spans[at][0]]
        for other in begun:
            if _share(arrays[at[0]][at[1]], arrays[other[0]][other[1]]):
                for (rank, number), (device, beside) in ((at, other), (other, at)):
                    found[rank].setdefault(number, Overlap(passed[rank][number], passed[device][beside]))
        begun.append(at)
    return found


def _share(one: Array, other: Array) -> bool:
    try:
        return np.shares_memory(one, other, max_work=WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True
