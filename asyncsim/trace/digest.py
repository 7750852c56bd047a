"""Digests: a value that is too large for a line of a trace, in sixteen hex digits."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from asyncsim.trace.errors import MisuseError
from asyncsim.trace.guest import is_ctrl_c

MOST_NESTED = 64
"""Values are lists and tuples at most so deep; what is deeper mostly holds itself, and has no end."""


def digest_bytes(data: bytes) -> str:
    """Return the first 16 hex digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:16]


def digest_value(value: Any) -> str:  # noqa: ANN401 - what a kernel returned
    """Return the digest of an output: its dtype, its shape and its bits, so that -0.0 is not 0.0.

    Raises:
        MisuseError: it is none that can be compared.

    """
    return digest_bytes(b"".join(_parts(value)))


def check_nesting(value: Any, what: str, deep: int = 0) -> None:  # noqa: ANN401 - an input or a golden, perhaps
    """Refuse a value that holds itself, or is nested too deep to be gone through.

    Args:
        value: lists, tuples and dicts are gone through; all else passes.
        what: the value's name, for the message.
        deep: how many levels lie above it.

    Raises:
        MisuseError: it does, or is; `what` says whose it is.

    """
    if isinstance(value, list | tuple | dict):
        if deep > MOST_NESTED:
            raise MisuseError(f"{what} {_NESTED}; give arrays, numbers, or tuples of them")
        for part in value.values() if isinstance(value, dict) else value:
            check_nesting(part, what, deep + 1)


@cache
def _heading(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Write what an array is; every output of every run asks for it, and numpy makes names anew each time."""
    return f"{dtype.name}{shape}".encode()


_NESTED = f"holds itself, or lists and tuples more than {MOST_NESTED} deep"


def _parts(value: Any, deep: int = 0) -> list[bytes]:  # noqa: ANN401
    if value.__class__ is np.ndarray and value.dtype.kind != "O":
        return [_heading(value.dtype, value.shape), value.tobytes()]
    if isinstance(value, list | tuple):
        if deep > MOST_NESTED:
            raise MisuseError(f"an output {_NESTED}; {_RETURNED}")
        return [f"({len(value)}".encode(), *(part for item in value for part in _parts(item, deep + 1))]
    if value is None or isinstance(value, str):
        return [f"{type(value).__name__}:{value}".encode("utf-8", "surrogatepass")]
    if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return [_heading(array.dtype, array.shape), array.tobytes()]
    raise MisuseError(f"an output is {_shown(value)}; {_RETURNED}")


_RETURNED = "a kernel returns arrays, numbers, texts, None, or tuples of them"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except BaseException as error:  # whatever an author's object raises, or one that is nested too deep
        if is_ctrl_c(error):
            raise
        return f"an object of type {type(value).__name__}"
