"""Delays as a table, and as code to paste into what runs on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.study.delays import Delay

UNIT_MS = 50
"""How long the shortest delay is, in ms; each later one in the list is as much longer."""


def delays_text(delays: Sequence[Delay]) -> str:
    """Return what to hold where, a delay a line, with a line feed at its end.

    Args:
        delays: those listed first end first; none: the fair run fails by itself.

    """
    if not delays:
        return "0 delays: the fair run fails by itself\n"
    lines = [f"{len(delays)} {'delay' if len(delays) == 1 else 'delays'}; all else runs as it comes"]
    for number, each in enumerate(delays, 1):
        lines.append(f"{number}. {_what(each)}")
        lines.append(f"   {each.op}")
        last = "" if len(delays) == 1 else f", for {number} times as long as the first" if number > 1 else ""
        lines.append(f"   until the other ranks can go no further: {UNIT_MS * number} ms is often enough{last}")
    return "\n".join(lines) + "\n"


def delays_code(delays: Sequence[Delay], dialect: str) -> str:
    """Return code that makes the delays, with a line feed at its end.

    Args:
        delays: as for `delays_text`.
        dialect: a name of `DIALECTS`.

    """
    mark = "//" if dialect == "cuda" else "#"
    parts = [text for name, text in (("triton", _TRITON), ("cuda", _CUDA)) if name == dialect and delays]
    for number, each in enumerate(delays, 1):
        if each.landing:
            parts.append(f"{mark} {_what(each)}: no line of a program does that; load the link, or send more first\n")
            continue
        where = f"{mark} {each.at or 'the first line'}, before: {each.op}\n"
        parts.append(where + DIALECTS[dialect](each, UNIT_MS * number))
    return "\n".join(parts)


def _what(delay: Delay) -> str:
    place = delay.at or "its first line"
    which = "" if delay.of == 1 else f", at the {_ordinal(delay.nth)} time of {delay.of},"
    if delay.landing:
        return f"let what rank {delay.rank} sent at {place}{which} in call {delay.call} arrive late"
    name = f"rank {delay.rank}" if delay.actor == str(delay.rank) else f"stream {delay.actor} of rank {delay.rank}"
    return f"hold {name} before {place}{which} in call {delay.call}"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _condition(delay: Delay, equals: str, both: str) -> str:
    parts = [f"rank {equals} {delay.rank}", f"call {equals} {delay.call}"]
    if delay.of > 1:
        parts.append(f"times {equals} {delay.nth}")
    return f" {both} ".join(parts)


def _python(delay: Delay, ms: int) -> str:
    return (
        f"if {_condition(delay, '==', 'and')}:\n"
        f"    torch.cuda._sleep({ms} * 1_500_000)  # cycles, on the current stream\n"
        f"    # on the host: time.sleep({ms / 1000})\n"
    )


def _triton(delay: Delay, ms: int) -> str:
    return f"if {_condition(delay, '==', 'and')}:\n    hold({ms} * 1_000_000)\n"


def _cuda(delay: Delay, ms: int) -> str:
    return f"if ({_condition(delay, '==', '&&')}) hold({ms}LL * 1500000);\n"


def _pypto(delay: Delay, ms: int) -> str:
    return (
        f"if {_condition(delay, '==', 'and')}:\n"
        f"    for _ in pl.range({ms} * 1_000):  # a kernel has no clock: some work of its own, about a microsecond\n"
        "        scratch = pl.add(scratch, scratch)\n"
    )


_TRITON = """@triton.jit
def hold(ns):
    begin = tl.extra.cuda.globaltimer()
    while tl.extra.cuda.globaltimer() - begin < ns:
        pass
"""
_CUDA = """__device__ void hold(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) { }
}
"""
DIALECTS: dict[str, Callable[[Delay, int], str]] = {
    "torch": _python, "triton": _triton, "cuda": _cuda, "pypto": _pypto,
}  # fmt: skip
"""For whom code can be written."""
