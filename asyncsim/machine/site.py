"""Where an operation stands in the source: looked up only while recording."""

from __future__ import annotations

from pathlib import PurePath
from types import CodeType, CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from asyncsim.trace.guest import told_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from asyncsim.trace.event import Site

    _Known = tuple[str, bool, CodeType]
    """``file:line``, whether the file is one of ours, and the code, which so keeps its id to itself."""

_PACKAGE = __name__.partition(".")[0] + "."

drivers: set[CodeType] = set()
"""The coroutines that drive a guest: a program that is no coroutine, and stands where its ``guest.frames()`` say."""


class Frame(NamedTuple):
    """One of the lines that an operation comes from.

    Args:
        text: ``file:line``.
        ours: whether the file is one of ours.
        code: of the function that the line is in.
        awaited: the coroutine that the line awaits.

    """

    text: str
    ours: bool
    code: CodeType
    awaited: object


class Whereabouts(Protocol):
    """Where an actor is: in which coroutine, and what is known of the one that it was found in last.

    `holder` is the innermost coroutine of the kernel's, which awaits a method of Rank; `lines` has
    the site of each of its instructions that was met.
    """

    coroutine: Any
    holder: Any
    lines: dict[int, Site]


class Sites:
    """Finds sites, and remembers each instruction it has seen (line tables are slow to read)."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], _Known] = {}
        # By the site of the callers, and the code of the callee: the site of each instruction of it.
        self._lines: dict[tuple[Site, int], dict[int, Site]] = {}

    def at(self, place: Whereabouts) -> Site:
        """Return the same as `of` for where an actor is, which mostly is in the coroutine it was in before."""
        holder = place.holder
        if holder is not None:
            inner = holder.cr_await
            if inner.__class__ is CoroutineType and inner.cr_await.__class__ is not CoroutineType:
                # It still waits for a method of Rank, so nobody above it has moved; only its own line may be another.
                site = place.lines.get(holder.cr_frame.f_lasti)
                if site is not None:
                    return site
        return self._found(place)

    def _found(self, place: Whereabouts) -> Site:
        """Find the coroutine that an actor is in, and note it; return its site."""
        outer: list[_Known] = []
        holder, inner = None, place.coroutine
        while (below := inner.cr_await).__class__ is CoroutineType:
            if holder is not None:
                outer.append(self._place(holder.cr_frame))
            holder, inner = inner, below
            if holder.cr_code in drivers:  # its guest moves while it stands
                holder = None
                break
        if holder is None:
            place.holder = None
            return self.of(place.coroutine)
        frame = holder.cr_frame
        key = (_joined(outer), id(frame.f_code))
        place.holder = holder
        place.lines = self._lines.setdefault(key, {})
        site = place.lines[frame.f_lasti] = _joined([*outer, self._place(frame)])
        return site

    def of(self, coroutine: Any) -> Site:  # noqa: ANN401 - a coroutine, down to the generator it waits for
        """Return the author's innermost line and, below it, the innermost line of a composite of ours."""
        return _joined([self._place(frame) for frame, _ in _leading(coroutine)])

    def stack(self, coroutine: Any) -> list[Frame]:  # noqa: ANN401 - as above
        """Return all lines that lead to the operation, the outermost first, without those of Rank."""
        return [Frame(*self._place(frame), awaited) for frame, awaited in _leading(coroutine)]

    def here(self, frame: FrameType | None) -> Site:
        """Return the same for a coroutine that runs just now: the lines of `frame` and of who awaits it."""
        composite = ""
        while frame is not None:
            for known in map(self._place, [*reversed(_guests(frame)), frame]):
                if not known[1]:
                    return (known[0], composite) if composite else (known[0],)
                composite = composite or known[0]
            frame = frame.f_back
        return (composite,)

    def _place(self, frame: FrameType) -> _Known:
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        known = self._known.get(key)
        if known is None:
            module = module_name(frame.f_globals)
            # A test file is imported by pytest under its bare name, and shown by its path all the same.
            path = frame.f_globals.get("__asyncsim_path__") or shown_path(code.co_filename, module)
            text = f"{path}:{frame.f_lineno}"
            known = self._known[key] = (text, module.startswith(_PACKAGE), code)
        return known


def _leading(coroutine: Any) -> Iterator[tuple[FrameType, object]]:  # noqa: ANN401 - as above
    """Yield the frames that lead to an operation, the outermost first, each with the coroutine that it awaits."""
    # The innermost coroutine is a method of Rank, which waits for a generator: it is left out.
    while (inner := coroutine.cr_await).__class__ is CoroutineType:
        frame = coroutine.cr_frame
        yield frame, inner
        for guest in _guests(frame):
            yield guest, inner
        coroutine = inner


def _guests(frame: FrameType) -> Sequence[FrameType]:
    """Return the frames of the guest that a frame drives, the outermost first; none of any other frame."""
    frames: Sequence[FrameType] = frame.f_locals["guest"].frames() if frame.f_code in drivers else ()
    return frames


def _joined(lines: Sequence[_Known]) -> Site:
    """Return the author's innermost line of these and, below it, the innermost one of ours."""
    author = composite = ""
    for text, ours, _ in lines:
        if ours:
            composite = text
        else:
            author, composite = text, ""
    return (author, composite) if author and composite else (author or composite,)


def module_name(namespace: dict[str, Any]) -> str:
    """Return the name by which a module is told: under which it can be imported, also where it runs as ``__main__``."""
    spec = namespace.get("__spec__")
    name = namespace.get("__name__", "") if spec is None else spec.name
    return told_name(name) if isinstance(name, str) else ""


def shown_path(filename: str, module: str) -> str:
    """Return a path that is the same on every machine: as given, or from the root of its package.

    A kernel loaded by ``path/to/file.py:name`` keeps the path it was given; an imported one is
    shown from the folder its top-level package lies in.

    Args:
        filename: as the code object has it.
        module: the name of the module, dots and all.

    """
    path = PurePath(filename)
    if not path.is_absolute():
        return path.as_posix()
    depth = module.count(".") + 1 + (path.name == "__init__.py")
    return PurePath(*path.parts[-depth:]).as_posix()
