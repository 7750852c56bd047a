"""The constants of shmem4py, by their names there."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum
from typing import Any


class CMP(IntEnum):
    """Comparisons."""

    EQ, NE, GT, LE, LT, GE = range(6)


class OP(StrEnum):
    """Reductions."""

    AND, OR, XOR, MAX, MIN, SUM, PROD = "and", "or", "xor", "max", "min", "sum", "prod"


class AMO(StrEnum):
    """Atomics."""

    SET, INC, ADD, AND, OR, XOR = "set", "inc", "add", "and", "or", "xor"


class SIGNAL(IntEnum):
    """What a put with signal does to its signal."""

    SET, ADD = range(2)


class THREAD(IntEnum):
    """Thread levels."""

    SINGLE, FUNNELED, SERIALIZED, MULTIPLE = range(4)


class CTX(IntFlag):
    """Options of contexts."""

    PRIVATE, SERIALIZED, NOSTORE = 1, 2, 4


class MALLOC(IntFlag):
    """Hints of allocations."""

    ATOMICS_REMOTE, SIGNAL_REMOTE = 1, 2


CONSTANTS: dict[str, Any] = {
    f"{kind.__name__}_{each.name}": each for kind in (CMP, OP, AMO, SIGNAL, THREAD, CTX, MALLOC) for each in kind
} | {kind.__name__: kind for kind in (CMP, OP, AMO, SIGNAL, THREAD, CTX, MALLOC)}
"""``CMP`` and ``CMP_EQ`` alike."""

COMPARED = {"EQ": "eq", "NE": "ne", "GT": "gt", "LE": "le", "LT": "lt", "GE": "ge"}
"""What `operator` calls each comparison."""


def comparison(cmp: Any) -> str:
    """Return what `operator` calls a comparison that shmem4py takes: ``CMP.EQ``, its number, ``"EQ"`` or ``"=="``.

    Args:
        cmp: as the author gave it.

    """
    signs = {"==": "EQ", "!=": "NE", ">": "GT", "<=": "LE", "<": "LT", ">=": "GE"}
    if isinstance(cmp, str):
        return COMPARED[signs.get(cmp, cmp.upper())]
    return COMPARED[CMP(cmp).name]
