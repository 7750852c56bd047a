"""What a kernel reaches besides its inputs and its memory: variables of modules and closures, by their names.

From the kernel's function on, over the functions and classes that their code names, as far as these are the
author's. What cannot change is left out: a number that no reached code assigns, a function, a module. So an
ordinary kernel reaches nothing, and nothing is looked at later.
"""

from __future__ import annotations

import dis
import functools
import os
import random
import sys
import types
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.record.snapshot import CONSTANTS, is_mutable
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.site import module_name, shown_path
from asyncsim.trace.guest import is_library

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_FUNCTIONS = 500
"""So many functions and classes are looked through."""
_MISSING = object()
_BY_TEXT = {"getattr", "setattr", "delattr", "modules", "import_module", "__import__"}
"""Code that names one of these may reach a variable by a text that it holds."""
_BY_ANY_TEXT = {"globals", "vars", "eval", "exec", "__dict__", "__globals__"}
"""Code that names one of these may reach every variable of its module, by a text that it makes."""
_STORES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "STORE_DEREF", "DELETE_DEREF"}


@dataclass(frozen=True, slots=True, eq=False)
class Variable:
    """A variable that a kernel reaches.

    Args:
        name: as its author knows it: ``COUNT``, ``State.total``, ``box of push``.
        file: in which it stands.
        get: returns its value, or something of its own where it has none.
        always: it may change, whatever its value looks like.

    """

    name: str
    file: str
    get: Callable[[], Any]
    always: bool = False

    def __str__(self) -> str:
        return f"{self.name} ({self.file})"


def reachable_variables(kernel: Kernel) -> list[Variable]:
    """Return the variables that a kernel reaches and that may change."""
    walk = _Walk(kernel.module.partition(".")[0])
    walk.add(kernel)
    walk.visit_all()
    return walk.variables()


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in code, that of functions inside it included.

    Args:
        used: all of them.
        assigned: those that it assigns, to whatever they belong.
        of_the_module: those that it assigns in its module, which may not be there before.
        imported: modules that it imports where it uses them.

    """

    used: frozenset[str]
    assigned: frozenset[str]
    of_the_module: frozenset[str]
    imported: frozenset[str]


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> _Names:
    used, assigned, of_the_module, imported = {*code.co_names}, set(), set(), set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in _STORES:
            assigned.add(str(instruction.argval))
        if instruction.opname == "STORE_GLOBAL":
            of_the_module.add(str(instruction.argval))
        elif instruction.opname == "IMPORT_NAME":
            imported.add(str(instruction.argval))
    if used & (_BY_TEXT | _BY_ANY_TEXT):
        texts = {each for each in code.co_consts if isinstance(each, str)}
        used |= texts
        assigned |= texts
        imported |= texts
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _names(constant)
            used |= inner.used
            assigned |= inner.assigned
            of_the_module |= inner.of_the_module
            imported |= inner.imported
    return _Names(*map(frozenset, (used, assigned, of_the_module, imported)))


class _Walk:
    """A walk over what a kernel's code names."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._left: deque[Any] = deque()
        self._seen: dict[int, Any] = {}
        self._assigned: set[str] = set()
        self._found: dict[tuple[int, str], Variable] = {}
        self._functions = 0

    def _is_library(self, module: str) -> bool:
        """Return whether a module need not be looked through; the kernel's own package may be an installed one, too."""
        return is_library(module) and (module.partition(".")[0] != self._own or self._own == "asyncsim")

    def add(self, value: Any) -> None:  # noqa: ANN401 - any object
        """Add an object that is to be looked through."""
        if not isinstance(value, CONSTANTS) and id(value) not in self._seen:
            self._seen[id(value)] = value
            self._left.append(value)

    def visit_all(self) -> None:
        """Look through all that was added."""
        while self._left and self._functions < MOST_FUNCTIONS:
            self._visit(self._left.popleft())

    def variables(self) -> list[Variable]:
        """Return what was found and may change, by its name."""
        found = [each for each in self._found.values() if self._may_change(each)]
        return sorted(found, key=str)

    def _may_change(self, variable: Variable) -> bool:
        if variable.always:
            return True
        name = variable.name.rpartition(".")[2].partition(" of ")[0]
        return name in self._assigned or is_mutable(variable.get())

    def _visit(self, value: Any) -> None:  # noqa: ANN401 - any object
        if isinstance(value, Kernel):
            self._kernel(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        else:
            for part in self._parts(value):
                self.add(part)

    def _parts(self, value: Any) -> Sequence[Any]:  # noqa: ANN401 - any object
        """Return what else is reached through an object, of which some may be functions."""
        for kinds, names in _HOLDERS:
            if isinstance(value, kinds):
                return [getattr(value, name) for name in names]
        if isinstance(value, list | tuple | set | frozenset):
            return list(value)[:MOST_FUNCTIONS]
        if isinstance(value, dict):
            return list(value.values())[:MOST_FUNCTIONS]
        if hasattr(type(value), "cache_info"):  # what it keeps follows from its arguments, as its author says
            return [value.__wrapped__]
        if self._is_library(type(value).__module__):
            return []
        return [type(value), *list(getattr(value, "__dict__", {}).values())[:MOST_FUNCTIONS]]

    def _kernel(self, kernel: Kernel) -> None:
        self.add(kernel.program)
        for name, value in kernel.params.items():
            if is_mutable(value):
                self._add_variable(kernel, f"parameter {name} of {kernel.name}", kernel.ref, partial(_itself, value))

    def _function(self, function: types.FunctionType) -> None:
        if self._is_library(module_name(function.__globals__)):
            return
        self._functions += 1
        names = _names(function.__code__)
        self._assigned |= names.assigned
        file = shown_path(function.__code__.co_filename, module_name(function.__globals__))
        space = function.__globals__
        reached = (names.used & space.keys()) | names.of_the_module
        if names.used & _BY_ANY_TEXT:
            reached |= _own_names(space)
            self._assigned |= reached
            self._add_state(space, f"the names of {module_name(space)}", file, partial(_own_names, space))
        for name in sorted(reached):
            self._add_named(space, name, name, file, names.used)
        for name in sorted(names.imported & sys.modules.keys()):
            self._module(sys.modules[name], file, names.used)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            self._add_variable(cell, f"{name} of {function.__name__}", file, _contents(cell))
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        for number, value in enumerate(defaults):
            if is_mutable(value):
                self._add_variable(function, f"default {number} of {function.__name__}", file, partial(_itself, value))
        if vars(function):
            self._add_variable(function, f"attributes of {function.__name__}", file, partial(_itself, vars(function)))

    def _class(self, kind: type) -> None:
        if self._is_library(kind.__module__):
            return
        self._functions += 1
        module = sys.modules.get(kind.__module__)
        file = shown_path(getattr(module, "__file__", None) or kind.__module__, kind.__module__)
        for name, value in list(vars(kind).items()):
            if not name.startswith("__") or isinstance(value, types.FunctionType):
                self._add_variable(kind, f"{kind.__name__}.{name}", file, partial(vars(kind).get, name))
        for base in kind.__bases__:
            self.add(base)

    def _add_named(self, space: Any, name: str, shown: str, file: str, used: frozenset[str]) -> None:  # noqa: ANN401 - a mapping
        """Add a name of a module, or what is reached through it where it names a module itself."""
        value = space.get(name, _MISSING)
        if isinstance(value, types.ModuleType):
            self._module(value, file, used)
        else:
            self._add_variable(space, shown, file, partial(space.get, name, _MISSING))

    def _module(self, value: types.ModuleType, file: str, used: frozenset[str]) -> None:
        """Add what is reached through a module: its variables that are named, or what Python keeps in it."""
        if value is random:
            self._add_state(value, "the generator of the module random", file, lambda: hash(random.getstate()))
        elif value is np:
            if "random" in used:
                self._add_state(value, "the generator of numpy.random", file, np.random.get_state)
        elif value is os:
            if used & {"environ", "putenv", "unsetenv"}:
                self._add_state(value, "os.environ", file, lambda: dict(os.environ))
        elif not self._is_library(value.__name__):
            inside = vars(value)
            other = shown_path(value.__file__ or file, value.__name__)
            for inner in sorted(used & inside.keys()):
                if not isinstance(inside[inner], types.ModuleType):
                    self._add_named(inside, inner, f"{value.__name__}.{inner}", other, used)

    def _add_state(self, space: Any, name: str, file: str, get: Callable[[], Any]) -> None:  # noqa: ANN401 - a module
        """Add the state of a module of Python that all share."""
        self._found[id(space), name] = Variable(name, file, get, always=True)

    def _add_variable(self, space: Any, name: str, file: str, get: Callable[[], Any]) -> None:  # noqa: ANN401 - what holds it
        self._found.setdefault((id(space), name), Variable(name, file, get))
        self.add(get())


_HOLDERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (types.MethodType, ("__func__", "__self__")),
    (partial, ("func", "args", "keywords")),
    ((staticmethod, classmethod), ("__func__",)),
    (property, ("fget", "fset")),
    (functools.cached_property, ("func",)),
)
"""What holds functions, and where."""


def _own_names(space: dict[str, Any]) -> frozenset[str]:
    """Return the names of a module that are not Python's."""
    return frozenset(name for name in space if not name.startswith("__"))


def _itself(value: Any) -> Any:  # noqa: ANN401 - any object
    return value


def _contents(cell: types.CellType) -> Callable[[], Any]:
    def get() -> Any:  # noqa: ANN401 - whatever it holds
        try:
            return cell.cell_contents
        except ValueError:  # nothing yet
            return _MISSING

    return get
