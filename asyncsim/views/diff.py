"""How two traces differ, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.views.report import count_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.study.compare import Change, Comparison, StreamDifference
    from asyncsim.trace.event import Event, Trace

SHOWN = 8
_NOTHING = "nothing"


def comparison_text(found: Comparison, left: Trace, right: Trace, names: tuple[str, str]) -> str:
    """Return the whole comparison, with a line feed at its end.

    Args:
        found: how they differ.
        left: the first trace.
        right: the second.
        names: what the two are called: A and B stand for them.

    """
    if found.same:
        steps = count_text(len(left.events), "step")
        if left.footer is None:  # then neither has one: what came after may differ
            return f"the same run as far as both go: {steps}; neither has an end\n"
        return f"the same run: {steps}, and the same end\n"
    sides = zip("AB", names, (left, right), strict=True)
    lines = [f"{side}  {name}: {count_text(len(trace.events), 'step')}" for side, name, trace in sides]
    if found.header:
        lines += ["", "other headers"]
        lines += [line for change in found.header for line in _change(change)]
    lines += ["", *_first(found)]
    if found.partings:
        lines += ["", f"what follows: the streams of {count_text(len(found.partings), 'actor')} part"]
        lines += [line for parting in found.partings[:SHOWN] for line in _stream_difference(parting)]
        lines += _rest(len(found.partings))
        lines.append(f"  {count_text(found.values, 'value')} differ in operations that both do")
    elif found.reordered:
        lines += ["", "what follows: nothing; every actor does the same with the same values, in another order"]
    if found.footer:
        lines += ["", "the end"]
        lines += [line for change in found.footer[:SHOWN] for line in _change(change)]
        lines += _rest(len(found.footer))
    else:
        lines += ["", "neither has an end" if left.footer is None else "the end is the same"]
    return "\n".join(lines) + "\n"


def _rest(count: int) -> list[str]:
    return [f"  and {count - SHOWN} more"] if count > SHOWN else []


def _first(found: Comparison) -> Iterator[str]:
    if found.step is None:
        yield "all steps are the same"
        return
    yield f"first difference: step {found.step}"
    for name, event in (("A", found.left), ("B", found.right)):
        yield f"  {name}  {_step(event)}"


def _step(event: Event | None) -> str:
    if event is None:
        return "has ended"
    line = f"  {event.at[0]}" if event.at and event.at[0] else ""
    phase = f", {event.phase}" if event.phase else ""
    have = "" if event.have is None else f" (the cell: {event.have})"
    return f"actor {event.op.actor.name}, call {event.call}{phase}: {event.op}{have}{line}"


def _stream_difference(parting: StreamDifference) -> Iterator[str]:
    yield f"  actor {parting.actor}, from its operation {parting.index} on"
    values = [change for change in parting.changes if change.name == "value"]
    if values and len(values) == len(parting.changes) and parting.left is not None:
        yield f"    {_step(parting.left)}"
        for name, value, source in (
            ("A", values[0].left, parting.left_source),
            ("B", values[0].right, parting.right_source),
        ):
            origin = f", from {source}" if source else ""
            yield f"    {name}  value {_short(value)}{origin}"
        return
    for name, event in (("A", parting.left), ("B", parting.right)):
        yield f"    {name}  {_step(event)}"
    if parting.changes and parting.left is not None and parting.right is not None:
        yield f"    what differs: {', '.join(change.name for change in parting.changes)}"


def _change(change: Change) -> Iterator[str]:
    yield f"  {change.name}"
    yield f"    A  {_short(change.left)}"
    yield f"    B  {_short(change.right)}"


def _short(value: Any) -> str:  # noqa: ANN401 - any JSON value
    text = _NOTHING if value is None else value if isinstance(value, str) else repr(value)
    return text if len(text) <= 90 else f"{text[:87]}..."  # noqa: PLR2004 - a line of a terminal
