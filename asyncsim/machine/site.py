"""Where an operation stands in the source: looked up only while recording."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from asyncsim.trace.event import Site

_PACKAGE = __name__.partition(".")[0] + "."
_MACHINE = __name__.rpartition(".")[0] + "."


class Sites:
    """Finds sites, and remembers each instruction it has seen (line tables are slow to read)."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._known: dict[tuple[int, int], tuple[str, bool]] = {}

    def of(self, coroutine: Any) -> Site:  # noqa: ANN401 - a coroutine, down to the generator it waits for
        """Return the author's innermost line and, below it, the innermost line of a composite of ours."""
        author = inner = ""
        known = self._known
        while (frame := getattr(coroutine, "cr_frame", None)) is not None:
            key = (id(frame.f_code), frame.f_lasti)
            place = known.get(key)
            if place is None:
                place = known[key] = _place(frame)
            text, ours = place
            if ours:
                inner = text or inner
            else:
                author, inner = text, ""
            coroutine = coroutine.cr_await
        return (author, inner) if author and inner else (author or inner,)


def _place(frame: FrameType) -> tuple[str, bool]:
    """Return ``file:line`` (empty inside the machine itself) and whether the file is one of ours."""
    module = module_name(frame.f_globals)
    if module.startswith(_MACHINE):
        return "", True
    return f"{shown_path(frame.f_code.co_filename, module)}:{frame.f_lineno}", module.startswith(_PACKAGE)


def module_name(namespace: dict[str, Any]) -> str:
    """Return the name under which a module can be imported, also where it runs as ``__main__``."""
    spec = namespace.get("__spec__")
    name = namespace.get("__name__", "") if spec is None else spec.name
    return name if isinstance(name, str) else ""


def shown_path(filename: str, module: str) -> str:
    """Return a path that is the same on every machine: as given, or from the root of its package.

    A kernel loaded by ``path/to/file.py:name`` keeps the path it was given; an imported one is
    shown from the folder its top-level package lies in.
    """
    path = PurePath(filename)
    if not path.is_absolute():
        return path.as_posix()
    depth = module.count(".") + 1 + (path.name == "__init__.py")
    return PurePath(*path.parts[-depth:]).as_posix()
