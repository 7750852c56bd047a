"""What a rewritten script does where its author wrote a subscript, an operator or a call.

For a value that is no array in memory that others can reach it is what Python does. For such an array it is a load, a
store, or both, of the elements that are touched. A function that is not the author's is taken to read the arrays that
it is handed; of what it may do to them besides, what can be seen is seen: the bytes that it changed are stored.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest import rewrite
from asyncsim.guest.author import is_the_authors
from asyncsim.guest.host import present
from asyncsim.guest.places import address, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.guest.memory import Memory
    from asyncsim.guest.places import Array, Block

_MISSING = object()
_VIEWS = frozenset((
    "reshape", "ravel", "view", "transpose", "swapaxes", "squeeze", "asarray", "asanyarray", "frombuffer", "ndarray",
    "expand_dims", "atleast_1d", "atleast_2d", "broadcast_to", "may_share_memory", "shares_memory", "shape", "ndim",
    "size", "zeros_like", "empty_like", "ones_like", "isinstance", "append", "extend", "insert", "setflags",
    "setdefault", "split", "array_split", "hsplit", "vsplit", "moveaxis", "rollaxis", "diagonal", "as_strided",
    "result_type", "nditer", "__init__", "get", "pop", "remove", "items", "partial",
))  # fmt: skip
"""Functions and methods that give a view, ask for a shape, or keep what they are handed: they touch no element."""
_FILLS = frozenset(("fill", "copyto", "put", "place", "putmask", "itemset", "setfield"))
"""Those whose first array is written, and not read."""
_SORTS = frozenset(("sort", "partition", "shuffle", "byteswap"))
"""Those that write all of their first array, too."""
_KNOWN = ("numpy", "builtins", "math", "", "operator", "functools", "itertools", "random", "time", "copy", "struct")


def at(base: Any, index: Any) -> Any:  # noqa: ANN401 - the author's
    """Do ``base[index]``.

    Args:
        base: whatever the author has there.
        index: likewise.

    """
    if isinstance(base, np.ndarray) and (own := present()) is not None:
        block = own.places.find(base)
        index = _used(own, index)
        if block is not None:
            return _item(own, block, base, index)
    return base[index]


def _item(own: Memory, block: Block, base: Array, index: Any) -> Any:  # noqa: ANN401 - an element, or an array
    if not _is_basic(index):
        own.check_alive(block)
        own.load_runs(block, runs_of(_offsets(block, base, index)))
        return base[index]
    found = base[index]
    if isinstance(found, np.ndarray):
        return found  # a view: nothing is read yet
    own.load(block, base[_whole(index)])
    return base[index]


def put(base: Any, index: Any, value: Any) -> None:  # noqa: ANN401 - the author's
    """Do ``base[index] = value``.

    Args:
        base: whatever the author has there.
        index: likewise.
        value: likewise.

    """
    own = present()
    if own is None:
        base[index] = value
        return
    value, index = _used(own, value), _used(own, index)
    block = own.places.find(base)
    if block is None:
        base[index] = value
        return
    own.check_alive(block)
    if _is_basic(index):
        base[index] = value
        own.store(block, base[_whole(index)])
    else:
        offsets = _offsets(block, base, index)
        base[index] = value
        own.note_store(block, runs_of(offsets))


def update(how: str, value: Any, base: Any, index: Any = _MISSING) -> Any:  # noqa: ANN401 - the author's
    """Do ``base[index] += value``, or ``base += value``, and return what ``base`` is then.

    Args:
        how: the name of the operator, as of the module `operator`.
        value: what stands right of it.
        base: what stands left of it.
        index: between brackets behind it; missing: nothing is.

    """
    apply = getattr(operator, how)
    if index is not _MISSING:
        put(base, index, apply(at(base, index), use(value)))
        return base
    own = present()
    block = None if own is None else own.places.find(base)
    if own is None or block is None:
        return apply(base, use(value))
    own.load(block, base)
    made = apply(base, use(value))
    own.store(block, base)
    return made


def use(value: Any) -> Any:  # noqa: ANN401 - the author's
    """Return a value; if it is an array, it is read as a whole."""
    if isinstance(value, np.ndarray) and (own := present()) is not None:
        return _used(own, value)
    return value


def _used(own: Memory, value: Any) -> Any:  # noqa: ANN401 - the author's
    block = own.places.find(value)
    if block is not None:
        own.load(block, value)
    return value


def call(function: Any, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the author's
    """Do ``function(*args, **kwargs)``.

    Args:
        function: whatever the author calls.
        args: of the call.
        kwargs: likewise.

    """
    own = present()
    if own is None or _keeps_count(function):
        return function(*args, **kwargs)
    args = tuple(_shown(each) for each in args)
    kwargs = {key: _shown(each) for key, each in kwargs.items()}
    name = getattr(function, "__name__", "")
    home = getattr(function, "__self__", None)
    handed = [each for each in (home, *args, *kwargs.values()) if each is not None]
    touched = {id(array): (own.places.find(array), array) for array in _arrays(handed)}
    found = [(block, array) for block, array in touched.values() if block is not None]
    if not found or name in _VIEWS:
        return function(*args, **kwargs)
    written = _written(function, name, home, args, kwargs)
    for block, array in found:
        own.check_alive(block)
        if not (name in _FILLS and array is written[0]):
            own.load(block, array)
    before = [array.copy() for _, array in found]
    result = function(*args, **kwargs)
    for (block, array), held in zip(found, before, strict=True):
        if any(array is each for each in written):
            own.store(block, array)
        elif (changed := (_bytes(array) != _bytes(held)).any(axis=-1)).any():
            own.note_store(block, runs_of(np.unique(_offsets_of(block, array)[changed])))
    module = (getattr(function, "__module__", "") or "").partition(".")[0]
    if module not in _KNOWN and not isinstance(function, np.ufunc):
        own.note(
            name, f"{name} is handed memory that others reach; it is taken to read all of it, and to write what changes"
        )
    return result


def _shown(value: Any) -> Any:  # noqa: ANN401 - the author's
    """Return the memory of a window where a buffer may be meant; all else as it is."""
    return (
        value.tomemory()
        if type(value).__module__.startswith("asyncsim.frontends.") and hasattr(value, "tomemory")
        else value
    )


def _keeps_count(function: Any) -> bool:  # noqa: ANN401 - whatever is called
    """Say whether a function's own accesses are seen: it is the author's, or asyncsim's."""
    inner = getattr(function, "__func__", function)
    code = getattr(inner, "__code__", None)
    if code is not None and is_the_authors(code):
        return True
    module = getattr(inner, "__module__", "") or ""
    return module.startswith("asyncsim.") or (isinstance(function, type) and module == "__main__")


def _arrays(values: Any) -> Iterator[Array]:  # noqa: ANN401 - a list of the author's values
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif type(value) in (list, tuple):
            yield from (each for each in value if isinstance(each, np.ndarray))


def _written(function: Any, name: str, home: Any, args: Any, kwargs: Any) -> list[Any]:  # noqa: ANN401 - the author's
    """Return the arrays that a function of numpy's writes as a whole."""
    out = kwargs.get("out")
    found = [] if out is None else list(out) if isinstance(out, tuple) else [out]
    if isinstance(function, np.ufunc):
        return [*found, *args[function.nin :]]
    if name in _FILLS | _SORTS:
        return [*([home] if isinstance(home, np.ndarray) else args[:1]), *found]
    return found


def _is_basic(index: Any) -> bool:  # noqa: ANN401 - the author's
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or isinstance(part, slice)
        or (hasattr(part, "__index__") and not isinstance(part, bool | np.bool_ | np.ndarray))
        for part in parts
    )  # fmt: skip


def _whole(index: Any) -> Any:  # noqa: ANN401 - the author's
    """Return a basic index that gives an array, also where one element is meant."""
    parts = index if isinstance(index, tuple) else (index,)
    return parts if any(part is Ellipsis for part in parts) else (*parts, Ellipsis)


def _offsets_of(block: Block, array: Array) -> Any:  # noqa: ANN401 - an array of integers
    """Return for each element of an array which one of its block it is."""
    where = np.full((1,) * array.ndim, (address(array) - block.start) // block.flat.itemsize, np.int64)
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        step = np.arange(extent, dtype=np.int64) * (stride // block.flat.itemsize)
        where = where + step.reshape([-1 if each == axis else 1 for each in range(array.ndim)])
    return where


def _offsets(block: Block, base: Array, index: Any) -> Any:  # noqa: ANN401 - as above
    """Return which elements of a block an index of an array in it means, ascending."""
    block.runs(base)  # refuses a view of another size
    return np.unique(_offsets_of(block, base)[index])


def _bytes(array: Array) -> Any:  # noqa: ANN401 - an array of bytes, with one axis more
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(*array.shape, array.itemsize)


NAMES: dict[str, Callable[..., Any]] = {
    rewrite.AT: at, rewrite.PUT: put, rewrite.UPDATE: update, rewrite.USE: use, rewrite.CALL: call,
}  # fmt: skip
"""What a rewritten module finds under the names that `asyncsim.guest.rewrite` writes."""
