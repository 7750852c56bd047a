"""What a script finds under ``pypto``: every module and name, in explicit tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from asyncsim.frontends.pypto import composites, core, primitives
from asyncsim.frontends.pypto.annotations import DISTRIBUTED, SCALAR, TENSOR, Direction, Dynamic
from asyncsim.frontends.pypto.compiled import Compiled
from asyncsim.frontends.pypto.dtypes import (
    DTYPES,
    INDEX,
    AtomicType,
    FunctionType,
    Level,
    MemorySpace,
    NotifyOp,
    ReduceOp,
    Role,
    WaitCmp,
)
from asyncsim.frontends.pypto.functions import Jit, Program, function_of, program_of
from asyncsim.frontends.pypto.host import HostTensor
from asyncsim.frontends.pypto.hosted_collective import Collective
from asyncsim.frontends.pypto.loops import Frame, carry, count, inline
from asyncsim.frontends.pypto.operation import Operation
from asyncsim.frontends.pypto.refusals import UnknownNameError, nearest, refused
from asyncsim.frontends.pypto.tiles import full, tile_operators
from asyncsim.guest.host import is_hosted, present

if TYPE_CHECKING:
    from collections.abc import Mapping

    from asyncsim.frontends.pypto.dtypes import DType
    from asyncsim.frontends.pypto.host import HostCall
    from asyncsim.frontends.pypto.session import Session
    from asyncsim.frontends.pypto.values import Buffer, LocalTensor, View

LANGUAGE, DISTRIBUTED_LANGUAGE = "pypto.language", "pypto.language.distributed"

_AT_ONCE = "calls of one rank that run at once are not judged: call the kernel, which returns when it is done"
UNSERVED = {
    "submit": _AT_ONCE,
    "manual_scope": _AT_ONCE,
    "spmd": "use pl.range: its passes run one after the other",
    "while_": "use pl.range, or a while of Python's",
}
"""What upstream has and this does not, with what would be right."""


class Answering(ModuleType):
    """A module that knows all its names, and says which is nearest to one that it does not have."""

    def __init__(self, name: str, short: str, names: dict[str, Any], doc: str) -> None:
        """Have these names; `short` is what authors call it."""
        super().__init__(name, doc)
        self.__path__: list[str] = []
        self.__all__ = sorted(names)
        self._short = short
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - it always raises
        if name.startswith("__"):
            raise AttributeError(name)
        if name in UNSERVED and self._short == "pl":
            raise UnknownNameError(f"asyncsim does not serve pl.{name}; {UNSERVED[name]}")
        raise UnknownNameError(f"{self._short} has no {name!r}{nearest(name, self.__all__)}")


@dataclass(slots=True)
class DistributedConfig:
    """Which devices there are: one rank each. What else is given is kept, and means nothing here."""

    device_ids: Any = (0,)
    num_sub_workers: int = 0
    rest: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = list(self.device_ids) if isinstance(self.device_ids, list | tuple | range) else []
        if not ids or len(set(ids)) < len(ids) or not all(isinstance(number, int) for number in ids):
            raise refused(f"DistributedConfig device_ids={self.device_ids!r}; give different integers, such as [0, 1]")


class RunConfig:
    """How a program is run: `distributed_config` says on how many ranks; all else means nothing here."""

    def __init__(self, *, platform: str = "", distributed_config: Any = None, **rest: Any) -> None:  # noqa: ANN401
        self.platform = platform
        self.distributed_config = distributed_config
        self.__dict__.update(rest)


def _configured(device_ids: Any = (0,), num_sub_workers: int = 0, **rest: Any) -> DistributedConfig:  # noqa: ANN401
    return DistributedConfig(device_ids, num_sub_workers, rest)


def modules_of(session: Session) -> dict[str, ModuleType]:
    """Return the modules that answer the imports of one script, by name."""
    distributed = Answering(
        DISTRIBUTED_LANGUAGE, "pld", _distributed(session), "The distributed dialect, as asyncsim runs it."
    )
    names = {**_language(session), "distributed": distributed}
    language = Answering(LANGUAGE, "pl", names, "The language, as asyncsim runs it.")
    configs = {"DistributedConfig": _configured}
    program = Answering(
        "pypto.ir.distributed_compiled_program",
        "pypto.ir.distributed_compiled_program",
        configs,
        "How many ranks there are.",
    )
    ir = Answering(
        "pypto.ir", "pypto.ir", {"compile": _compile_of(session), "distributed_compiled_program": program},
        "Compiling a program, as asyncsim does: it is checked.",
    )  # fmt: skip
    runtime = Answering("pypto.runtime", "pypto.runtime", {"RunConfig": RunConfig}, "How a program is run.")
    root = Answering("pypto", "pypto", {"language": language, "ir": ir, "runtime": runtime}, "PyPTO, by asyncsim.")
    return {module.__name__: module for module in (root, language, distributed, ir, program, runtime)}


def _language(session: Session) -> dict[str, Any]:
    names = ("load", "store", "read", "write", "assemble")
    tensors: dict[str, Any] = {
        **{name: Operation(f"pl.{name}", getattr(core, name)) for name in names},
        "slice": core.part_of,
        **tile_operators(),
    }
    loops = dict.fromkeys(("range", "unroll", "pipeline"), count)

    def parallel(*bounds: Any, **options: Any) -> Any:  # noqa: ANN401 - as `count`
        """Return the numbers of a loop whose passes may run at once: in a kernel, here they run one by one."""
        session.serial = session.serial or is_hosted()
        return count(*bounds, **options)

    def create_tensor(shape: Any, dtype: DType, **options: Any) -> LocalTensor | HostTensor:  # noqa: ANN401 - checked
        """Return a tensor of zeros: a kernel's own, or one that the host function hands from dispatch to dispatch."""
        made = core.create_tensor(shape, dtype, **options)
        return HostTensor(made.array) if session.host is not None and not is_hosted() else made

    array = {"create": lambda extent, dtype: full([extent], dtype, 0)}
    tensors["create_tensor"] = create_tensor
    parts = {"tile": {**tensors, "create": tensors["create_tile"]}, "tensor": {**tensors, "create": create_tensor}}
    return {
        **tensors,
        **loops,
        "parallel": parallel,
        **{part: Answering(f"{LANGUAGE}.{part}", f"pl.{part}", names, f"pl.{part}") for part, names in parts.items()},
        "array": Answering(f"{LANGUAGE}.array", "pl.array", array, "Small arrays of a kernel's own."),
        "yield_": carry,
        "at": inline,
        "incore": inline,
        "program": program_of,
        "function": function_of(session),
        "jit": Jit(session),
        "dynamic": lambda name: Dynamic(str(name), lambda: _extents(session)),
        "Tensor": TENSOR,
        "Scalar": SCALAR,
        "Out": Direction("Out"),
        "InOut": Direction("InOut"),
        "FunctionType": FunctionType,
        "Level": Level,
        "Role": Role,
        "MemorySpace": MemorySpace,
        "Mem": MemorySpace,
        "INDEX": INDEX,
        **DTYPES,
    }


def _extents(session: Session) -> Mapping[str, int]:
    """Return the dynamic extents of what runs just now: a kernel, or the host function."""
    frame = present()
    if isinstance(frame, Frame):
        return frame.extents
    return {} if session.host is None else session.host.extents


def _distributed(session: Session) -> dict[str, Any]:
    host = _host_functions(session)
    system: dict[str, Any] = {
        "notify": Operation("pld.system.notify", primitives.notify),
        "wait": Operation("pld.system.wait", primitives.wait),
        "get_comm_ctx": primitives.get_comm_ctx,
        "rank": primitives.rank,
        "nranks": primitives.nranks,
        "world_size": host["world_size"],
    }
    tile: dict[str, Any] = {
        name: Operation(f"pld.tile.{name}", getattr(primitives, name)) for name in ("remote_load", "remote_store")
    }
    collectives = {
        name: getattr(composites, name)
        for name in ("barrier", "broadcast", "allgather", "all_to_all", "all_to_all_v", "allreduce")
    }
    collectives["reduce_scatter"] = composites.reduce_scatter_of(widen=session.widen)
    tensor: dict[str, Any] = {
        **{name: Operation(f"pld.tensor.{name}", getattr(primitives, name)) for name in ("put", "get")},
        **{name: Collective(session, Operation(f"pld.tensor.{name}", run)) for name, run in collectives.items()},
        "remote_store": tile["remote_store"],
        "alloc_window_buffer": host["alloc_window_buffer"],
        "window": host["window"],
    }
    parts = {"system": system, "tile": tile, "tensor": tensor}
    long = {"put": "tensor", "get": "tensor", "notify": "system", "wait": "system"}
    return {
        **{
            part: Answering(f"{DISTRIBUTED_LANGUAGE}.{part}", f"pld.{part}", names, f"pld.{part}")
            for part, names in parts.items()
        },
        **{name: each for name, each in system.items() if name not in long},
        **tile,
        **{name: Long(f"pld.{name}", f"pld.{part}.{name}") for name, part in long.items()},
        "DistributedTensor": DISTRIBUTED,
        "NotifyOp": NotifyOp,
        "WaitCmp": WaitCmp,
        "AtomicType": AtomicType,
        "ReduceOp": ReduceOp,
        **host,
    }


@dataclass(frozen=True, slots=True)
class Long:
    """A short form that upstream does not have."""

    short: str
    name: str

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Say what its long form is."""
        raise UnknownNameError(f"{self.short} is written in full: {self.name}")


def _host_functions(session: Session) -> dict[str, Any]:
    def host(name: str) -> HostCall:
        if session.host is None:
            raise refused(
                f"{name} belongs into the host function; a kernel asks pld.nranks(ctx) for the number of ranks"
            )
        return session.host

    def world_size() -> int:
        """Return the number of ranks."""
        return host("pld.world_size").ranks

    def alloc_window_buffer(size_in_bytes: Any, dtype: object = None, **_: object) -> Buffer:  # noqa: ANN401
        """Allocate memory at every rank: bytes, or a shape and ``dtype=``; zero, and new in every host call."""
        return host("pld.alloc_window_buffer").allocate(size_in_bytes, dtype, sys._getframe(1))  # noqa: SLF001

    def window(buf: object, shape: Any, dtype: object = None) -> View:  # noqa: ANN401 - checked by it
        """Return a view of a buffer as an array of this shape and dtype, from its first byte on."""
        return host("pld.window").window(buf, shape, dtype)

    return {"world_size": world_size, "alloc_window_buffer": alloc_window_buffer, "window": window}


def _compile_of(session: Session) -> Any:  # noqa: ANN401 - a function
    def compile(program: object, platform: str = "", distributed_config: Any = None, **_: object) -> Compiled:  # noqa: A001, ANN401, ARG001
        """Compile a program for so many ranks: check it, as upstream's type rules do."""
        if not isinstance(program, Program):
            raise refused(f"ir.compile expects a class under @pl.program, got {type(program).__name__}", TypeError)
        program.prepare()
        return Compiled(session, program.host(), program.name, distributed_config, ())

    return compile
