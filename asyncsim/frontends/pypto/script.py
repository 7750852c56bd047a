"""Running a script as ``python SCRIPT.py args`` would, with ``pypto`` answered by asyncsim."""

from __future__ import annotations

import builtins
import linecache
import os
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from asyncsim.frontends.pypto.hook import answering
from asyncsim.frontends.pypto.refusals import UnknownNameError
from asyncsim.frontends.pypto.session import StuckError
from asyncsim.guest.author import is_the_authors
from asyncsim.trace.errors import AsyncsimError, MisuseError
from asyncsim.trace.guest import GUEST
from asyncsim.trace.lent import streams_lent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from asyncsim.frontends.pypto.session import Session

BAD_INPUT = 2


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended.

    Args:
        status: what it would leave with; 2 if asyncsim refused something, 1 if it raised, or did not end.
        message: for stderr; empty if the script said all itself.

    """

    status: int
    message: str = ""


@contextmanager
def script_run(path: str, args: Sequence[str], session: Session) -> Iterator[Ended]:
    """Run a script to its end; in the block, imports find what they found in the script.

    What the script dispatched is judged in the block: its kernels may import when they run. The output streams are
    the caller's again.

    Args:
        path: relative or absolute, as given.
        args: what the script finds behind its own name in ``sys.argv``.
        session: takes what it dispatches.

    Raises:
        MisuseError: there is no such file.

    """
    file = os.path.abspath(path)  # noqa: PTH100 - as python does: symbolic links stay
    try:
        source = Path(file).read_bytes()
    except OSError as error:
        raise MisuseError(f"there is no script {path!r} ({error.strerror}); give the path of a Python file") from None
    with _as_python(path, file, args) as main, answering(session):
        with GUEST, streams_lent():
            ended = _executed(source, file, main)
        yield ended


def _executed(source: bytes, file: str, main: ModuleType) -> Ended:
    try:
        exec(compile(source, file, "exec", dont_inherit=True), main.__dict__)  # noqa: S102 - the user's script
    except SystemExit as error:
        return _left(error.code)
    except StuckError:
        return Ended(1)
    except Exception as error:  # noqa: BLE001 - told as python tells it
        return _raised(error)
    return Ended(0)


@contextmanager
def _as_python(path: str, file: str, args: Sequence[str]) -> Iterator[ModuleType]:
    """Give a script what it finds when python runs it, and take it back."""
    main = ModuleType("__main__")
    main.__dict__.update(__file__=file, __builtins__=builtins, __spec__=None)
    argv, folders, modules, outer = sys.argv, list(sys.path), set(sys.modules), sys.modules["__main__"]
    here = Path.cwd()
    sys.argv = [path, *args]
    sys.path[:1] = [str(Path(file).resolve().parent)]
    sys.modules["__main__"] = main
    linecache.checkcache(file)
    try:
        yield main
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = argv, folders, outer
        os.chdir(here)
        for name in set(sys.modules) - modules:  # what lies beside another script may have the same name
            found = getattr(sys.modules[name], "__file__", None)
            if found is not None and Path(found).parent == Path(file).resolve().parent:
                del sys.modules[name]


def _left(code: object) -> Ended:
    if code is None or isinstance(code, int):
        return Ended(int(code or 0) & 0xFF)
    return Ended(1, f"{code}\n")


def _raised(error: Exception) -> Ended:
    """Tell what a script raised: misuse in one line, with its place; all else as python would."""
    place = author_place(error)
    where = f"{place[0]}:{place[1]}: " if place is not None else ""
    if isinstance(error, AsyncsimError):
        return Ended(BAD_INPUT, f"asyncsim: {where}{error}\n")
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "pypto":
        return Ended(BAD_INPUT, f"asyncsim: {where}{_not_imported(error)}\n")
    _trim(error)
    return Ended(1, "".join(traceback.format_exception(error)))


def _not_imported(error: ImportError) -> str:
    """Say what a module of ours lacks; python only says that it lacks it."""
    module = sys.modules.get(str(error.name))
    if module is not None:
        try:
            getattr(module, str(error).split("'")[1])
        except UnknownNameError as better:
            return str(better)
    return str(error)


def author_place(error: BaseException) -> tuple[str, int] | None:
    """Return the author's innermost line of an error: (path, line)."""
    place: tuple[str, int] | None = getattr(error, "author_place", None)
    step = error.__traceback__
    while step is not None and not hasattr(error, "author_place"):
        if is_the_authors(step.tb_frame.f_code):
            place = (step.tb_frame.f_code.co_filename, step.tb_lineno)
        step = step.tb_next
    return None if place is None else (_shown(place[0]), place[1])


def _shown(file: str) -> str:
    """Return a path as short as it is from here."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _trim(error: BaseException) -> None:
    """Take our own frames out of a traceback, and of those of the errors behind it."""
    seen: BaseException | None = error
    while seen is not None:
        seen.__traceback__ = _trimmed(seen.__traceback__)
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def _trimmed(step: TracebackType | None) -> TracebackType | None:
    if step is None:
        return None
    rest = _trimmed(step.tb_next)
    if step.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("asyncsim", "trio", "outcome"):
        return rest
    step.tb_next = rest
    return step
