"""The import hook: while a script runs, ``pypto`` is asyncsim's. Before and after, it is whatever is installed."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from asyncsim.frontends.pypto.modules import modules_of
from asyncsim.frontends.pypto.refusals import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from asyncsim.frontends.pypto.session import Session


class _Finder:
    """Says of a module of pypto that asyncsim does not have, which it has: a real one must not answer for it."""

    def __init__(self, known: Sequence[str]) -> None:
        self._known = known

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - the protocol's
        """Find nothing; refuse what is below pypto."""
        if name.startswith("pypto."):
            _refuse(name, self._known)


def _refuse(name: str, known: Sequence[str]) -> NoReturn:
    raise ModuleNotFoundError(f"asyncsim's pypto has no module {name!r}{nearest(name, known)}", name=name)


def _ours(name: str) -> bool:
    return name == "pypto" or name.startswith("pypto.")


@contextmanager
def answering(session: Session) -> Iterator[None]:
    """Let imports of ``pypto`` and what is below it find the modules of a session, while the block runs."""
    before: dict[str, ModuleType] = {name: module for name, module in sys.modules.items() if _ours(name)}
    modules = modules_of(session)
    finder = _Finder(list(modules))
    for name in before:
        del sys.modules[name]
    sys.modules.update(modules)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _ours(name)]:
            del sys.modules[name]
        sys.modules.update(before)
        session.close()
