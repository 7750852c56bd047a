"""What Linux says of processes."""

from __future__ import annotations

from pathlib import Path


def alive(pid):
    """Say whether a process is there; one that ended and that nobody asked for counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    """Return the processes that the main thread of a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
