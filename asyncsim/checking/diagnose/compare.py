"""An output beside what it should be: equal within a tolerance, or where it differs, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Difference:
    """Where an output is not what it should be.

    Args:
        elements: how many differ, of how many.
        text: the first few, in words.

    """

    elements: int
    text: str


def compare(got: Any, want: Any, *, rtol: float, atol: float) -> Difference | None:  # noqa: ANN401 - any output
    """Return how an output differs from its golden, beyond the tolerance; None if it does not.

    Floating and complex numbers are compared in double precision, NaN equal to NaN; integers and
    booleans must be equal. The dtype is the kernel's own choice, the shape is not.

    Args:
        got: the output: an array, a number, a text, None, or a list or tuple of such.
        want: the golden.
        rtol: relative to the golden.
        atol: absolute, in addition.

    """
    if isinstance(got, list | tuple) or isinstance(want, list | tuple):
        return _compare_parts(got, want, rtol=rtol, atol=atol)
    if got is None or want is None or isinstance(got, str) or isinstance(want, str):
        same = type(got) is type(want) and got == want
        return None if same else Difference(1, f"got {_short(got)}, expected {_short(want)}")
    a, b = np.asarray(got), np.asarray(want)
    if a.shape != b.shape:
        return Difference(max(a.size, 1), f"got shape {a.shape}, expected {b.shape}")
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        off = a != b
    else:
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        with np.errstate(all="ignore"):
            off = ~np.isclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
    count = int(np.count_nonzero(off))
    if not count:
        return None
    places = np.argwhere(off)[:3]
    shown = ", ".join(f"{_index(place)}{a[tuple(place)]!s} instead of {b[tuple(place)]!s}" for place in places)
    return Difference(count, f"{count} of {a.size} elements differ: {shown}{', …' if count > len(places) else ''}")


def _compare_parts(got: Any, want: Any, *, rtol: float, atol: float) -> Difference | None:  # noqa: ANN401
    try:
        parts = list(zip(got, want, strict=True))
    except (TypeError, ValueError):
        return Difference(1, f"got {_short(got)}, expected {_short(want)}")
    differences = [compare(a, b, rtol=rtol, atol=atol) for a, b in parts]
    bad = [(n, difference) for n, difference in enumerate(differences) if difference is not None]
    if not bad:
        return None
    return Difference(sum(d.elements for _, d in bad), "; ".join(f"output {n}: {d.text}" for n, d in bad))


def _short(value: Any) -> str:  # noqa: ANN401
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, list | tuple) else repr(value)[:60]


def _index(place: Any) -> str:  # noqa: ANN401 - a row of argwhere
    return f"[{', '.join(str(int(n)) for n in place)}] is " if len(place) else ""
