"""Kernels: a program, its memory, its inputs, its golden, and its known-bad variants."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from asyncsim.machine.goldens import AnyOf, Predicate
from asyncsim.machine.site import module_name
from asyncsim.trace.declare import Declaration
from asyncsim.trace.digest import check_nesting
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.finding import Expected
from asyncsim.trace.guest import call as author_call

Inputs = Callable[[int, int, np.random.Generator], Iterable[Any]]
"""(P, call, rng) -> one input a rank, as a list or as the rows of an array: each an array, or a tuple of arrays."""
Golden = Callable[[Any], Iterable[Any]]
"""The inputs of all ranks, a list -> the output of each rank, likewise."""
Alike = Callable[[list[Any]], Iterable[int]]
"""The results of all ranks in a call -> the ranks that must have the same bits: survivors, for instance."""


_SOURCES: MutableMapping[Callable[..., Any], str] = WeakKeyDictionary()
"""The hash of each program's file, as it was when the program was first made a kernel."""


def _hash_of(file: str | None) -> str:
    try:
        text = Path(file or "").read_bytes()
    except OSError:
        return ""
    # Installed exhibits import each other from asyncsim.kernels; a trace of one is the repository's all the same.
    text = text.replace(b"\r\n", b"\n").replace(b" asyncsim.kernels", b" kernels")
    return hashlib.sha256(text).hexdigest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel with all that is needed to judge it. Made by `kernel`; its variants by `variant`.

    Args:
        program: ``async def program(rank, x, *memory, **params)`` (no `x` without `inputs`).
        memory: the declarations, handed over in this order.
        inputs: makes the inputs of a call; must differ from call to call, or a stale read stays unseen.
        golden: what the outputs must be, by numpy; `AnyOf` several of these, or a `Predicate` of all results.
        params: keyword arguments of the program.
        finds: the findings that a known-bad kernel must give.
        rtol: how far from the golden floating results may be, relative to it; others must be equal.
        atol: the same, absolute; an element may be off by the sum of both.
        same_on_all_ranks: the kernel promises the same bits on every rank; a function of the results of all ranks says
            on which.
        separate_streams: what a stream does depends on no Python object that another one changes, but where cells
            order the two; a front end that makes the streams can say so, and no schedules look for it.
        about: one line for listings; by default the first line of the program's docstring.
        given_name: what it is called; by default the name it has in its module.
        home: the module it stands in, for a variant made elsewhere than its program.

    """

    program: Callable[..., Any]
    _: KW_ONLY
    memory: tuple[Declaration, ...]
    inputs: Inputs | None = None
    golden: Golden | AnyOf | Predicate | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    finds: tuple[Expected, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-5
    same_on_all_ranks: bool | Alike = False
    separate_streams: bool = False
    about: str = ""
    given_name: str = ""
    home: str = ""
    source: str = field(init=False, repr=False, default="")
    """The first 16 hex digits of the SHA-256 of the file the kernel stands in, as it was when the kernel was made:
    what runs is that, whatever has become of the file since. Empty if there is none."""

    def __post_init__(self) -> None:
        if not (self.golden is None or isinstance(self.golden, AnyOf | Predicate) or callable(self.golden)):
            raise MisuseError(f"golden={self.golden!r}; give a function of the inputs of all ranks, AnyOf or Predicate")
        if not (isinstance(self.same_on_all_ranks, bool) or callable(self.same_on_all_ranks)):
            raise MisuseError(
                f"same_on_all_ranks={self.same_on_all_ranks!r}; give True, False, or a function of all ranks' results "
                "that gives the ranks"
            )
        if self.home:
            source = _hash_of(self.namespace.get("__file__"))
        else:
            source = _SOURCES.get(self.program, "")
            if not source:
                source = _hash_of(getattr(getattr(self.program, "__code__", None), "co_filename", None))
                _SOURCES[self.program] = source
        object.__setattr__(self, "source", source)

    @property
    def module(self) -> str:
        """The module the kernel stands in."""
        return module_name(self.namespace)

    @property
    def namespace(self) -> dict[str, Any]:
        """The names of that module."""
        home = sys.modules.get(self.home)
        return self.program.__globals__ if home is None else vars(home)

    @property
    def name(self) -> str:
        """The name in its module, or the one it was given."""
        if self.given_name:
            return self.given_name
        for name, value in self.namespace.items():
            if value is self:
                return name
        return self.program.__name__

    @property
    def ref(self) -> str:
        """``module:name``, or ``path/to/file.py:name`` for a kernel that was loaded by path."""
        path = self.namespace.get("__asyncsim_path__")
        return f"{path or self.module}:{self.name}"

    def variant(self, *, about: str = "", name: str = "", **changes: Any) -> Kernel:  # noqa: ANN401
        """Return this kernel with some parts changed.

        Keywords that are fields of `Kernel` (memory, inputs, golden, finds, rtol, …) replace that
        field; all others are parameters of the program. `finds` starts empty again.

        Args:
            about: one line for listings; empty: the first line of the program's docstring.
            name: what it is called; empty: the name that it is assigned to in its module.
            changes: fields of `Kernel`, or parameters of the program.

        """
        own = {key: changes.pop(key) for key in _FIELDS if key in changes}
        own["finds"] = _expected(own.get("finds", ()))
        if "memory" in own:
            own["memory"] = _declared(own["memory"])
        caller = sys._getframe(1).f_globals.get("__name__", "")  # noqa: SLF001 - the module the variant stands in
        home = caller if caller != self.program.__globals__.get("__name__") else ""
        params = {**self.params, **changes}
        return replace(self, params=params, about=about, given_name=name, home=home, **own)

    def check_signature(self) -> None:
        """Refuse a program that cannot be called as it will be: with the rank, the input if there is one, the memory.

        Raises:
            MisuseError: it names too few parameters, too many, or others than it is given.

        """
        given = ["rank", *(["x"] if self.inputs is not None else []), *(declared.name for declared in self.memory)]
        signature = inspect.signature(self.program)
        try:
            signature.bind(*given, **self.params)
        except TypeError as error:
            code = self.program.__code__
            named = [*(name if name.isidentifier() else "_" for name in given), *(["*"] if self.params else [])]
            right = ", ".join([*named, *(f"{name}={value!r}" for name, value in self.params.items())])
            raise MisuseError(
                f"{self.ref}: async def {code.co_name}{signature} at {Path(code.co_filename).name}:"
                f"{code.co_firstlineno} cannot be called with {_called(self)}: {error}; "
                f"write: async def {code.co_name}({right})"
            ) from error

    def start(self, rank: Any, x: Any, views: Sequence[Any]) -> Any:  # noqa: ANN401 - a coroutine of any result
        """Return the coroutine of one call on one rank.

        Args:
            rank: the `Rank` that it is handed.
            x: the rank's input; not handed on if the kernel has no `inputs`.
            views: of the windows and signals, in the order of `memory`.

        """
        if self.inputs is None:
            return self.program(rank, *views, **self.params)
        return self.program(rank, x, *views, **self.params)

    def make_inputs(self, ranks: int, call: int, seed: int) -> list[Any]:
        """Return one input a rank for this call; the same for the same seed.

        Args:
            ranks: P.
            call: from 0.
            seed: any integer >= 0.

        Raises:
            MisuseError: `inputs` raised, gave not one a rank, or gave a value that is nested too deep.

        """
        if self.inputs is None:
            return [None] * ranks
        rng = np.random.default_rng(np.random.SeedSequence([seed, 0, call]))
        made = author_call(f"{self.ref}: inputs(P={ranks}, call={call})", _listed, self.inputs, ranks, call, rng)
        if len(made) != ranks:
            raise MisuseError(f"{self.ref}: inputs(P={ranks}, call={call}) gave {len(made)} inputs; give one a rank")
        for rank, x in enumerate(made):
            check_nesting(x, f"{self.ref}: what inputs(P={ranks}, call={call}) gave rank {rank}")
        return made

    def right_results(self, xs: Sequence[Any], call: int) -> list[list[Any]]:
        """Return the results that are right for these inputs, each with one output a rank; none for a predicate.

        Args:
            xs: the input of each rank, by rank.
            call: from 0, for the message.

        Raises:
            MisuseError: `golden` raised, gave not one a rank, or gave a value that is nested too deep.

        """
        if self.golden is None or isinstance(self.golden, Predicate):
            return []
        golden = self.golden if isinstance(self.golden, AnyOf) else AnyOf(self.golden)
        return golden.results(self.ref, xs, call)

    @property
    def any_right(self) -> bool:
        """Whether a result may be one of several, so that schedules may differ in which one they give."""
        return isinstance(self.golden, AnyOf | Predicate)

    @property
    def right_rule(self) -> str:
        """What makes a result right, in words, where several are; else empty."""
        return self.golden.rule if isinstance(self.golden, AnyOf | Predicate) else ""

    def alike(self, ys: Sequence[Any], call: int) -> list[int]:
        """Return the ranks that must have the same bits.

        Args:
            ys: the result of each rank in a call that all have completed.
            call: from 0, for the message.

        Raises:
            MisuseError: `same_on_all_ranks` raised, or gave something else than ranks.

        """
        if not callable(self.same_on_all_ranks):
            return list(range(len(ys))) if self.same_on_all_ranks else []
        what = f"{self.ref}: same_on_all_ranks, for call {call},"
        made = author_call(what, lambda: list(self.same_on_all_ranks(list(ys))))  # type: ignore[operator]
        ranks = [rank for rank in made if isinstance(rank, int | np.integer) and 0 <= rank < len(ys)]
        if len(ranks) != len(made):
            raise MisuseError(f"{what} gave {str(made)[:60]}; it must give ranks, from 0 to {len(ys) - 1}")
        return sorted(map(int, ranks))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """Call the program, so that one kernel can await another."""
        return self.program(*args, **{**self.params, **kwargs})

    @property
    def first_line(self) -> str:
        """What it is, in one line."""
        return self.about or (self.program.__doc__ or "").strip().partition("\n")[0]


_FIELDS = ("memory", "inputs", "golden", "finds", "rtol", "atol", "same_on_all_ranks")


def _listed(inputs: Inputs, ranks: int, call: int, rng: np.random.Generator) -> list[Any]:
    """Return the inputs one by one; what has no parts is the only one."""
    made = inputs(ranks, call, rng)
    try:
        parts = iter(made)
    except TypeError:
        return [made]
    return list(parts)


def _called(kernel: Kernel) -> str:
    """Say what a program is called with: the rank, an input, and its memory by name."""
    memory = ", ".join(declared.name for declared in kernel.memory)
    inputs = ", one input (inputs=)" if kernel.inputs is not None else ""
    params = f", and {', '.join(f'{name}=' for name in kernel.params)}" if kernel.params else ""
    return f"the rank{inputs} and the memory {memory}{params}" if memory else f"the rank{inputs}{params}"


def _declared(memory: Any) -> tuple[Declaration, ...]:  # noqa: ANN401 - whatever the author wrote
    if not isinstance(memory, list | tuple) or not all(isinstance(item, Declaration) for item in memory):
        raise MisuseError(f"memory={memory!r}; give a list of declarations: memory=[Window(...), Signal(...)]")
    return tuple(memory)


def _expected(finds: Expected | Sequence[Expected]) -> tuple[Expected, ...]:
    return (finds,) if isinstance(finds, Expected) else tuple(finds)


def kernel(  # noqa: PLR0913 - the fields of a kernel, by name
    *,
    memory: Sequence[Declaration],
    inputs: Inputs | None = None,
    golden: Golden | AnyOf | Predicate | None = None,
    finds: Expected | Sequence[Expected] = (),
    rtol: float = 1e-5,
    atol: float = 1e-5,
    same_on_all_ranks: bool | Alike = False,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of the program below it. The arguments are those of `Kernel`.

    Args:
        memory: windows and signals, handed to the program in this order.
        inputs: makes the inputs of a call, one a rank; None: the program takes none.
        golden: gives the outputs that are right for some inputs, `AnyOf` for several right results, or a `Predicate`
            of all ranks' results; None: they are not compared with any.
        finds: the findings that a known-bad kernel must give.
        rtol: relative to the golden; for floating results.
        atol: absolute, in addition.
        same_on_all_ranks: whether every rank must return the same bits; a function of the results of all ranks in a
            call gives the ranks that must.

    """

    def decorate(program: Callable[..., Any]) -> Kernel:
        if not callable(program) or not hasattr(program, "__code__"):
            raise MisuseError(f"@kernel stands on {program!r}; it belongs on an async function")
        if not program.__code__.co_flags & 0x80:  # inspect.CO_COROUTINE
            raise MisuseError(f"@kernel stands on {program.__name__}, which is not async; write async def")
        return Kernel(
            program, memory=_declared(memory), inputs=inputs, golden=golden, finds=_expected(finds),
            rtol=rtol, atol=atol, same_on_all_ranks=same_on_all_ranks,
        )  # fmt: skip

    return decorate


def kernels_of(module: str) -> dict[str, Kernel]:
    """Return the kernels of an imported module by name, in the order of the file."""
    return {name: value for name, value in vars(sys.modules[module]).items() if isinstance(value, Kernel)}
