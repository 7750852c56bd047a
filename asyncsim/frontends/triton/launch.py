"""Launches: ``kernel[grid](...)`` in a program of ours runs each program instance as a stream of its rank.

The launch ends when all of them have ended, as for whoever comes next on the same CUDA stream: a kernel boundary
completes everything. Nothing of a kernel is run by Triton's own loop over the grid, and no tensor is copied by it.
"""

from __future__ import annotations

import ast
import inspect
import types
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.triton.block import Block, enter_block
from asyncsim.frontends.triton.builder import replace_methods
from asyncsim.frontends.triton.libraries import Library, interpreter, tl, torch
from asyncsim.frontends.triton.lines import note_calls
from asyncsim.frontends.triton.ptx import inline
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.spins import ROUND, SPIN, Spins, count_round, spin
from asyncsim.guest.host import blocking, hosted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from asyncsim.frontends.triton.host import Host
    from asyncsim.machine.rank import Rank

_autotuner: Any = Library("triton.runtime.autotuner")
_host: ContextVar[Host] = ContextVar("host")


def enter_host(host: Host) -> None:
    """Let the hosted function that runs be the program of a rank."""
    _host.set(host)


def present_host() -> Host | None:
    """Return the rank whose program runs; None: none of ours does."""
    return _host.get(None)


class Pointer:
    """Stands for a tensor in the arguments of a kernel.

    Args:
        address: of its first element.
        dtype: torch's.

    """

    def __init__(self, address: int, dtype: Any) -> None:
        self._address = address
        self.dtype = dtype

    def data_ptr(self) -> int:
        """Return the address."""
        return self._address


@cache
def install() -> None:
    """Let Triton's interpreter ask the machine, in programs of ours; elsewhere it stays as it was."""
    replace_methods(interpreter.interpreter_builder, inline)
    function = interpreter.InterpretedFunction
    run, call = function.run, function.__call__

    def run_ours(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        host = present_host()
        if host is None:
            return run(self, *args, grid=grid, warmup=warmup, **kwargs)
        return None if warmup else launch(host, self, grid, args, kwargs)

    def call_ours(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a device function; the language is patched already, and errors stay what they are."""
        host = present_host()
        return call(self, *args, **kwargs) if host is None else self.rewrite()(*args, **kwargs)

    function.run, function.__call__ = run_ours, call_ours
    _rewrite_loops()
    tuner = _autotuner.Autotuner
    tune = tuner.run

    def first_configuration(self: Any, *args: Any, **kwargs: Any) -> Any:
        if present_host() is None:
            return tune(self, *args, **kwargs)
        return self.fn.run(*args, **{**kwargs, **self.configs[0].all_kwargs()})

    tuner.run = first_configuration


def _rewrite_loops() -> None:
    rewriter = interpreter.FunctionRewriter

    def transform_ours(self: Any, source: str) -> Any:
        tree = self.ast_transformer.visit(Spins().visit(ast.parse(source)))
        ast.fix_missing_locations(tree)
        ast.increment_lineno(tree, self.def_file_lineno - 1)
        note_calls(tree, self.filename)
        self.fn.__globals__.update({SPIN: spin, ROUND: count_round})
        return tree

    rewriter._transform_ast = transform_ours  # noqa: SLF001 - the one place where a kernel's source is changed


@cache
def _patch_language() -> None:
    """Let the names of Triton's language be those of the interpreter: once, since every patch costs."""

    def any_kernel() -> None: ...

    seen = types.FunctionType(any_kernel.__code__, {"tl": _real(tl), "core": _real(tl).core})
    interpreter._patch_lang(seen)  # noqa: SLF001 - as a launch of the interpreter does


def _real(library: Any) -> Any:
    return library.core and library._module  # noqa: SLF001 - asked for first, it is imported


def launch(host: Host, kernel: Any, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Run a kernel on a rank, all its program instances side by side, and return when they have ended.

    Args:
        host: the rank.
        kernel: an `InterpretedFunction`.
        grid: up to three extents, or a function of the arguments.
        args: the kernel's.
        kwargs: likewise; what the kernel has no parameter for is the compiler's.

    """
    install()
    _patch_language()
    function = kernel.rewrite()
    known = inspect.signature(function).parameters
    bound = inspect.getcallargs(function, *args, **{name: value for name, value in kwargs.items() if name in known})
    extents = grid(bound) if callable(grid) else grid
    extents = (extents,) if isinstance(extents, int) else tuple(extents)
    sizes = tuple(int(extent) for extent in extents) + (1,) * (3 - len(extents))
    own: dict[int, tuple[int, Any]] = {}
    constant = {name for name, each in known.items() if _is_constexpr(each.annotation)}
    given = {
        name: value if name in constant else interpreter._implicit_cvt(_argument(host, name, value, own))  # noqa: SLF001
        for name, value in bound.items()
    }
    blocking(_run(host, function, given, (sizes[0], sizes[1], sizes[2]), own))


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "constexpr"
    return annotation is tl.constexpr


def _argument(host: Host, name: str, value: Any, own: dict[int, tuple[int, Any]]) -> Any:
    """Return what a kernel gets for an argument: for a tensor, where it is."""
    if isinstance(value, tuple | list):
        return tuple(_argument(host, f"{name}_{at}", each, own) for at, each in enumerate(value))
    if isinstance(value, interpreter.TensorDescriptor):
        value.base = _argument(host, name, value.base, own)
        return value
    address = getattr(value, "asyncsim_address", None)
    if address is not None:
        return Pointer(address, value.dtype)
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if not isinstance(value, torch.Tensor):
        return value
    storage = value.untyped_storage()
    if storage.data_ptr() not in own:
        own[storage.data_ptr()] = (host.own(name, value), value)
    number, first = own[storage.data_ptr()]
    if first.dtype != value.dtype:
        raise refused(f"argument {name}: one memory as {first.dtype} and as {value.dtype} in one launch")
    return Pointer(host.address(number) + value.storage_offset() * value.element_size(), value.dtype)


async def _run(
    host: Host, function: Callable[..., Any], given: Mapping[str, Any], sizes: tuple[int, int, int],
    own: Mapping[int, tuple[int, Any]],
) -> None:  # fmt: skip
    """Make the own tensors known to the machine, run the blocks, and bring back what they wrote."""
    rank, space = host.rank, host.space
    for number, tensor in own.values():
        await host.write_own(number, tensor)
    space.written.clear()
    streams = [
        await rank.start(_program, host, function, given, index[::-1], sizes, block=f"b{number}")
        for number, index in enumerate(np.ndindex(sizes[::-1]))
    ]
    for stream in streams:
        await rank.join(stream)
    for number, tensor in own.values():
        if number in space.written:
            await host.read_own(number, tensor)


async def _program(
    rank: Rank, host: Host, function: Callable[..., Any], given: Mapping[str, Any], index: tuple[int, int, int],
    sizes: tuple[int, int, int],
) -> None:  # fmt: skip
    def instance() -> None:
        enter_host(host)
        block = Block(rank, host.space, index, sizes)
        enter_block(block)
        function(**given)
        block.know()

    await hosted(instance)
