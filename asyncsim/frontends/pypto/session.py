"""A session: one script, what it compiles, and what it dispatches.

There is no state beside it: the modules that a script imports belong to its session.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncsim.frontends.pypto.dispatched import Dispatched
    from asyncsim.frontends.pypto.host import HostCall


class StuckError(BaseException):
    """A dispatched program did not end, so the script cannot go on; no ``except Exception`` of its own holds this."""


@dataclass(slots=True, eq=False)
class Session:
    """Everything that one script does.

    Args:
        path: of the script, as reports show it.
        scheduler: of the runs whose results the script sees, as text.
        memory: the memory model.
        seed: of the inputs of further calls.
        widen: ``pld.tensor.reduce_scatter`` takes all four operators.
        dispatched: the programs, in the order in which they were dispatched first.
        host: the host call under way.
        serial: a kernel has come to a loop whose passes may run at once, and that runs them one by one.

    """

    path: str
    _: KW_ONLY
    scheduler: str = "fifo"
    memory: str = "sc"
    seed: int = 0
    widen: bool = False
    dispatched: list[Dispatched] = field(default_factory=list)
    host: HostCall | None = None
    serial: bool = False
    folders: list[Path] = field(default_factory=list)

    def folder(self) -> Path:
        """Make a folder that lives as long as the session."""
        made = Path(tempfile.mkdtemp(prefix="asyncsim-pypto-"))
        self.folders.append(made)
        return made

    def close(self) -> None:
        """Remove the folders."""
        while self.folders:
            shutil.rmtree(self.folders.pop(), ignore_errors=True)
