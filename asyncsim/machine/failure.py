"""A kernel that fails: which rank, in which call, on which line of the author's."""

from __future__ import annotations

import linecache
import re
from typing import TYPE_CHECKING

from asyncsim.machine.forgotten import forgotten_in
from asyncsim.machine.site import module_name, shown_path
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.guest import said

if TYPE_CHECKING:
    from asyncsim.trace.event import Trace
    from asyncsim.trace.world import Actor

FOREIGN = "the kernel awaits something that is no operation of its rank; a kernel awaits methods of its Rank only"

_NOT_THE_AUTHORS = ("asyncsim", "trio", "asyncio", "numpy", "ml_dtypes")
"""Packages an error may come out of, where the author's line is the one that called them."""

_UNAWAITED = re.compile(r"\b(coroutine|generator)\b|dtype\('O'\)")
"""What Python and numpy say of a value that is an operation: its await was forgotten."""

_NO_LOOP = ("must be called from async context", "no running event loop")
"""What trio and asyncio say where they are awaited and no loop of theirs runs."""


def kernel_error(error: BaseException, actor: Actor, call: int, trace: Trace | None, *, kernel: str) -> KernelError:
    """Say which rank failed, in which call, and on which line of the author's; else in which kernel.

    Args:
        error: what the kernel raised; it becomes the cause.
        actor: whose turn it was.
        call: from 0.
        trace: of the run so far; None if it is not recorded.
        kernel: its name, for an error outside of the author's lines.

    """
    where = f" in {kernel}"
    module = ""
    values: list[object] = []
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        module = module_name(frame.f_globals)
        if module.partition(".")[0] not in _NOT_THE_AUTHORS:
            filename = frame.f_code.co_filename
            where = f" at {shown_path(filename, module)}:{step.tb_lineno}"
            line = linecache.getline(filename, step.tb_lineno).strip()
            where += f" ({line})" if line else ""
            values += frame.f_locals.values()
        step = step.tb_next
    if isinstance(error, RuntimeError) and str(error) in _NO_LOOP and module.partition(".")[0] in ("trio", "asyncio"):
        # Awaited in a loop of its own it would have come to the engine, and been refused there in these words.
        foreign = MisuseError(FOREIGN)
        foreign.__cause__ = error
        error = foreign
    told = said(error)
    message = f"rank {actor.rank} failed in call {call}{where}: {told}"
    if _UNAWAITED.search(told) and (found := forgotten_in(values)):
        message = f"{message}; {found}"
    failure = KernelError(message, rank=actor.rank, call=call, trace=trace)
    failure.__cause__ = error
    return failure
