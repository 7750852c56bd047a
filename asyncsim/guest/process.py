"""What a rank takes for its process's own: environment, arguments, ``__main__``, output, random numbers.

A launcher starts a process a rank. Here they are threads of one process, so these are exchanged
whenever the turn goes from one rank to another.
"""

from __future__ import annotations

import builtins
import os
import random
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.trace.lent import lent

if TYPE_CHECKING:
    from types import ModuleType

_TORCH_SEED = 67280421310721
"""What torch calls the seed that nobody chose; for the time after a launch in which torch was imported."""
_PORT = 29500
"""The port that torchrun names by default; nobody listens there."""


@dataclass(slots=True)
class Process:
    """The belongings of one process.

    Args:
        environ: the environment variables.
        argv: ``sys.argv``.
        main: the module ``__main__``.
        streams: ``sys.stdout`` and ``sys.stderr``.
        printing: ``builtins.print``.
        python, numpy, torch: the states of the global generators; torch's is None until torch is imported.
        torch_seed: what torch's is seeded with then.

    """

    environ: dict[str, str]
    argv: list[str]
    main: ModuleType
    streams: tuple[Any, Any]
    printing: Any
    python: Any
    numpy: Any
    torch: Any = None
    torch_seed: int = _TORCH_SEED

    @classmethod
    def present(cls, *, torch_seed: int = _TORCH_SEED) -> Process:
        """Return what the process has now, and what is to seed torch's generator if it is imported later."""
        torch = _torch()
        return cls(
            dict(os.environ), sys.argv, sys.modules["__main__"], (sys.stdout, sys.stderr), builtins.print,
            random.getstate(), np.random.get_state(),  # noqa: NPY002 - the global one
            None if torch is None else torch.get_rng_state(), torch_seed,
        )  # fmt: skip

    @classmethod
    def of_rank(cls, rank: int, ranks: int, *, seed: int, argv: list[str], main: ModuleType) -> Process:
        """Return what a launcher gives to a rank. Generators that it does not seed are seeded, all differently.

        Args:
            rank: from 0.
            ranks: P.
            seed: of ``random``, numpy and torch; with it, each rank begins elsewhere.
            argv: of the script: its path, then its arguments.
            main: the module that the script runs as.

        """
        environ = {
            **os.environ, "RANK": f"{rank}", "LOCAL_RANK": f"{rank}", "WORLD_SIZE": f"{ranks}",
            "LOCAL_WORLD_SIZE": f"{ranks}", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": f"{_PORT}",
        }  # fmt: skip
        drawn = np.random.RandomState([seed, rank])
        own = random.Random(seed * ranks + rank)  # noqa: S311 - of the script's, not of ours
        drawn_next = np.random.SeedSequence([seed, rank]).generate_state(1, np.uint64)
        return cls(
            environ, list(argv), main, (lent(sys.stdout), lent(sys.stderr)), builtins.print, own.getstate(),
            drawn.get_state(), torch_seed=int(drawn_next[0] >> np.uint64(1)),
        )  # fmt: skip

    def install(self) -> None:
        """Let the process have this."""
        for name in [name for name in os.environ if name not in self.environ]:
            del os.environ[name]
        for name, value in self.environ.items():
            if os.environ.get(name) != value:
                os.environ[name] = value
        sys.argv = self.argv
        sys.modules["__main__"] = self.main
        sys.stdout, sys.stderr = self.streams
        builtins.print = self.printing
        random.setstate(self.python)
        np.random.set_state(self.numpy)  # noqa: NPY002 - as above
        torch = _torch()
        if torch is not None:
            if self.torch is None:
                self.seed_torch()
            else:
                torch.set_rng_state(self.torch)

    def seed_torch(self) -> None:
        """Seed torch's generator, which nobody has used yet."""
        torch = _torch()
        if torch is not None:
            torch.default_generator.manual_seed(self.torch_seed)


def _torch() -> Any:  # noqa: ANN401 - a module that need not be installed
    """Return torch if the script has imported it, all of it."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "default_generator") and hasattr(torch, "set_rng_state") else None
