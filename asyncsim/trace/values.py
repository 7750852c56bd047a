"""Data in a line of a trace: up to 16 elements as JSON, more as a digest; the same bits when read back.

JSON has no NaN and no infinity, and a NaN has bits that matter, so these are texts: ``"inf"``,
``"-inf"``, ``"nan:7fc00000"`` (the bits, in hex). Any other float is written with the digits that
give the same double, and every smaller float is a double. Where a Python number cannot hold the
element (long double, a boolean that is neither 0 nor 1), it is ``"bits:..."``. A complex number
is a pair.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from asyncsim.trace.declare import dtype_of
from asyncsim.trace.digest import digest_bytes
from asyncsim.trace.event import Digest
from asyncsim.trace.fields import HEX, Field, Object, whole
from asyncsim.trace.strict import BadFieldError, list_in, shown

INLINE = 16
"""Up to so many elements stand in the line itself."""

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bfloat16", "float16", "float32",
    "float64", "longdouble", "complex64", "complex128", "clongdouble",
)  # fmt: skip
"""What a window can hold, by the names that a trace uses. (numpy's float128 has another name on other machines.)"""

DIGEST = Object(
    "'value'",
    (
        Field("sha256", HEX, "the first 16 hex digits of the SHA-256", source="hex"),
        Field("elements", whole(INLINE + 1), "how many there are"),
    ),
)
"""What stands for more elements."""
ELEMENT = {"oneOf": [{"type": ["number", "boolean"]}, {"type": "string", "pattern": "^(-?inf|(nan|bits):[0-9a-f]+)$"}]}
"""The schema of an element of a value; a complex one is a pair of them."""

_DOUBLE = 8
_HEX = frozenset("0123456789abcdef")
_LONG = {np.dtype(np.longdouble).name: "longdouble", np.dtype(np.clongdouble).name: "clongdouble"}


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype, one of `DTYPES`."""
    # Where long double is an alias of double, numpy calls both float64.
    return dtype.name if dtype.name in DTYPES else _LONG[dtype.name]


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the dtype of this name, one of `DTYPES`."""
    return dtype_of(name)


def encode_data(data: bytes | Digest, dtype: np.dtype[Any]) -> list[Any] | dict[str, Any]:
    """Return the JSON value of an event's data: a list of elements, or their digest.

    Args:
        data: the elements in C order, or the digest of them.
        dtype: of the elements; a complex one becomes a pair [real, imaginary].

    """
    if isinstance(data, Digest):
        return DIGEST.write(data)
    elements = len(data) // dtype.itemsize
    if elements > INLINE:
        return DIGEST.write(Digest(digest_bytes(data), elements))
    array = np.frombuffer(data, dtype)
    part = _part(dtype)
    if part is not dtype:
        parts = _encode(array.view(part), part)
        return [parts[i : i + 2] for i in range(0, len(parts), 2)]
    return _encode(array, dtype)


def decode_data(value: Any, dtype: np.dtype[Any], elements: int) -> bytes | Digest:  # noqa: ANN401 - any JSON value
    """Return the data that `encode_data` wrote.

    Args:
        value: the JSON value.
        dtype: of the region.
        elements: how many the region has.

    Raises:
        BadFieldError: `value` is not what such a region can hold.

    """
    if isinstance(value, dict):
        return _decode_digest(value, elements)
    values = list_in(value, "'value'")
    if len(values) != elements:
        raise BadFieldError(f"'value' has {len(values)} elements; its region has {elements}")
    if elements > INLINE:
        raise BadFieldError(f"'value' lists {elements} elements; more than {INLINE} are a digest")
    part = _part(dtype)
    if part is dtype:
        return b"".join(_element(item, dtype) for item in values)
    for item in values:
        if type(item) is not list or len(item) != 2:  # noqa: PLR2004 - real and imaginary
            raise BadFieldError(f"{shown(item)} is no pair of a real and an imaginary part")
    return b"".join(_element(half, part) for item in values for half in item)


def encode_number(value: Any) -> bool | int | float | str:  # noqa: ANN401 - a Python or numpy number
    """Return the JSON value of a number that is not in a window: infinities and NaN as texts."""
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, int):
        return number
    number = float(number)
    return number if math.isfinite(number) else str(number)


def decode_number(value: Any, what: str) -> bool | int | float:  # noqa: ANN401 - any JSON value
    """Return the number that `encode_number` wrote.

    Args:
        value: any JSON value; infinities and NaN are texts.
        what: its name, for the message.

    Raises:
        BadFieldError: it is none of them.

    """
    if type(value) in (bool, int, float):
        return value  # type: ignore[no-any-return]
    if value in ("inf", "-inf", "nan"):
        return float(value)
    raise BadFieldError(f"{what} is {shown(value)}; it must be a number")


def _part(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the real part of a complex dtype; any other dtype itself."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "biu"


def _encode(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> list[Any]:
    if _is_float(dtype):
        if dtype.itemsize > _DOUBLE:
            return [f"bits:{_bits(element)}" for element in array]
        with np.errstate(all="ignore"):  # a signalling NaN complains; its bits are kept apart
            doubles = array.astype(np.float64).tolist()
        return [
            x if math.isfinite(x) else f"nan:{_bits(element)}" if x != x else str(x)  # noqa: PLR0124 - only NaN differs
            for x, element in zip(doubles, array, strict=True)
        ]
    if dtype.kind == "b":
        raw = array.view(np.uint8).tolist()
        return [bool(byte) if byte <= 1 else f"bits:{byte:02x}" for byte in raw]
    return array.tolist()  # type: ignore[no-any-return]


def _bits(element: Any) -> str:  # noqa: ANN401 - a numpy scalar
    raw = element.tobytes()
    return f"{int.from_bytes(raw, sys.byteorder):0{2 * len(raw)}x}"


def _element(item: Any, dtype: np.dtype[Any]) -> bytes:  # noqa: ANN401
    if type(item) is str and item.startswith(("nan:", "bits:")):
        return _from_bits(item, dtype)
    if not _is_float(dtype):
        return _whole_number(item, dtype)
    if type(item) is str and item in ("inf", "-inf"):
        return np.asarray(float(item)).astype(dtype).tobytes()
    if type(item) not in (int, float):
        raise BadFieldError(f"{shown(item)} is no {dtype.name}")
    with np.errstate(all="ignore"):
        made = np.asarray(float(item)).astype(dtype)
    if not np.isfinite(made):
        raise BadFieldError(f"{shown(item)} is too large for {dtype.name}")
    return made.tobytes()


def _whole_number(item: Any, dtype: np.dtype[Any]) -> bytes:  # noqa: ANN401
    if dtype.kind == "b":
        fits = type(item) is bool
    else:
        info = np.iinfo(dtype)
        fits = type(item) is int and info.min <= item <= info.max
    if not fits:
        raise BadFieldError(f"{shown(item)} is no {dtype.name}")
    return np.asarray(item, dtype).tobytes()


def _from_bits(text: str, dtype: np.dtype[Any]) -> bytes:
    kind, _, digits = text.partition(":")
    if len(digits) != 2 * dtype.itemsize or not _HEX.issuperset(digits):
        raise BadFieldError(f"{shown(text)} are not the bits of a {dtype.name}: {2 * dtype.itemsize} hex digits")
    raw = int(digits, 16).to_bytes(dtype.itemsize, sys.byteorder)
    if kind == "nan" and not (_is_float(dtype) and bool(np.isnan(np.frombuffer(raw, dtype)[0]))):
        raise BadFieldError(f"{shown(text)} is no NaN of {dtype.name}")
    return raw


def _decode_digest(value: dict[str, Any], elements: int) -> Digest:
    digest = Digest(*DIGEST.read(value).values())
    if digest.elements != elements:
        raise BadFieldError(f"'value' is the digest of {digest.elements} elements; its region has {elements}")
    return digest
