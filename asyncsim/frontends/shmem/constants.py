"""The constants of shmem4py, by their names there."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum

CMP = IntEnum("CMP", "EQ NE GT LE LT GE", start=0)
OP = StrEnum("OP", [(name, name.lower()) for name in ("AND", "OR", "XOR", "MAX", "MIN", "SUM", "PROD")])
AMO = StrEnum("AMO", [(name, name.lower()) for name in ("SET", "INC", "ADD", "AND", "OR", "XOR")])
SIGNAL = IntEnum("SIGNAL", "SET ADD", start=0)
THREAD = IntEnum("THREAD", "SINGLE FUNNELED SERIALIZED MULTIPLE", start=0)
CTX = IntFlag("CTX", "PRIVATE SERIALIZED NOSTORE")
MALLOC = IntFlag("MALLOC", "ATOMICS_REMOTE SIGNAL_REMOTE")

CONSTANTS = {
    f"{kind.__name__}_{each.name}": each for kind in (CMP, OP, AMO, SIGNAL, THREAD, CTX, MALLOC) for each in kind
} | {kind.__name__: kind for kind in (CMP, OP, AMO, SIGNAL, THREAD, CTX, MALLOC)}
"""``CMP`` and ``CMP_EQ`` alike."""

COMPARED = {"EQ": "eq", "NE": "ne", "GT": "gt", "LE": "le", "LT": "lt", "GE": "ge"}
"""What `operator` calls each comparison."""


def comparison(cmp: object) -> str:
    """Return what `operator` calls a comparison that shmem4py takes: ``CMP.EQ``, its number, ``"EQ"`` or ``"=="``.

    Args:
        cmp: as the author gave it.

    """
    signs = {"==": "EQ", "!=": "NE", ">": "GT", "<=": "LE", "<": "LT", ">=": "GE"}
    if isinstance(cmp, str):
        return COMPARED[signs.get(cmp, cmp.upper())]
    return COMPARED[CMP(cmp).name]
