"""Running a script once a rank, as its own main program, and showing what came of it."""

from __future__ import annotations

import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from asyncsim.frontends.torch_dist.answer import answered
from asyncsim.frontends.torch_dist.launch import Launched, run_ranks
from asyncsim.frontends.torch_dist.session import CallMismatchError, NotRunError, RaceError, participant
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.guest import GUEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, TracebackType

_PACKAGE = "asyncsim."


def run_script(  # noqa: PLR0913 - what a launch is made of
    path: str,
    arguments: Sequence[str] = (),
    *,
    ranks: int,
    memory: str = "sc",
    scheduler: str = "fifo",
    seed: int = 0,
    prefix: bool = False,
) -> Launched:
    """Run a script on so many ranks, with ``torch.distributed`` answered.

    Args:
        path: of the script.
        arguments: what stands behind it in ``sys.argv``.
        ranks: P.
        memory: the memory model that collectives run on.
        scheduler: which schedules of them are run.
        seed: of that, and of random numbers that the script does not seed.
        prefix: put the rank before each line that is printed.

    Raises:
        MisuseError: there is no such file, or it is no Python.

    """
    code = _compiled(path)
    mains = [_main(path) for _ in range(ranks)]
    programs = [_program(code, main) for main in mains]
    folder = Path(path).resolve().parent
    with GUEST, answered(), _first_in_path(str(folder)), _prefixed(on=prefix):
        return run_ranks(
            programs, mains, [path, *arguments], path, folder, memory=memory, scheduler=scheduler, seed=seed
        )


def _compiled(path: str) -> CodeType:
    try:
        source = Path(path).read_bytes()
    except OSError as error:
        raise MisuseError(f"{path} is not a file that can be read ({error.strerror}); name a script") from error
    if b"\0" in source:  # what Python says of them depends on its version
        raise MisuseError(f"the script is no Python: {path} holds null bytes, as a binary file does; name a script")
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = path if error.lineno is None else f"{path}:{error.lineno}"
        raise MisuseError(f"the script is no Python: {place}: {error.msg}") from error


def _main(path: str) -> ModuleType:
    main = ModuleType("__main__")
    vars(main).update(__file__=path, __builtins__=__builtins__, __cached__=None)
    return main


def _program(code: CodeType, main: ModuleType) -> Any:  # noqa: ANN401 - a function without arguments
    def run() -> None:
        exec(code, vars(main))  # noqa: S102 - the script that the user named to be run

    return run


@contextmanager
def _first_in_path(folder: str) -> Iterator[None]:
    """Let modules be imported from the script's folder, as Python does."""
    before = list(sys.path)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path[:] = before


# ---- output


@contextmanager
def _prefixed(*, on: bool) -> Iterator[None]:
    """Put the rank before each line of stdout and stderr."""
    if not on:
        yield
        return
    before = sys.stdout, sys.stderr
    own: list[Any] = [None if stream is None else _Prefixing(stream) for stream in before]
    sys.stdout, sys.stderr = own
    try:
        yield
    finally:
        for stream in own:
            if stream is not None:
                stream.finish()
        sys.stdout, sys.stderr = before


class _Prefixing:
    """Writes whole lines, each with the rank that wrote it; the rest of a line waits for its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        own = participant()
        if own is None:
            return self._stream.write(text)
        *lines, rest = (self._begun.pop(own.rank, "") + text).split("\n")
        for line in lines:
            self._stream.write(f"[rank {own.rank}] {line}\n")
        if rest:
            self._begun[own.rank] = rest
        return len(text)

    def writelines(self, lines: Sequence[str]) -> None:
        for line in lines:
            self.write(line)

    def finish(self) -> None:
        """Write the lines that never ended."""
        for rank, rest in sorted(self._begun.items()):
            self._stream.write(f"[rank {rank}] {rest}\n")


# ---- failures


def failure_text(launched: Launched) -> str:
    """Return what ended ranks badly: tracebacks with their ranks, equal ones once; empty if nothing did."""
    told: dict[str, list[int]] = {}
    for rank, error in enumerate(launched.errors):
        if error is not None and not (isinstance(error, SystemExit) and isinstance(error.code, int)):
            told.setdefault(_text(error), []).append(rank)
    return "".join(f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}: {text}" for text, ranks in told.items())


def exit_status(launched: Launched) -> int:
    """Return the status that the script itself ends with: that of the first rank that failed."""
    for _, error in sorted(launched.own_errors.items()):
        own = isinstance(error, SystemExit) and isinstance(error.code, int)
        return error.code & 0xFF if own else 1  # type: ignore[attr-defined]
    return 0


def _text(error: BaseException) -> str:
    """Return a traceback from the script's first line to its last: our frames above and below are left out."""
    if isinstance(error, CallMismatchError | NotRunError | RaceError):
        return f"{type(error).__name__}: {error}\n"
    if isinstance(error, SystemExit):
        return f"{error.code}\n"
    told = traceback.TracebackException(type(error), error, _in_script(error.__traceback__))
    told.stack[1:] = [
        frame for frame in told.stack[1:] if "asyncsim/frontends/torch_dist" not in frame.filename.replace("\\", "/")
    ]
    return "".join(told.format())


def _in_script(step: TracebackType | None) -> TracebackType | None:
    while step is not None and step.tb_frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        step = step.tb_next
    return step
