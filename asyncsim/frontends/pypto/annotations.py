"""What stands behind the colons of a kernel's parameters, and whether what is passed fits it.

``pl.Tensor[[1, 64], pl.FP32]``, ``pl.Out[...]``, ``pl.InOut[...]``, ``pl.Scalar[pl.INT32]``,
``pld.DistributedTensor[[nr, 64], pl.FP32]``. An extent is a number or ``pl.dynamic("NR")``, which is the
same number wherever it stands in one call. A parameter without an annotation takes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import type_of


@dataclass(frozen=True, slots=True)
class Dynamic:
    """An extent that is known when the program runs: ``pl.dynamic("NR")``."""

    name: str

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a parameter takes.

    Args:
        kind: "Tensor", "DistributedTensor" or "Scalar".
        shape: None if it is not said.
        dtype: None if it is not said.
        out: "", "Out" or "InOut".

    """

    kind: str
    shape: tuple[int | Dynamic, ...] | None = None
    dtype: DType | None = None
    out: str = ""

    def __getitem__(self, key: Any) -> Annotation:  # noqa: ANN401 - whatever stands between the brackets
        """Return the annotation with a shape and a dtype, or with a scalar's dtype."""
        if self.kind == "Scalar":
            return replace(self, dtype=_dtype(self.kind, key))
        parts = key if isinstance(key, tuple) else (key,)
        if not parts or not isinstance(parts[0], list | tuple):
            raise refused(f"{self.kind}[...] takes a shape and a dtype: {self.kind}[[1, 64], pl.FP32]", TypeError)
        shape = tuple(_extent(self.kind, extent) for extent in parts[0])
        return replace(self, shape=shape, dtype=_dtype(self.kind, parts[1]) if len(parts) > 1 else None)

    def check(self, where: str, shape: tuple[int, ...], dtype: DType, known: dict[str, int]) -> None:
        """Refuse a tensor that does not fit.

        Args:
            where: the function and the parameter, for the message.
            shape: of what is passed.
            dtype: of what is passed.
            known: the dynamic extents that are settled in this call; those of this tensor are added.

        Raises:
            RefusedError: it does not fit.

        """
        if self.dtype is not None and dtype != self.dtype:
            raise refused(f"{where} takes dtype {self.dtype}, got {dtype}", TypeError)
        if self.shape is None:
            return
        fits = len(shape) == len(self.shape) and all(
            known.setdefault(extent.name, size) == size if isinstance(extent, Dynamic) else extent == size
            for extent, size in zip(self.shape, shape, strict=True)
        )
        if not fits:
            names = dict.fromkeys(extent.name for extent in self.shape if isinstance(extent, Dynamic))
            settled = "".join(f", {name} = {known[name]}" for name in names if name in known)
            raise refused(f"{where} takes shape {list(self.shape)}{settled}, got {list(shape)}")


def scalar(where: str, dtype: DType | None, value: Any) -> Any:  # noqa: ANN401 - a Python number
    """Return a number as a scalar parameter holds it: rounded to its dtype, if it has one.

    Raises:
        RefusedError: it is no number, or none that an integer dtype holds.

    """
    plain = isinstance(value, np.generic) or (hasattr(value, "__index__") and not hasattr(value, "shape"))
    if not plain and not isinstance(value, float):
        raise refused(f"{where} takes a Scalar, got {type_of(value)}", TypeError)
    if dtype is None:
        return value
    number = value.item() if isinstance(value, np.generic) else value
    number = number if isinstance(number, float) else int(number.__index__())
    with np.errstate(all="ignore"):  # too large for a float: infinite, as on the hardware
        try:
            made = np.asarray(number).astype(dtype.numpy).item()
        except OverflowError:
            made = None
    if made is None or (dtype.numpy.kind in "iub" and made != number):
        raise refused(f"{where} takes a Scalar of {dtype}, which does not hold {number!r}")
    return made


def _dtype(kind: str, dtype: object) -> DType:
    if not isinstance(dtype, DType):
        raise refused(f"{kind}[...] takes a dtype of pl's, such as pl.FP32; got {dtype!r}", TypeError)
    return dtype


def _extent(kind: str, extent: Any) -> int | Dynamic:  # noqa: ANN401 - whatever stands in the list
    if isinstance(extent, Dynamic):
        return extent
    if isinstance(extent, bool) or not hasattr(extent, "__index__"):
        raise refused(f"{kind}[...]: an extent is an integer or pl.dynamic('NR'); got {extent!r}", TypeError)
    return int(extent.__index__())


class Direction:
    """``pl.Out`` and ``pl.InOut``: the function writes what is passed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, inner: object) -> Annotation:
        """Return the annotation inside, marked as written."""
        if not isinstance(inner, Annotation) or inner.kind == "Scalar":
            raise refused(f"{self._name}[...] takes a tensor: {self._name}[pl.Tensor[[1, 64], pl.FP32]]", TypeError)
        return replace(inner, out=self._name)


TENSOR = Annotation("Tensor")
DISTRIBUTED = Annotation("DistributedTensor")
SCALAR = Annotation("Scalar")
