"""Answering ``torch.distributed`` for the time of a run, whether torch is installed or not.

Nothing is imported here. Where a script imports torch, its ``torch.distributed`` stays torch's own, and makes its
groups of ours as soon as torch is there. Where torch is not installed, ``import torch.distributed`` finds a stand-in
that has nothing else, for numpy arrays.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.session import participant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec

_TORCH, _NAME = "torch", "torch.distributed"
_OURS = __name__.rpartition(".")[0]


@contextmanager
def answered() -> Iterator[None]:
    """Answer ``torch.distributed`` while the block runs, and leave everything as it was."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    if _TORCH in sys.modules:
        finder.cover(sys.modules[_TORCH])
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        finder.uncover()


class _Finder:
    """Finds torch where it is installed, and has it serve the ranks; else finds the stand-in."""

    def __init__(self) -> None:
        self._installed_here: Any = None
        self._standing_in = False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:  # noqa: ANN401 - a spec
        """Find torch, and nothing else."""
        if name != _TORCH:
            return None
        spec = self._installed(name, path, target)
        if spec is None:
            own: Any = self
            return importlib.util.spec_from_loader(_TORCH, own, origin="asyncsim", is_package=True)
        loader: Any = spec.loader
        run = loader.exec_module

        def run_and_cover(module: ModuleType) -> None:
            del loader.exec_module
            run(module)
            self.cover(module)
            own = participant()
            if own is not None:  # the other ranks' generators are seeded when they have the turn
                own.session.process(own.rank).seed_torch()

        loader.exec_module = run_and_cover
        return spec

    def _installed(self, name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Make the stand-in."""
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Give the stand-in the one thing that it has."""
        self._standing_in = True
        ours = sys.modules[_OURS]
        vars(module)["distributed"] = ours
        sys.modules[_NAME] = ours

    def cover(self, torch: Any) -> None:  # noqa: ANN401 - the module
        """Let torch's own machinery serve the ranks."""
        if hasattr(torch, "_C") and torch.distributed.is_available():
            native = importlib.import_module(f"{_OURS}.native")
            self._installed_here = (native.remove, native.install())

    def uncover(self) -> None:
        """Leave torch as it was."""
        if self._installed_here is not None:
            remove, before = self._installed_here
            remove(before)
        if self._standing_in:
            sys.modules.pop(_TORCH, None)
            sys.modules.pop(_NAME, None)


class _StandIn(ModuleType):
    """Stands for torch where it is not installed."""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - never returns
        raise AttributeError(
            f"torch has no {name!r} here: torch is not installed, and asyncsim answers torch.distributed alone; "
            "use numpy arrays, or install torch"
        )
