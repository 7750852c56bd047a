"""Collection: a kernel becomes test functions that return it, a marked function is run once a P and memory model."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from types import MethodType
from typing import TYPE_CHECKING, Any

import pytest

from asyncsim.checking.verdict.models import AUTO
from asyncsim.pytest_plugin.marks import MARK, Marked, unwrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Judged:
    """What one test judges.

    Args:
        ranks: P.
        memory: the memory model.
        marked: what the mark says.
        kernel: the kernel, if it is known before the test runs.

    """

    ranks: int
    memory: str
    marked: Marked
    kernel: Kernel | None = None


_JUDGED = pytest.StashKey[Judged]()
_PARAMETER = "asyncsim"


def judged_of(item: pytest.Item) -> Judged | None:
    """Return what a test judges; None if it carries no mark."""
    callspec = getattr(item, "callspec", None)
    return item.stash.get(_JUDGED, None) or (None if callspec is None else callspec.params.get(_PARAMETER))


def make_items(collector: pytest.Module | pytest.Class, name: str, obj: object) -> list[pytest.Function] | None:
    """Collect `obj` if it is a kernel that is marked or called like a test; else leave it to others.

    Args:
        collector: the file or class that holds it.
        name: what it is called there.
        obj: anything that pytest found; None is returned unless it is such a kernel.

    Raises:
        pytest.Collector.CollectError: it is parametrized, or an argument of its mark cannot be right.

    """
    kernel, marks = unwrapped(obj)
    if kernel is None or not (collector.funcnamefilter(name) or any(mark.name == MARK for mark in marks)):
        return None
    where = f"{collector.nodeid}::{name}"
    if any(mark.name == "parametrize" for mark in marks):
        raise pytest.Collector.CollectError(
            f"{where}: a kernel takes no parameters of pytest's; write a function that returns it"
        )
    if not any(mark.name == MARK for mark in marks):
        marks = [*marks, *([] if collector.get_closest_marker(MARK) else [pytest.mark.asyncsim.mark])]
    closest = next((mark for mark in reversed(marks) if mark.name == MARK), collector.get_closest_marker(MARK))
    cases, ids = _cases(Marked.of(closest, where), _named(kernel, collector, name))
    return [_item(collector, f"{name}[{id_}]", case, marks) for case, id_ in zip(cases, ids, strict=True)]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make one test a P and memory model of a marked function."""
    definition = metafunc.definition
    marked = Marked.of(definition.get_closest_marker(MARK), definition.nodeid)
    if inspect.iscoroutinefunction(metafunc.function):
        raise pytest.Collector.CollectError(
            f"{definition.nodeid}: a test marked {MARK} is a kernel, or a plain function that returns one; "
            "in an async test use the fixture judge: await judge.aio(kernel, ranks=3)"
        )
    cases, ids = _cases(marked, None)
    metafunc.fixturenames.append(_PARAMETER)
    metafunc.parametrize(_PARAMETER, cases, indirect=True, ids=ids)


def _cases(marked: Marked, kernel: Kernel | None) -> tuple[list[Judged], list[str]]:
    """Return what is judged, and what each is called; -k takes letters and digits."""
    cases = [Judged(ranks, memory, marked, kernel) for memory in marked.memories for ranks in marked.ranks]
    plain = marked.memories in {(AUTO,), ("sc",)}
    return cases, [f"P{case.ranks}" if plain else f"P{case.ranks}-{case.memory}" for case in cases]


def _item(
    collector: pytest.Module | pytest.Class, name: str, judged: Judged, marks: Sequence[pytest.Mark]
) -> pytest.Function:
    """Return a test function that returns the kernel, shown by pytest at the kernel's own line."""

    def returns(*_: object) -> Kernel | None:
        return judged.kernel

    program = judged.kernel.program if judged.kernel is not None else returns
    made: Any = returns
    made.__name__, made.__module__, made.__doc__ = name, program.__module__, program.__doc__
    made.place_as = program
    made.pytestmark = list(marks)
    # The instance is that of xunit's setup_method, and of nothing else: a kernel takes no self.
    bound = MethodType(made, collector.obj()) if isinstance(collector, pytest.Class) else made
    item = pytest.Function.from_parent(collector, name=name, callobj=bound)
    item.stash[_JUDGED] = judged
    return item


def _named(kernel: Kernel, collector: pytest.Module | pytest.Class, name: str) -> Kernel:
    """Give a kernel that has no name of its own, because a mark stands around it, the name that leads to it."""
    for holder in (vars(collector.module), vars(inspect.getmodule(kernel.program) or collector.module)):
        if any(value is kernel for value in holder.values()):
            return kernel
    cls = getattr(collector, "cls", None)
    return replace(kernel, given_name=name if cls is None else f"{cls.__qualname__}.{name}")
