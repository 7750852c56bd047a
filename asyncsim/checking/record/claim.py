"""Whether a certificate is of the kernel that it names. Its checker sees operations; the name beside them is a claim.

So the kernel is run once, under the fair schedule, and must issue the operations that the certificate lists.
If these are proved to be the same in every schedule, one run is as good as any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.analysis.certificate import operations_lines
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.schedulers.fifo import Fifo
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.event import COMPLETE, STEP_LIMIT
from asyncsim.trace.strict import MAX_CALLS, MAX_RANKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.kernel import Kernel

Line = dict[str, Any]


def certificate_mismatch(header: Line, streams: Sequence[Line], kernel: Kernel, *, steps: int) -> str:
    """Run a kernel once, and say why a certificate is not of it; nothing: empty, it is.

    Args:
        header: the certificate's first line.
        streams: its lines of operations, one an actor.
        kernel: the kernel, which the caller has found by the name in the header or otherwise.
        steps: how long the certificate's run is.

    Raises:
        MisuseError: the case that the header describes cannot be run.

    """
    name = header["kernel"].rpartition(":")[2]
    if name != kernel.name:
        return f"it says that it is of {header['kernel']}, which is not {kernel.ref}"
    if header["source"] != kernel.source:
        said = f"it says that the source of {header['kernel']} is {header['source']}"
        return f"{said}; that of {kernel.ref} is {kernel.source}"
    if header["calls"] > MAX_CALLS or header["ranks"] > MAX_RANKS:
        raise MisuseError(
            f"the certificate is of {header['ranks']} ranks and {header['calls']} calls; "
            f"at most {MAX_RANKS} ranks and {MAX_CALLS} calls are run"
        )
    case = Case(
        kernel, ranks=header["ranks"], calls=header["calls"], memory=header["memory"], seed=header["seed"],
        max_steps=steps + 1,
    )  # fmt: skip
    try:
        run = drive(case, Fifo(), record="fifo")
    except KernelError as error:
        return f"{kernel.ref} raises: {error}"
    if run.ending == STEP_LIMIT:
        return f"{kernel.ref} goes on after the {steps} steps of the certificate"
    if run.ending != COMPLETE:
        return f"the fair run of {kernel.ref} ends after {len(run.choices)} steps with {run.ending}"
    own, *lines = operations_lines(run.recorded)
    return _difference(header, streams, own, lines, kernel.ref)


def _difference(header: Line, streams: Sequence[Line], own: Line, lines: Sequence[Line], ref: str) -> str:
    """Return where the operations differ; nothing: empty."""
    certified = {line["actor"]: line for line in streams}
    issued = {line["actor"]: line for line in lines}
    if certified.keys() != issued.keys():
        return f"it is of the actors {', '.join(certified)}; {ref} has {', '.join(issued)}"
    for actor, line in certified.items():
        ops, made = line["ops"], issued[actor]["ops"]
        for number, (one, other) in enumerate(zip(ops, made, strict=False)):
            if one != other:
                return (
                    f"operation {number} of actor {actor} is a {one['kind']}, and {ref} does {_else(one, other)} there"
                )
        if len(ops) != len(made):
            return f"it has {len(ops)} operations of actor {actor}; {ref} does {len(made)}"
        if line["rank"] != issued[actor]["rank"]:
            return f"it says that actor {actor} is of rank {line['rank']}; it is of rank {issued[actor]['rank']}"
    for kind in ("windows", "cells"):
        if header[kind] != own[kind]:
            return f"its {kind} are not those of {ref}"
    return ""


def _else(one: Line, other: Line) -> str:
    return "another one" if one["kind"] == other["kind"] else f"a {other['kind']}"
