"""What is refused, and as which Python exception: as upstream's type rules raise it, and as misuse of asyncsim.

An error knows nothing of its place: the traceback does, which ends at the author's line.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable


class RefusedValueError(RefusedError, ValueError):
    """A value that upstream's type rules refuse with a ValueError, in their words."""


class RefusedTypeError(RefusedError, TypeError):
    """A type that they refuse with a TypeError."""


class UnknownNameError(MisuseError, AttributeError):
    """A name that the dialect does not have."""


class NotWrittenError(MisuseError, NotImplementedError):
    """Something of Python that a kernel cannot contain."""


def refused(message: str, kind: type[TypeError | ValueError] = ValueError) -> RefusedError:
    """Return the error for a refusal: a `RefusedError` that is a ValueError, or a TypeError, too."""
    return RefusedTypeError(message) if issubclass(kind, TypeError) else RefusedValueError(message)


def at_line(error: Exception, file: str, line: int) -> Exception:
    """Return the error with the place that it is about, where no traceback leads there."""
    error.author_place = (file, line)  # type: ignore[attr-defined]
    return error


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'load'?`` for the known name that is most like this one; else the list of them."""
    listed = sorted(known)
    lower = {each.lower(): each for each in listed}
    found = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.7)
    return f"; did you mean {lower[found[0]]!r}?" if found else f"; it has {', '.join(listed)}"
