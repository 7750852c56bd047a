"""What stands behind the colons of a kernel's parameters, and whether what is passed fits it.

``pl.Tensor[[1, 64], pl.FP32]``, ``pl.Out[...]``, ``pl.InOut[...]``, ``pl.Scalar[pl.INT32]``,
``pld.DistributedTensor[[nr, 64], pl.FP32]``. An extent is a number or ``pl.dynamic("NR")``, which is the
same number wherever it stands in one call, or is computed from such: ``NR * 64``. A parameter without an annotation
takes anything.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.pypto.dtypes import DType
from asyncsim.frontends.pypto.refusals import refused
from asyncsim.frontends.pypto.values import type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True, eq=False)
class Dynamic:
    """An extent that is known when the program runs: ``pl.dynamic("NR")``; or what is computed from such.

    Args:
        name: as the author writes it.
        settled: returns the extents that are known just now, by name.
        parts: of a computed one: the operator and its two operands.

    """

    name: str
    settled: Callable[[], Mapping[str, int]]
    parts: tuple[Callable[[int, int], int], Any, Any] | None = None

    def __repr__(self) -> str:
        return self.name

    def known(self, settled: Mapping[str, int] | None = None) -> int | None:
        """Return the number, if it is known.

        Args:
            settled: extents by name; None: those of what runs just now.

        """
        settled = self.settled() if settled is None else settled
        if self.parts is None:
            return settled.get(self.name)
        how, *operands = self.parts
        found = [each.known(settled) if isinstance(each, Dynamic) else int(each) for each in operands]
        left, right = found
        return None if left is None or right is None else how(left, right)

    def __index__(self) -> int:
        found = self.known()
        if found is None:
            raise refused(
                f"{self.name} is not known here: it stands in no annotation of a parameter of this function; "
                "use pld.nranks(ctx) in a kernel, pld.world_size() in the host function", TypeError
            )  # fmt: skip
        return found

    __int__ = __index__

    def _with(self, sign: str, left: Any, right: Any) -> Dynamic:  # noqa: ANN401 - numbers and extents
        for each in (left, right):
            if isinstance(each, bool) or not hasattr(each, "__index__"):
                raise refused(f"{left!r} {sign} {right!r}: an extent is computed from integers and extents", TypeError)
        shown = (f"({each})" if getattr(each, "parts", None) else f"{each}" for each in (left, right))
        return Dynamic(f" {sign} ".join(shown), self.settled, (_SIGNS[sign], left, right))


_SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
for _sign, _how in _SIGNS.items():
    setattr(Dynamic, f"__{_how.__name__}__", lambda self, other, sign=_sign: self._with(sign, self, other))
    setattr(Dynamic, f"__r{_how.__name__}__", lambda self, other, sign=_sign: self._with(sign, other, self))


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

    def learn(self, shape: tuple[int, ...], known: dict[str, int]) -> None:
        """Settle the dynamic extents that a tensor of this shape settles.

        Args:
            shape: of what is passed.
            known: the extents that are settled, by name; those of this tensor are added.

        """
        for extent, size in zip(self.shape or (), shape, strict=False):
            if isinstance(extent, Dynamic) and extent.parts is None:
                known.setdefault(extent.name, size)

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
        self.learn(shape, known)
        expected = [extent.known(known) if isinstance(extent, Dynamic) else extent for extent in self.shape]
        if len(shape) != len(expected) or any(b not in (None, a) for a, b in zip(shape, expected, strict=True)):
            names = {f"{each}": each.known(known) for each in self.shape if isinstance(each, Dynamic)}
            settled = "".join(f", {name} = {size}" for name, size in names.items() if size is not None)
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
