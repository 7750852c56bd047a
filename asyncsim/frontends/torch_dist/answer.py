"""Answering ``torch.distributed`` for the time of a run, whether torch is installed or not.

Nothing is imported here. Where a script imports torch, its ``torch.distributed`` is covered as soon as
torch is there: the script, and modules of its own, see asyncsim's names, while torch's own modules go
on seeing the real ones. Where torch is not installed, ``import torch.distributed`` finds a stand-in
that has nothing else.
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
    """Finds torch where it is installed, and covers a part of it; else finds the stand-in."""

    def __init__(self) -> None:
        self._torch: Any = None
        self._real: ModuleType | None = None
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
        """Put the answers over torch's own."""
        self._torch, self._real = torch, torch.distributed
        torch.distributed = sys.modules[_NAME] = _Cover(torch.distributed)

    def uncover(self) -> None:
        """Take the answers away again."""
        if self._real is not None:
            self._torch.distributed = sys.modules[_NAME] = self._real
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


class _Cover(ModuleType):
    """Stands for torch's ``torch.distributed``: asyncsim's names for scripts, the real ones for torch."""

    def __init__(self, real: ModuleType) -> None:
        super().__init__(real.__name__, real.__doc__)
        own = {name: value for name, value in vars(real).items() if name in _MODULE}
        vars(self).update(own, _real=real, __all__=sys.modules[_OURS].__all__)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever is there
        real: Any = vars(self)["_real"]
        asking = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - the only way to ask
        if asking == _TORCH or asking.startswith((f"{_TORCH}.", "importlib.")):
            return getattr(real, name)
        ours: Any = sys.modules[_OURS]
        if name in ours.__all__:
            return getattr(ours, name)
        value = getattr(real, name)
        if isinstance(value, ModuleType):
            return value
        names = ", ".join(known for known in ours.__all__ if not known.startswith("_"))
        raise AttributeError(f"asyncsim does not answer torch.distributed.{name}; it answers {names}")

    def __setattr__(self, name: str, value: object) -> None:
        setattr(vars(self)["_real"], name, value)


_MODULE = ("__name__", "__package__", "__path__", "__spec__", "__loader__", "__file__")
"""What makes it the same module to the import system."""
