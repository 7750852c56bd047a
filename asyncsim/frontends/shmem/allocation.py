"""Symmetric memory: made by all PEs together, and freed by all; locks and signals are made so, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.shmem.pe import present_pe
from asyncsim.guest.accesses import use
from asyncsim.guest.answers import answers
from asyncsim.guest.line import present_line
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from asyncsim.guest.places import Array


def _new(shape: Any, dtype: Any, order: str, *, cleared: bool) -> Array:
    kind = np.dtype(dtype)
    count = int(np.prod(shape, dtype="p"))
    block = present_pe().make_symmetric(count, kind, cleared=cleared)
    return block.flat.reshape(shape, order=order)  # type: ignore[call-overload,no-any-return]


@answers
def new_array(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None,
              clear: bool = True) -> Array:  # fmt: skip
    """Allocate; the barrier of the allocation is its end."""
    del align, hints
    return _new(shape, dtype, order, cleared=clear)


@answers
def zeros(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate zeros; ends in a barrier."""
    del align, hints
    return _new(shape, dtype, order, cleared=True)


@answers
def empty(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate what nobody wrote; ends in a barrier."""
    del align, hints
    return _new(shape, dtype, order, cleared=False)


@answers
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, align: Any = None,
         hints: Any = None) -> Array:  # fmt: skip
    """Allocate and fill; ends in a sync, after which all see that."""
    del align, hints
    made = _new(shape, np.array(fill_value).dtype if dtype is None else dtype, order, cleared=False)
    return _filled(made, fill_value)


@answers
def ones(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate ones; ends in a sync."""
    del align, hints
    return _filled(_new(shape, dtype, order, cleared=False), 1)


@answers
def array(obj: Any, dtype: Any = None, *, order: str = "K", align: Any = None, hints: Any = None) -> Array:
    """Allocate a copy; ends in a sync."""
    del align, hints
    given = np.array(use(obj), dtype, order=order)  # type: ignore[call-overload]
    made = _new(given.shape, given.dtype, "F" if given.flags.f_contiguous and given.ndim > 1 else "C", cleared=False)
    return _filled(made, given)


def _filled(made: Array, value: Any) -> Array:
    pe = present_pe()
    np.copyto(made, value, casting="unsafe")
    block = pe.places.find(made)
    if block is not None:
        pe.store(block, made)
    pe.collective("sync_all")
    pe.sync()
    return made


@answers
def free(mem: Array) -> None:
    """Free what was allocated; begins with a barrier.

    Raises:
        MisuseError: it is not the whole of it, or was freed before.

    """
    pe = present_pe()
    if isinstance(mem, np.ndarray) and not mem.size:
        pe.collective("free")
        pe.barrier()
        return
    block = pe.symmetric("free", "array", mem)
    if block.offset(mem) or mem.nbytes != block.flat.nbytes:
        raise MisuseError(f"free: this is a part of {block.name}; free what was allocated, as a whole")
    pe.collective("free", array=block.name)
    pe.barrier()
    block.freed = str(present_line())
