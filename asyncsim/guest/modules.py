"""Modules beside the script: each rank imports its own, as each process would.

One may ask for its rank when it is imported. Modules from elsewhere, installed ones above all, are
shared: they are large, and some cannot be imported twice.
"""

from __future__ import annotations

import sys
from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType, ModuleType

_INSTALLED = frozenset(("site-packages", "dist-packages"))
_SHARED = "torch"
"""Shared also where it lies beside the script: it is covered as a whole."""


class LocalModules:
    """The modules that the running rank has imported from a folder.

    Args:
        folder: of the script, resolved; None: no module is a rank's own.

    """

    def __init__(self, folder: PurePath | None) -> None:
        """Leave alone what is imported already."""
        self._folder = folder
        self._judged = dict.fromkeys(sys.modules, False)

    def take(self) -> dict[str, ModuleType]:
        """Remove the running rank's own modules, and return them."""
        for name in [name for name in sys.modules if name not in self._judged]:
            self._judged[name] = name.partition(".")[0] != _SHARED and self._is_local(sys.modules[name])
        own = [name for name, local in self._judged.items() if local and name in sys.modules]
        return {name: sys.modules.pop(name) for name in own}

    def _is_local(self, module: ModuleType) -> bool:
        file = getattr(module, "__file__", None)
        if self._folder is None or not isinstance(file, str) or not file.endswith(".py"):
            return False
        path = PurePath(file)
        return path.is_relative_to(self._folder) and _INSTALLED.isdisjoint(path.parts)


def is_importing(frame: FrameType | None) -> bool:
    """Say whether some module is being imported in the frames that lead to this one."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
