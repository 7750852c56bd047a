"""How much memory this process has, and what is left for it; both only where the system says it."""

from __future__ import annotations

import os
from pathlib import Path

from asyncsim.trace.errors import MisuseError

_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_LIMIT, _USED = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
"""Of a container."""


def resident() -> int | None:
    """Return how many bytes of memory this process has now; None where the system does not say it."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def available() -> int | None:
    """Return how many more bytes this process can have before the system ends it; None where that is not known."""
    known = [room for room in (_of_machine(), _of_container()) if room is not None]
    return min(known) if known else None


def _of_machine() -> int | None:
    try:
        lines = _MEMINFO.read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _of_container() -> int | None:
    try:
        return max(int(_LIMIT.read_text("ascii")) - int(_USED.read_text("ascii")), 0)  # "max": no limit
    except (OSError, ValueError):
        return None


def size_text(count: int) -> str:
    """Return a number of bytes for people: ``350 MB``, ``5.1 GB``, ``4.5 PB``."""
    if count < _GB:
        return f"{count // 10**6} MB"
    for power, unit in enumerate(_UNITS, start=3):
        if count < 1000 ** (power + 1):
            return f"{count / 1000**power:.1f} {unit}"
    return f"over 10^{len(str(count)) - 1} bytes"


_GB = 10**9
_UNITS = ("GB", "TB", "PB", "EB")


def check_room(what: str, count: int) -> None:
    """Refuse what cannot be held in memory.

    Args:
        what: takes it, as a message begins: "window 'x' of shape (4,) on 4 ranks".
        count: bytes.

    Raises:
        MisuseError: it is more than can be had.

    """
    if count <= _PLENTY:
        return
    free = available()
    if count > (_ADDRESSED if free is None else free):
        told = "" if free is None else f", and {size_text(free)} are free"
        raise MisuseError(f"{what} takes {size_text(count)} of memory{told}; judge it smaller, or on fewer ranks")


_PLENTY = 1 << 26
"""So many bytes are always there: nobody is asked."""
_ADDRESSED = 1 << 47
"""No machine has so much, where it does not say what it has."""
