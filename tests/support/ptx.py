"""Litmus tests of GPU order and scope, in a notation of one line each, as kernels.

Threads are separated by ``‖``, instructions by ``;``; ``{x=2}`` in front gives start values, else all is 0.

* ``W x=1``, ``W x=r0``, ``r1=R x``: a weak store, a weak load; ``W[rel.gpu] y=1``, ``r1=R[acq.cta] y``: strong ones.
* ``r1=RMW[ar.gpu.add] x(1)``, ``RED[rlx.sys.add] x(1)``: an atomic with a result, and without; ``cas x(0,1)``.
* ``F.sc.gpu``, ``F.ar.sys``: fences. ``bar.sync 1``, ``bar.sync 1, 1, 3``, ``bar.arrive 1``: barriers of a block.
* ``r0:=1``, ``add r2, r2, 1``, ``L0: …``, ``if r1≠0 → L0``, ``goto L0``.

A thread stands at *block.gpu*. A loop that reads one word until a comparison holds is a wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ORDERS = {"rlx": "relaxed", "acq": "acquire", "rel": "release", "ar": "acq_rel", "sc": "sc"}
SCOPES = {"cta": "block", "gpu": "rank", "sys": "world"}
WEAK = ""

_STRONG = r"(?:\[(?P<mods>[a-z.]+)\])?"
_PATTERNS = {
    "write": re.compile(rf"W{_STRONG} (?P<place>\w+)=(?P<value>\w+)"),
    "read": re.compile(rf"(?P<to>\w+)=R{_STRONG} (?P<place>\w+)"),
    "atomic": re.compile(r"(?:(?P<to>\w+)=RMW|RED)\[(?P<mods>[a-z.]+)\] (?P<place>\w+)\((?P<args>[\w, ]+)\)"),
    "fence": re.compile(r"F\.(?P<mods>[a-z.]+)"),
    "barrier": re.compile(r"bar\.(?P<what>sync|arrive) (?P<args>[\w, ]+)"),
    "move": re.compile(r"(?P<to>\w+):=(?P<value>\w+)"),
    "add": re.compile(r"add (?P<to>\w+), (?P<value>\w+), (?P<other>\w+)"),
    "branch": re.compile(r"if (?P<left>\w+)(?P<compare>=|≠)(?P<right>\w+) → (?P<label>\w+)"),
    "goto": re.compile(r"goto (?P<label>\w+)"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of a thread.

    Args:
        kind: a name of `_PATTERNS`, or "wait": a loop that was recognised.
        place: the word it touches.
        to: the register that it fills.
        order: "relaxed", "acquire", …; empty for a weak access.
        scope: "block", "rank" or "world".
        what: of an atomic the update; of a barrier sync or arrive; of a branch or wait its comparison.
        args: registers or numbers.
        label: where a branch goes: the index of a step.

    """

    kind: str
    place: str = ""
    to: str = ""
    order: str = WEAK
    scope: str = "world"
    what: str = ""
    args: tuple[str, ...] = ()
    label: int = -1


@dataclass(frozen=True, slots=True)
class Litmus:
    """A litmus test.

    Args:
        threads: their steps.
        homes: of each thread, its block and its GPU.
        start: start values of words.

    """

    threads: tuple[tuple[Step, ...], ...]
    homes: tuple[tuple[int, int], ...]
    start: dict[str, int] = field(default_factory=dict)

    @property
    def places(self) -> list[str]:
        """The words, in the order of their names."""
        used = {step.place for thread in self.threads for step in thread if step.place}
        return sorted(used | self.start.keys())


class NotationError(ValueError):
    """What stands there is not in the notation."""


def parse(program: str, homes: str) -> Litmus:
    """Return the litmus test that a line says.

    Args:
        program: threads in the notation above.
        homes: *block.gpu* of each thread, separated by blanks.

    Raises:
        NotationError: an instruction is not in the notation, or there are more threads than homes.

    """
    start: dict[str, int] = {}
    program = program.replace("`", "")
    found = re.match(r"\s*\{([^}]*)\}", program)
    if found:
        start = {name.strip(): int(value) for name, value in (each.split("=") for each in re.split("[;,]", found[1]))}
        program = program[found.end() :]
    threads = tuple(_thread(text) for text in program.split("‖"))
    at = tuple((int(block), int(gpu)) for block, gpu in (home.split(".") for home in homes.split()))
    if len(at) < len(threads):
        raise NotationError(f"{len(threads)} threads, and homes of {len(at)}: {homes}")
    return Litmus(threads, at[: len(threads)], start)


def _thread(text: str) -> tuple[Step, ...]:
    """Return the steps of a thread, its loops made waits."""
    lines: list[str] = []
    labels: dict[str, int] = {}
    for part in text.split(";"):
        line = part.strip()
        while found := re.match(r"(L\w*):\s*", line):
            labels[found[1]] = len(lines)
            line = line[found.end() :]
        if line:
            lines.append(line)
    steps = [_step(line, labels) for line in lines]
    return _without_loops(steps)


def _step(line: str, labels: dict[str, int]) -> Step:
    for kind, pattern in _PATTERNS.items():
        found = pattern.fullmatch(line)
        if found is None:
            continue
        said = found.groupdict()
        order, scope, what = _mods(said.get("mods") or "")
        args = tuple(each.strip() for each in (said.get("args") or said.get("value") or "").split(",") if each.strip())
        if kind == "add":
            args = (said["value"], said["other"])
        if kind == "branch":
            args, what = (said["left"], said["right"]), {"=": "Eq", "≠": "Ne"}[said["compare"]]
        label = labels[said["label"]] if said.get("label") else -1
        what = said.get("what") or what
        return Step(kind, said.get("place") or "", said.get("to") or "", order, scope, what, args, label)
    raise NotationError(f"{line!r} is not an instruction of the notation")


def _mods(text: str) -> tuple[str, str, str]:
    """Return order, scope and update of ``ar.gpu.add``; the order is empty for a weak access."""
    order, scope, what = WEAK, "world", ""
    for word in filter(None, text.split(".")):
        if word in ORDERS:
            order = ORDERS[word]
        elif word in SCOPES:
            scope = SCOPES[word]
        else:
            what = word
    return order, scope, what


def _without_loops(steps: list[Step]) -> tuple[Step, ...]:
    """Replace each loop that reads one word until a comparison holds by a wait, and count labels anew."""
    loops: dict[int, tuple[int, Step]] = {}
    for at, step in enumerate(steps):
        if step.kind in ("branch", "goto") and 0 <= step.label <= at:
            loops[step.label] = _loop(steps, step.label, at)
    kept: list[Step] = []
    moved: dict[int, int] = {}
    at = 0
    while at < len(steps):
        moved[at] = len(kept)
        if at in loops:
            behind, wait = loops[at]
            kept.append(wait)
            at = behind
        else:
            kept.append(steps[at])
            at += 1
    moved[len(steps)] = len(kept)
    return tuple(
        step
        if step.label < 0 or step.kind == "wait"
        else Step(step.kind, args=step.args, what=step.what, label=moved[step.label])
        for step in kept
    )


def _loop(steps: list[Step], begin: int, end: int) -> tuple[int, Step]:
    """Return where a loop goes on, and the wait that it is."""
    first, *rest = steps[begin : end + 1]
    shape = [step.kind for step in rest]
    if first.kind in ("read", "atomic") and shape == ["branch"] and rest[0].args[0] == first.to:
        leaves = {"Eq": "Ne", "Ne": "Eq"}[rest[0].what]
        return end + 1, _wait(first, leaves, rest[0].args[1])
    if first.kind in ("read", "atomic") and shape == ["branch", "goto"] and rest[0].label == end + 1:
        other = [name for name in rest[0].args if name != first.to]
        return end + 1, _wait(first, rest[0].what, other[0])
    raise NotationError(f"a loop of {', '.join(step.kind for step in steps[begin : end + 1])} is not a wait")


def _wait(read: Step, compare: str, bound: str) -> Step:
    """Return the wait that repeats a read, or a compare-exchange, until its result compares so."""
    order = read.order or "relaxed"
    if read.kind == "read":
        return Step("wait", read.place, read.to, order, read.scope, compare, (bound,))
    expected, value = read.args
    if read.what != "cas" or compare != "Eq" or bound != expected:
        raise NotationError(f"a loop of {read.what} until the result is {compare} {bound} is not a wait")
    return Step("wait", read.place, read.to, order, read.scope, compare, (bound, value))
