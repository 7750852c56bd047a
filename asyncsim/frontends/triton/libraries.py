"""Triton and torch: imported when they are first used, Triton always as its own interpreter.

Nothing of asyncsim needs them, so this front end can be imported where they are not installed; importing it asks for
the interpreter, which Triton settles when it is imported itself.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from asyncsim.trace.errors import MisuseError

_ASKS = "TRITON_INTERPRET"

if "triton" not in sys.modules:
    os.environ[_ASKS] = "1"


class Library:
    """A module that is imported when something of it is first asked for.

    Args:
        name: dots and all.

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Any = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = _imported(self._name)
        return getattr(self._module, attribute)


def installed() -> bool:
    """Say whether both are there."""
    return all(find_spec(name) is not None for name in ("torch", "triton"))


def _imported(name: str) -> Any:
    if not installed():
        raise MisuseError("Triton kernels need torch and triton; install them: pip install 'asyncsim[triton]'")
    if name.startswith("triton"):
        os.environ[_ASKS] = "1"
        language, runtime = import_module("triton.language"), import_module("triton.runtime.interpreter")
        if not isinstance(language.zeros, runtime.InterpretedFunction):
            raise MisuseError(
                "triton was imported before, and not as its interpreter; import asyncsim.frontends.triton first, or "
                f"set {_ASKS}=1"
            )
    return import_module(name)


torch: Any = Library("torch")
tl: Any = Library("triton.language")
interpreter: Any = Library("triton.runtime.interpreter")
ir: Any = Library("triton._C.libtriton.ir")
