"""Where ranks part: calls that meet although the ranks make them at different lines of the script."""

from __future__ import annotations

from linecache import getline
from typing import TYPE_CHECKING

from asyncsim.frontends.torch_dist.call import MAKING, RECV, SEND, spoken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.frontends.torch_dist.line import Line
    from asyncsim.frontends.torch_dist.step import Step


def first_parting(steps: Sequence[Step]) -> str | None:
    """Return what is to be said of the first collective that its members call at different lines; None: there is none.

    Args:
        steps: the collectives, in the order in which they were complete.

    """
    for step in steps:
        if _parted(step):
            first = step.first
            return f"the ranks first part in collective {first.number} of {step.team}: {_spoken(step)}"
    return None


def swapped(steps: Sequence[Step]) -> list[str]:
    """Return what is to be said of pairs of calls that fit each other, though ranks make them in different orders.

    Args:
        steps: the collectives, in the order in which they were complete.

    """
    said = []
    before: dict[tuple[str, frozenset[str]], Step] = {}
    for step in steps:
        if not _parted(step):
            continue
        texts = {rank: _text(call.line) for rank, call in step.calls.items()}
        key = step.team.name, frozenset(texts.values())
        other = before.pop(key, None)
        if other is None:
            before[key] = step
        elif len(key[1]) > 1 and all(_text(other.calls[rank].line) != text for rank, text in texts.items()):
            said.append(
                f"two calls that fit each other are made in different orders, so that their data may be mixed up: "
                f"{_spoken(other)}; then {_spoken(step)}"
            )
    return said


def _text(line: Line) -> str:
    """Return what stands on a line: ranks that take two branches write the same call on different lines."""
    return getline(line.file, line.number).strip() or str(line)


def _parted(step: Step) -> bool:
    names = {call.name for call in step.calls.values()}
    lines = {call.line for call in step.calls.values()}
    return len(lines) > 1 and names != {SEND, RECV} and not names <= set(MAKING)


def _spoken(step: Step) -> str:
    return spoken(list(step.calls.values()))
