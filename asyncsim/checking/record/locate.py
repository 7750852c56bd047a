"""Finding a kernel by what a user types.

    kernels.reduce_scatter:builtin   a module that can be imported, and a name in it
    reduce_scatter:builtin           short for the same, among the kernels that come with asyncsim
    path/to/file.py:name             a file, loaded from its source and shown under the path as given
    reduce_scatter                   without a name: the only kernel there, or an error that lists them

To locate a kernel runs the code of its module; `is_shipped` runs none but that of asyncsim's own kernels.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.abc
import importlib.util
import linecache
import os
import pkgutil
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from asyncsim.machine.kernel import Kernel, kernels_of
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.guest import GUEST, author_place, is_ctrl_c, said

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType

SHIPPED = "kernels"
"""What references to the kernels that come with asyncsim begin with, wherever these lie."""
_INSIDE = Path(__file__).resolve().parents[2] / SHIPPED
# Installed, they lie inside the package asyncsim, since another package has the name; in the repository beside it.
PACKAGE, _FOLDER = (f"asyncsim.{SHIPPED}", _INSIDE) if _INSIDE.is_dir() else (SHIPPED, _INSIDE.parents[1] / SHIPPED)


def locate(text: str) -> Kernel:
    """Return the kernel that `text` names; see the top of this page.

    Raises:
        MisuseError: there is no such module, file or name, it cannot be loaded, or it is no kernel;
            the message lists what there is.

    """
    place, name = _split(text)
    if not place:
        raise MisuseError(f"{text!r} names no kernel; write module:name (reduce_scatter:builtin) or file.py:name")
    module = _load(place) if _is_path(place) else _import(place)
    return _pick(module, place, name)


def all_kernels() -> dict[str, Kernel]:
    """Return every shipped kernel by its short name, ``reduce_scatter:builtin``; imports them all."""
    found: dict[str, Kernel] = {}
    for short in shipped_modules():
        module = import_shipped(short)
        for name, kernel in kernels_of(module.__name__).items():
            home = kernel.namespace
            borrowed = home is not vars(module) and any(value is kernel for value in home.values())
            if not borrowed:
                found[f"{short}:{name}"] = kernel
    return found


def kernel_names(short: str) -> list[str]:
    """Return the names of the kernels in a shipped module, ``reduce_scatter``; imports that module only."""
    return list(kernels_of(import_shipped(short).__name__))


def is_shipped(ref: str) -> bool:
    """Return whether `ref` is the name of a kernel that comes with asyncsim, as its trace gives it.

    A trace is data: what it names may be run without asking only if it is one of these.
    """
    package, _, rest = ref.partition(".")
    short, _, name = rest.partition(":")
    if package != SHIPPED or short not in shipped_modules():
        return False
    return name in kernels_of(import_shipped(short).__name__)


def _split(text: str) -> tuple[str, str]:
    """Return the place and the name; a path may hold colons of its own."""
    if text.endswith(".py"):
        return text, ""
    place, colon, name = text.rpartition(":")
    return (place.removesuffix(":") if place.endswith(".py:") else place, name) if colon else (text, "")  # pytest's ::


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or "\\" in place


# ---- modules


def shipped_modules() -> list[str]:
    """Return the shipped modules, by their names within the package, without importing any."""
    return sorted(_modules_in(_FOLDER, ""))


def _modules_in(folder: Path, prefix: str) -> Iterator[str]:
    for info in pkgutil.iter_modules([str(folder)], prefix):
        yield info.name
        if info.ispkg:
            yield from _modules_in(folder / info.name.removeprefix(prefix), f"{info.name}.")


def import_shipped(short: str) -> ModuleType:
    """Import a module of the shipped package, ``reduce_scatter``, and of no other that has its name.

    Raises:
        MisuseError: another package hides it.

    """
    spec = importlib.util.find_spec(PACKAGE)
    places = [] if spec is None else [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    if _FOLDER not in places:
        other = spec.origin if spec is not None and spec.origin else "nothing"
        raise MisuseError(
            f"the name {PACKAGE!r} leads to {other}, which hides the kernels of asyncsim; "
            f"run it elsewhere, or name a kernel by its file: file.py:name"
        )
    return importlib.import_module(f"{PACKAGE}.{short}")


def _import(place: str) -> ModuleType:
    """Import a module by its name, from the present folder too."""
    shipped = shipped_modules()
    short = place.removeprefix(f"{SHIPPED}.")
    if short in shipped:
        return import_shipped(short)
    if not all(part.isidentifier() for part in place.split(".")):
        raise MisuseError(_no_module(place, shipped))
    try:
        with _importable(Path.cwd(), first=False), GUEST:
            return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{place}.".startswith(f"{error.name}."):
            raise MisuseError(_no_module(place, shipped)) from error
        raise MisuseError(f"{place} cannot be imported: {_reason(error)}") from error
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        raise MisuseError(f"{place} cannot be imported: {_reason(error)}") from error


def _no_module(place: str, shipped: list[str]) -> str:
    file = Path(place.replace(".", "/") + ".py")
    if file.is_file():
        return f"no module is called {place!r}; to load the file, write {file.as_posix()}:NAME"
    near = _nearest(place.removeprefix(f"{SHIPPED}."), shipped, "asyncsim has")
    return f"no module is called {place!r}; {near} (asyncsim list shows all kernels)"


# ---- files


class _Loader(importlib.abc.Loader):
    """Runs source text under the path that the user gave, so that reports show the same."""

    def __init__(self, path: str, source: bytes) -> None:
        self.path = path
        self.source = source

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave the module to Python."""

    def exec_module(self, module: ModuleType) -> None:
        # Half a character, from a name that is no UTF-8, is in no trace.
        vars(module)["__asyncsim_path__"] = self.path.encode("utf-8", "backslashreplace").decode()
        exec(compile(self.source, self.path, "exec", dont_inherit=True), vars(module))  # noqa: S102 - the user named this file to be run


def _load(place: str) -> ModuleType:
    """Load a kernel file from its source; once, as long as it stays the same."""
    path = PurePath(place).as_posix()
    file = Path(place)
    try:
        source = file.read_bytes()
    except OSError as error:
        raise MisuseError(_no_file(file, error)) from error
    digest = hashlib.sha256(b"\0".join((os.fsencode(file.resolve()), os.fsencode(path), source))).hexdigest()[:16]
    stem = "".join(c if c.isalnum() else "_" for c in file.stem)
    name = f"_kernel_file_{stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    loader = _Loader(path, source)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None  # noqa: S101 - for the type checker: with a loader there always is one
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    linecache.checkcache(path)
    try:
        with _importable(file.resolve().parent, first=True), GUEST:
            loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if is_ctrl_c(error):
            raise
        raise MisuseError(f"{path} cannot be loaded: {_reason(error)}{_relative(error)}") from error
    return module


def _no_file(file: Path, error: OSError) -> str:
    if file.exists():
        return f"{file.as_posix()} is not a file that can be read ({error.strerror}); name a kernel file: file.py:name"
    where = file.parent.as_posix()
    if not file.parent.is_dir():
        return f"there is no file {file.as_posix()}: there is no folder {where}"
    there = sorted(found.name for found in file.parent.glob("*.py"))
    near = difflib.get_close_matches(file.name, there, n=3)
    if near or len(there) <= MOST_NAMES:
        return f"there is no file {file.as_posix()}; {_nearest(file.name, there, f'{where} has')}"
    return f"there is no file {file.as_posix()}; none of the {len(there)} Python files in {where} has a name like it"


def _relative(error: BaseException) -> str:
    relative = isinstance(error, ImportError) and "relative import" in str(error)
    return "; a file of a package is named as a module: package.module:name" if relative else ""


@contextmanager
def _importable(folder: Path, *, first: bool) -> Iterator[None]:
    """Let modules be imported from `folder`, before or after all other places."""
    entry = str(folder)
    sys.path.insert(0 if first else len(sys.path), entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def _reason(error: BaseException) -> str:
    """Return what went wrong while a module ran, and where."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    place = author_place(error) or (frames[-1].filename, frames[-1].lineno)
    return f"{said(error)} ({place[0]}:{place[1]})"


# ---- names

MOST_NAMES = 16
"""Of more names than this, a message has some only."""
_MARK = "a kernel is an async function under @asyncsim.kernel(memory=[...])"


def _pick(module: ModuleType, place: str, name: str) -> Kernel:
    kernels = kernels_of(module.__name__)
    if not name:
        if len(kernels) == 1:
            return next(iter(kernels.values()))
        if not kernels:
            raise MisuseError(f"{place} has no kernel; {_MARK}")
        refs = ", ".join(f"{place}:{known}" for known in kernels)
        raise MisuseError(f"{place} has several kernels; name one of {refs}")
    found: object = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise MisuseError(f"{place} has no kernel {name!r}; {_nearest(name, kernels, f'{place} has')}")
        found = getattr(found, part)
    while not isinstance(found, Kernel) and isinstance(held := getattr(found, "args", None), tuple) and held:
        found = held[-1]  # a mark of pytest's stands around it
    if not isinstance(found, Kernel):
        kind = type(found).__name__
        raise MisuseError(
            f"{place}:{name} is not a kernel but of type {kind}; {_MARK}; {_nearest('', kernels, f'{place} has')}"
        )
    return found


def _nearest(name: str, known: Iterable[str], owner: str) -> str:
    """Return the end of a message: the names that look like `name`; or all of them; of many, those least unlike it."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if len(known) > MOST_NAMES:
        least = difflib.get_close_matches(name, known, n=MOST_NAMES // 2, cutoff=0)
        return f"{owner} {len(known)} others, such as {', '.join(least)}"
    return f"{owner} {', '.join(known) if known else 'none'}"
