"""Symmetric memory: made by all PEs together, and freed by all."""

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


@answers
def new_array(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None,
              clear: bool = True) -> Array:  # fmt: skip
    """Allocate; the barrier of the allocation is its end."""
    del align, hints
    pe = present_pe()
    made = pe.make_symmetric(shape, dtype, order, cleared=clear)
    pe.barrier()
    return made


@answers
def zeros(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate zeros; ends in a barrier."""
    return new_array(shape, dtype, order, align=align, hints=hints)


@answers
def empty(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate what nobody wrote; ends in a barrier."""
    return new_array(shape, dtype, order, align=align, hints=hints, clear=False)


@answers
def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, align: Any = None,
         hints: Any = None) -> Array:  # fmt: skip
    """Allocate and fill; ends in a sync, after which all see that."""
    made = empty(shape, np.array(fill_value).dtype if dtype is None else dtype, order, align=align, hints=hints)
    return _filled(made, fill_value)


@answers
def ones(shape: Any, dtype: Any = float, order: str = "C", *, align: Any = None, hints: Any = None) -> Array:
    """Allocate ones; ends in a sync."""
    return full(shape, 1, dtype, order, align=align, hints=hints)


@answers
def array(obj: Any, dtype: Any = None, *, order: str = "K", align: Any = None, hints: Any = None) -> Array:
    """Allocate a copy; ends in a sync."""
    given = np.array(use(obj), dtype, order=order)  # type: ignore[call-overload]
    lies = "F" if given.flags.f_contiguous and given.ndim > 1 else "C"
    return _filled(empty(given.shape, given.dtype, lies, align=align, hints=hints), given)


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
