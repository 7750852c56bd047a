"""What a variable holds, as values that can be compared before and after; as far as it can be seen from outside.

No code of the author's runs for it, neither an ``__eq__`` nor a ``__repr__``. What cannot be looked into, such
as most objects of a library, stands for itself: another object in its place is another value.
"""

from __future__ import annotations

import array
import collections
import ctypes
import functools
import gc
import io
import itertools
import queue
import random
import threading
import types
import warnings
import zlib
from contextvars import ContextVar
from typing import Any

import numpy as np

from asyncsim.machine.kernel import Kernel
from asyncsim.trace.guest import is_library

CONSTANTS = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype, range, slice, type(Ellipsis))
"""What never changes, and holds nothing."""
_CODE = (
    types.FunctionType, type, types.ModuleType, staticmethod, classmethod, property, functools.cached_property, Kernel,
)  # fmt: skip
_PYTHONS = ("builtins", "collections")
MOST_PARTS = 20_000
"""So many parts of all variables together are compared."""


def is_mutable(value: Any) -> bool:  # noqa: ANN401 - any object
    """Return whether a value may change without being assigned, and whether that can be seen."""
    if isinstance(value, tuple | frozenset | functools.partial) or hasattr(type(value), "__self__"):
        return any(map(is_mutable, _inside(value) or ()))
    return not isinstance(value, (*CONSTANTS, *_CODE)) and _inside(value) is not None


def add_contents(value: Any, parts: list[Any], above: tuple[int, ...] = ()) -> None:  # noqa: ANN401 - any object
    """Add what a value holds to a list, piece by piece.

    Args:
        value: the object.
        parts: what is added to; it is not added to without end, see `MOST_PARTS`.
        above: the identities of the objects that it lies in; one of them again is not looked into.

    """
    kind = type(value)
    if kind in (int, str, bytes, bool) or value is None:
        parts.append((kind, value))
        return
    if isinstance(value, CONSTANTS):
        parts.append((kind, repr(value)))
        return
    inside = None if isinstance(value, _CODE) or id(value) in above else _inside(value)
    if inside is None:
        parts.append((kind, id(value)))
    elif len(parts) < MOST_PARTS:
        parts.append((kind, len(inside)))
        for part in inside:
            add_contents(part, parts, (*above, id(value)))


def _inside(value: Any) -> list[Any] | None:  # noqa: ANN401 - any object
    """Return what an object is made of; None if that cannot be seen."""
    if type(value).__module__ in _PYTHONS and isinstance(value, list | tuple | collections.deque | dict):
        return _of_dict(value) if isinstance(value, dict) else list(value)
    for kinds, parts in _KNOWN:
        if isinstance(value, kinds):
            return list(parts(value))
    if hasattr(type(value), "__self__"):  # a method that is bound to its object
        return [value.__self__]
    if getattr(type(value), "__next__", None) is not None and type(value).__module__ in ("builtins", "itertools"):
        return _of_iterator(value)
    if not is_library(type(value).__module__):
        return _attributes(value)
    return _of_buffer(value)


def _of_buffer(value: Any) -> list[Any] | None:  # noqa: ANN401 - whatever may have one
    """Return the bytes of what has bytes; None if it has none."""
    try:
        with memoryview(value) as seen:
            return [zlib.crc32(seen.tobytes())]
    except (TypeError, ValueError, BufferError):  # no buffer, or one that was released or is locked
        return None


def _of_c(value: Any) -> list[Any]:  # noqa: ANN401 - the class of all of them has no name
    """Return the bytes of a number, an array or a structure of C's, and the objects that it points to."""
    return [*(_of_buffer(value) or ()), *(each for each in gc.get_referents(value) if type(each) is dict)]


def _of_simple_queue(value: queue.SimpleQueue[Any]) -> list[Any]:
    """Return what waits in a queue; Python's garbage collector alone sees it."""
    return [value.qsize(), *(each for each in gc.get_referents(value) if not isinstance(each, type))]


def _of_text(value: io.BytesIO | io.StringIO) -> list[Any]:
    return [] if value.closed else [value.tell(), value.getvalue()]


def _of_array(value: np.ndarray[Any, Any]) -> list[Any]:
    if value.dtype.kind == "O":
        return [value.shape, *value.reshape(-1).tolist()]
    return [str(value.dtype), value.shape, zlib.crc32(value.tobytes())]


def _of_set(value: set[Any] | frozenset[Any]) -> list[Any]:
    parts: list[list[Any]] = []
    for each in value:
        made: list[Any] = []
        add_contents(each, made)
        parts.append(made)
    return sorted(map(str, parts))


def _of_generator(value: types.GeneratorType[Any, Any, Any]) -> list[Any]:
    frame = value.gi_frame
    return [] if frame is None else [frame.f_lasti, value.gi_yieldfrom, *frame.f_locals.values()]


def _of_iterator(value: Any) -> list[Any] | None:  # noqa: ANN401 - one of Python's own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that copying iterators will go
        try:
            return list(value.__reduce__()[1:])
        except TypeError:
            return None


def _attributes(value: Any) -> list[Any]:  # noqa: ANN401 - an object of the author's
    kind = type(value)
    named = [(name, each) for base in kind.__mro__ for name, each in vars(base).items()]
    kept = {name for name, each in named if isinstance(each, functools.cached_property)}
    slots = [name for name, each in named if isinstance(each, types.MemberDescriptorType)]
    own = getattr(value, "__dict__", None)
    parts: list[Any] = []
    if type(own) is dict:
        parts += [part for item in own.items() if item[0] not in kept for part in item]
    parts += [getattr(value, name, None) for name in slots]
    if isinstance(value, dict):
        parts += _of_dict(value)
    elif isinstance(value, list | tuple | collections.deque):
        parts += list(value)
    return parts


def _is_registry(key: object) -> bool:
    """Return whether Python keeps there which warnings came from a namespace; no key's own ``__eq__`` is asked."""
    return type(key) is str and key == "__warningregistry__"


def _of_dict(value: Any) -> list[Any]:  # noqa: ANN401 - a mapping
    return [part for item in value.items() if not _is_registry(item[0]) for part in item]


_KNOWN: tuple[tuple[Any, Any], ...] = (
    (np.ndarray, _of_array),
    (np.random.Generator, lambda value: [value.bit_generator]),
    (np.random.BitGenerator, lambda value: [value.state, getattr(value, "seed_seq", None)]),
    (np.random.SeedSequence, lambda value: [value.n_children_spawned]),
    (np.flatiter, lambda value: [value.index, value.base]),
    (np.random.RandomState, lambda value: list(value.get_state())),
    (random.Random, lambda value: [str(value.getstate())]),
    (ctypes.Structure.__mro__[1], _of_c),
    (bytearray | array.array, lambda value: [bytes(value)]),
    (set | frozenset, _of_set),
    (queue.Queue, lambda value: list(value.queue)),
    (queue.SimpleQueue, _of_simple_queue),
    (io.BytesIO | io.StringIO, _of_text),
    (threading.local | collections.UserDict | collections.UserList | collections.ChainMap, lambda value: [vars(value)]),
    (threading.Event, lambda value: [value.is_set()]),
    (threading.Semaphore, lambda value: [vars(value).get("_value")]),
    (type(threading.Lock()), lambda value: [value.locked()]),
    (itertools.count, lambda value: [repr(value)]),
    (ContextVar, lambda value: [value.get(None)]),
    (types.GeneratorType, _of_generator),
    (types.SimpleNamespace, lambda value: [vars(value)]),
    (types.MappingProxyType, _of_dict),
    (functools.partial, lambda value: [value.func, *value.args, *value.keywords.values()]),
)
