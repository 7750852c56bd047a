"""The constants of shmem4py, by their names there."""

from __future__ import annotations

from enum import IntEnum, IntFlag, StrEnum
from typing import Any

from asyncsim.trace.errors import MisuseError

CMP = IntEnum("CMP", "EQ NE GT LE LT GE", start=0)
SIGNAL = IntEnum("SIGNAL", "SET ADD", start=0)
THREAD = IntEnum("THREAD", "SINGLE FUNNELED SERIALIZED MULTIPLE", start=0)
CTX = IntFlag("CTX", "PRIVATE SERIALIZED NOSTORE")
MALLOC = IntFlag("MALLOC", "ATOMICS_REMOTE SIGNAL_REMOTE")
OP = StrEnum("OP", "AND OR XOR MAX MIN SUM PROD")
AMO = StrEnum("AMO", "SET INC ADD AND OR XOR")

_KINDS: tuple[Any, ...] = (CMP, OP, AMO, SIGNAL, THREAD, CTX, MALLOC)
CONSTANTS: dict[str, Any] = {f"{kind.__name__}_{each.name}": each for kind in _KINDS for each in kind} | {
    kind.__name__: kind for kind in _KINDS
}
"""``CMP`` and ``CMP_EQ`` alike."""
_SIGNS = {"==": "EQ", "!=": "NE", ">": "GT", "<=": "LE", "<": "LT", ">=": "GE"}


def comparison(cmp: Any) -> str:
    """Return what `operator` calls a comparison that shmem4py takes: ``CMP.EQ``, its number, ``"EQ"`` or ``"=="``.

    Args:
        cmp: as the author gave it.

    Raises:
        MisuseError: it is none.

    """
    try:
        known: str = CMP[_SIGNS.get(cmp, cmp.upper())].name if isinstance(cmp, str) else CMP(cmp).name
    except (KeyError, ValueError) as error:
        raise MisuseError(f"there is no comparison {cmp!r}; use {', '.join(CMP.__members__)}") from error
    return known.lower()
