"""Digests: a value that is too large for a line of a trace, in sixteen hex digits."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np

from asyncsim.trace.errors import MisuseError


def digest_bytes(data: bytes) -> str:
    """Return the first 16 hex digits of the SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()[:16]


def digest_value(value: Any) -> str:  # noqa: ANN401 - what a kernel returned
    """Return the digest of an output: its dtype, its shape and its bits, so that -0.0 is not 0.0."""
    return digest_bytes(b"".join(_parts(value)))


@cache
def _heading(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Write what an array is; every output of every run asks for it, and numpy makes names anew each time."""
    return f"{dtype.name}{shape}".encode()


def _parts(value: Any) -> list[bytes]:  # noqa: ANN401
    if value.__class__ is np.ndarray and value.dtype.kind != "O":
        return [_heading(value.dtype, value.shape), value.tobytes()]
    if isinstance(value, list | tuple):
        return [f"({len(value)}".encode(), *(part for item in value for part in _parts(item))]
    if value is None or isinstance(value, str):
        return [f"{type(value).__name__}:{value}".encode()]
    if isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return [_heading(array.dtype, array.shape), array.tobytes()]
    raise MisuseError(f"an output is {value!r}; a kernel returns arrays, numbers, texts, None, or tuples of them")
