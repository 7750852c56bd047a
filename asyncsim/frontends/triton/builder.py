"""What replaces the memory of Triton's interpreter: each access of a program instance goes to the machine.

Where no program instance of ours runs, every method is the interpreter's own.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from asyncsim.frontends.triton.block import present_block
from asyncsim.frontends.triton.libraries import interpreter, tl
from asyncsim.frontends.triton.lines import result_is_used
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.trial import Access, present_trial

if TYPE_CHECKING:
    from collections.abc import Callable

    from asyncsim.frontends.triton.block import Block

Array = np.ndarray[Any, Any]
Handle = Any
"""A `TensorHandle` of the interpreter."""

_BF16 = np.dtype(ml_dtypes.bfloat16)
_COMPARING = frozenset(("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))
_SCALAR_TILE = 64
"""Atomics on a tile of more elements whose results nobody uses are one operation on data, not one a word."""


def replace_methods(builder: Any, inline: Callable[..., Any]) -> None:
    """Let the interpreter's builder ask the machine.

    Args:
        builder: it has what it had, wherever no program instance of ours runs.
        inline: does inline assembly.

    """
    for name, ours in {**_OURS, "create_inline_asm": inline}.items():
        setattr(builder, name, _instead(getattr(builder, name), ours))
    for name in ("binary_op", "create_dot", "cast_impl"):
        setattr(builder, name, _rounding(getattr(builder, name), name))


def _instead(own: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def method(*args: Any, **kwargs: Any) -> Any:
        trial = present_trial()
        block = present_block() if trial is None else trial.block
        return own(*args, **kwargs) if block is None else ours(block, *args, **kwargs)

    return method


def kept_as(element: Any) -> tuple[np.dtype[Any], np.dtype[Any]]:
    """Return the dtype of elements in memory, and that of the interpreter, which has bits for narrow floats."""
    kept = np.dtype(interpreter._get_np_dtype(element))  # noqa: SLF001 - the interpreter's own table
    return (_BF16 if element == tl.bfloat16 else kept), kept


def _mask(ptrs: Handle, mask: Handle | None) -> Array:
    shape = ptrs.data.shape
    return np.ones(shape, bool) if mask is None else np.broadcast_to(mask.data, shape).astype(bool)


# ---- plain accesses


def masked_load(block: Block, ptrs: Handle, mask: Handle, other: Handle | None, *_: Any, **__: Any) -> Handle:
    """Load elements; where the mask is false, `other`.

    Args:
        block: the program instance.
        ptrs: where, a handle.
        mask: which elements count; None: all.
        other: the value of those that do not; None: 0.

    """
    element = ptrs.get_element_ty()
    dtype, kept = kept_as(element)
    chosen = _mask(ptrs, mask)
    found = _plain_load(block, ptrs.data, chosen, dtype).view(kept)
    if other is not None:
        found = np.where(chosen, found, np.broadcast_to(other.data, found.shape).astype(kept))
    return interpreter.TensorHandle(found, element)


def _plain_load(block: Block, addresses: Array, chosen: Array, dtype: np.dtype[Any]) -> Array:
    trial = present_trial()
    if trial is None:
        return block.load(addresses, chosen, dtype)
    out = np.zeros(addresses.shape, dtype)
    if chosen.any():
        constants = block.space.constants(addresses[chosen], dtype)
        if constants is None:
            access = Access("load", tuple(addresses[chosen].tolist()), dtype)
            constants = trial.read(access, (int(chosen.sum()),))
        out[chosen] = constants
    return out


def masked_store(block: Block, ptrs: Handle, value: Handle, mask: Handle, *_: Any, **__: Any) -> None:
    """Store elements where the mask is true.

    Args:
        block: the program instance.
        ptrs: where, a handle.
        value: of the elements, a handle.
        mask: which elements count; None: all.

    """
    dtype, _kept = kept_as(ptrs.get_element_ty())
    values = np.ascontiguousarray(np.broadcast_to(value.data, ptrs.data.shape)).view(dtype)
    chosen = _mask(ptrs, mask)
    trial = present_trial()
    if trial is None:
        block.store(ptrs.data, values, chosen)
    else:
        trial.accesses.append(Access("store", tuple(ptrs.data[chosen].tolist()), dtype))


# ---- atomics


def _name(enum: Any) -> str:
    return str(enum).rpartition(".")[2]


_SEMS = {"ACQUIRE": "acquire", "RELEASE": "release", "ACQUIRE_RELEASE": "acq_rel", "RELAXED": "relaxed"}
_SCOPES = {"CTA": "cta", "GPU": "gpu", "SYSTEM": "sys"}
_HOW = {"FADD": "add", "UMIN": "min", "UMAX": "max"}


def _told(sem: Any, scope: Any) -> tuple[str, str]:
    return _SEMS[_name(sem)], _SCOPES[_name(scope)]


def atomic_rmw(
    block: Block,
    how: Any,
    ptr: Handle,
    val: Handle,
    mask: Handle | None,
    sem: Any,
    scope: Any,
    *,
    used: bool | None = None,
) -> Handle:
    """Change words atomically; return what they held.

    Args:
        block: the program instance.
        how: the update, as the interpreter names it.
        ptr: where.
        val: by what.
        mask: which elements count; None: all.
        sem: the order.
        scope: whom it reaches.
        used: whether the kernel uses what comes back; None: its source says.

    Raises:
        RefusedError: what floats held is asked for.

    """
    name = _HOW.get(_name(how), _name(how).lower())
    told = _told(sem, scope)
    addresses, chosen = ptr.data, _mask(ptr, mask)
    values = np.broadcast_to(val.data, addresses.shape)
    dtype, _kept = kept_as(ptr.get_element_ty())
    trial = present_trial()
    if trial is not None:
        found = _trial_update(trial, name, addresses, values, chosen, told, dtype)
    else:
        used = result_is_used() if used is None else used
        found = np.zeros(addresses.shape, val.data.dtype)
        if dtype.kind == "f" or dtype == _BF16 or (not used and addresses.size > _SCALAR_TILE):
            if used or name != "add":
                raise refused(f"an atomic {name} on a tile of {dtype} whose result is used")
            block.add_floats(addresses, np.ascontiguousarray(values).view(dtype), chosen)
        else:
            for at in np.ndindex(addresses.shape):
                if chosen[at]:
                    value = values[at].astype(dtype)
                    found[at] = block.update(name, int(addresses[at]), value, *told, used=used)
    return interpreter.TensorHandle(found, val.dtype.scalar)


def _trial_update(
    trial: Any,
    name: str,
    addresses: Array,
    values: Array,
    chosen: Array,
    told: tuple[str, str],
    dtype: np.dtype[Any],
) -> Array:
    found: Array = trial.read(Access("update", tuple(addresses[chosen].tolist()), dtype, *told), addresses.shape)
    functions: dict[str, Callable[..., Any]] = {
        "add": np.add, "xchg": lambda _, new: new, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor, "min": np.minimum, "max": np.maximum,
    }  # fmt: skip
    with np.errstate(over="ignore"):
        after = functions[name](found, values.astype(dtype))
    if (after != found)[chosen].any():
        trial.accesses[-1].new = int(after.reshape(-1)[0])
    return found


def atomic_cas(block: Block, ptr: Handle, cmp: Handle, val: Handle, sem: Any, scope: Any) -> Handle:
    """Compare and exchange words; return what they held.

    Args:
        block: the program instance.
        ptr: where, a handle.
        cmp: what they have to hold, a handle.
        val: what they are set to, a handle.
        sem: the order, as the interpreter names it.
        scope: whom it reaches, likewise.

    """
    told = _told(sem, scope)
    dtype, kept = kept_as(ptr.get_element_ty())
    addresses = ptr.data
    expected = np.broadcast_to(cmp.data, addresses.shape).astype(kept)
    values = np.broadcast_to(val.data, addresses.shape).astype(kept)
    trial = present_trial()
    if trial is not None:
        found = trial.read(Access("cas", tuple(addresses.reshape(-1).tolist()), dtype, *told), addresses.shape)
        trial.compared(expected)
        if ((found == expected) & (expected != values)).any():
            trial.accesses[-1].new = int(values.reshape(-1)[0])
    else:
        found = np.empty(addresses.shape, dtype)
        for at in np.ndindex(addresses.shape):
            found[at] = block.compare_exchange(int(addresses[at]), expected[at], values[at], *told)
    return interpreter.TensorHandle(found.view(kept), cmp.dtype.scalar)


def atomic_load(block: Block, ptr: Handle, mask: Handle | None, sem: Any, scope: Any) -> Handle:
    """Return what words hold, atomically.

    Args:
        block: the program instance.
        ptr: where, a handle.
        mask: which elements count; None: all.
        sem: the order, as the interpreter names it.
        scope: whom it reaches, likewise.

    """
    element = ptr.get_element_ty()
    dtype, _kept = kept_as(element)
    told = _told(sem, scope)
    chosen = _mask(ptr, mask)
    trial = present_trial()
    if trial is not None:
        found = trial.read(Access("read", tuple(ptr.data[chosen].tolist()), dtype, *told), ptr.data.shape)
        return interpreter.TensorHandle(found, element)
    found = np.zeros(ptr.data.shape, dtype)
    for at in np.ndindex(found.shape):
        if chosen[at]:
            found[at] = block.read(int(ptr.data[at]), dtype, *told)
    return interpreter.TensorHandle(found, element)


def atomic_store(block: Block, ptr: Handle, val: Handle, mask: Handle | None, sem: Any, scope: Any) -> None:
    """Set words atomically.

    Args:
        block: the program instance.
        ptr: where, a handle.
        val: what they are set to, a handle.
        mask: which elements count; None: all.
        sem: the order, as the interpreter names it.
        scope: whom it reaches, likewise.

    """
    dtype, _kept = kept_as(ptr.get_element_ty())
    values, chosen = np.broadcast_to(val.data, ptr.data.shape).astype(dtype), _mask(ptr, mask)
    trial = present_trial()
    if trial is not None:
        trial.accesses.append(Access("store", tuple(ptr.data[chosen].tolist()), dtype))
        return
    for at in np.ndindex(values.shape):
        if chosen[at]:
            block.update("xchg", int(ptr.data[at]), values[at], *_told(sem, scope), used=False)


def _atomic_poll(block: Block, ptr: Handle, expected: Handle, timeout_ns: Any, sem: Any, scope: Any) -> Handle:  # noqa: ARG001
    """Wait for each element in turn; nothing takes time here, so no time runs out."""
    dtype, _kept = kept_as(ptr.get_element_ty())
    wanted = np.broadcast_to(expected.data, ptr.data.shape)
    for at in np.ndindex(ptr.data.shape):
        block.await_word(int(ptr.data[at]), dtype, "==", int(wanted[at]), *_told(sem, scope))
    return interpreter.TensorHandle(np.ones(ptr.data.shape, bool), tl.int1)


# ---- the block itself


def _program_id(block: Block, axis: int) -> Handle:
    return interpreter.TensorHandle(np.array([block.index[axis]], np.int32), tl.int32)


def _num_programs(block: Block, axis: int) -> Handle:
    return interpreter.TensorHandle(np.array([block.grid[axis]], np.int32), tl.int32)


def _barrier(block: Block) -> None:
    block.barrier()


def _nothing(*_: Any) -> None:
    """Do nothing: an assumption of the compiler's that is false, and the kernel works all the same."""


def _extern(_block: Block, _library: str, _path: str, symbol: str, *_: Any) -> None:
    raise refused(f"the external function {symbol!r} is not known here")


_OURS: dict[str, Callable[..., Any]] = {
    "create_masked_load": masked_load,
    "create_masked_store": masked_store,
    "create_atomic_rmw": atomic_rmw,
    "create_atomic_cas": atomic_cas,
    "create_atomic_load": atomic_load,
    "create_atomic_store": atomic_store,
    "create_atomic_poll": _atomic_poll,
    "create_get_program_id": _program_id,
    "create_get_num_programs": _num_programs,
    "create_barrier": _barrier,
    "create_assume": _nothing,
    "create_print": _nothing,
    "create_extern_elementwise": _extern,
}


# ---- numbers


def _wide(handle: Handle) -> Handle:
    if handle.dtype.scalar != tl.bfloat16:
        return handle
    return interpreter.TensorHandle(handle.data.view(_BF16).astype(np.float32), tl.float32)


def _narrow(handle: Handle) -> Handle:
    return interpreter.TensorHandle(handle.data.astype(_BF16).view(np.uint16), tl.bfloat16)


def _rounding(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method that computes with bfloat16 as with numbers: the interpreter computes with their bits."""

    @wraps(own)
    def binary_op(lhs: Handle, rhs: Handle, op: Callable[..., Any]) -> Handle:
        trial = present_trial()
        if trial is not None and getattr(op, "__name__", "") in _COMPARING:
            trial.compared(lhs.data, rhs.data)
        if lhs.dtype.scalar != tl.bfloat16:
            return own(lhs, rhs, op)
        made = own(_wide(lhs), _wide(rhs), op)
        return made if made.data.dtype == np.bool_ else _narrow(made)

    @wraps(own)
    def create_dot(a: Handle, b: Handle, d: Handle, *rest: Any) -> Handle:
        made = own(_wide(a), _wide(b), _wide(d), *rest)
        return _narrow(made) if d.dtype.scalar == tl.bfloat16 else made

    @wraps(own)
    def cast_impl(src: Handle, dst_type: Any) -> Handle:
        if src.dtype.scalar == tl.bfloat16 and dst_type.scalar != tl.bfloat16:
            return own(_wide(src), dst_type) if dst_type.scalar != tl.float32 else _wide(src)
        narrowing = dst_type.scalar == tl.bfloat16 and src.dtype.scalar != tl.bfloat16
        return _narrow(src) if narrowing else own(src, dst_type)

    methods: dict[str, Callable[..., Any]] = {
        "binary_op": binary_op, "create_dot": create_dot, "cast_impl": cast_impl,
    }  # fmt: skip
    return methods[name]
