"""A case: a kernel with everything that is fixed before the first choice. A run is a case and its choices."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.machine.free import check_room
from asyncsim.machine.kernel import Kernel
from asyncsim.machine.memory import check_size
from asyncsim.machine.site import Sites
from asyncsim.trace.digest import digest_value
from asyncsim.trace.edit import added_memory, edits_of
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.event import Header, Trace
from asyncsim.trace.guest import GUEST, call, is_ctrl_c, raised
from asyncsim.trace.late import model_of
from asyncsim.trace.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from asyncsim.trace.edit import Edit


MOST_CALLS = 1_000_000
"""So many calls of the smallest kernel are a matter of hours."""


@dataclass(frozen=True, eq=False)
class Case:
    """What is judged: this kernel on P ranks, called so often, on these inputs.

    Args:
        kernel: the kernel.
        ranks: P.
        calls: calls back to back on the same memory.
        memory: the memory model: "sc", "ldst", "nic"; "ldst:atom=4" gives the atom too.
        seed: of the inputs and of dirty memory.
        max_steps: a run that is longer ends with the ending *step-limit*; None: `step_limit` chooses.
        edits: what is removed from the kernel or added to it, as `asyncsim.trace.edit` writes it.

    """

    kernel: Kernel
    ranks: int = 4
    calls: int = 2
    memory: str = "sc"
    seed: int = 0
    max_steps: int | None = None
    edits: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise MisuseError(f"{self.kernel!r} is no kernel; decorate it with @kernel(memory=[...])")
        self.kernel.check_signature()
        if isinstance(self.calls, bool) or not isinstance(self.calls, int) or self.calls < 1:
            raise MisuseError(f"calls={self.calls!r}; a kernel is called at least once")
        if self.calls > MOST_CALLS:
            raise MisuseError(f"calls={self.calls}; at most {MOST_CALLS} are simulated")
        model_of(self.memory)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise MisuseError(f"seed={self.seed!r}; a seed is an integer >= 0")
        object.__setattr__(self, "edits", tuple(map(str, self.changes)))

    @cached_property
    def changes(self) -> tuple[Edit, ...]:
        """The edits as data."""
        return edits_of(self.edits)

    @property
    def step_limit(self) -> int:
        """How long a run may be: as given; else longer than a collective, and short enough to notice an endless one."""
        return 50_000 + 200 * self.ranks**2 * self.calls if self.max_steps is None else self.max_steps

    @cached_property
    def world(self) -> World:
        """The ranks and the memory, shared by all runs of the case."""
        world = World(self.ranks, (*self.kernel.memory, *added_memory(self.changes)))
        check_size(world)
        return world

    def views(self, rank: int) -> Sequence[Any]:
        """Return the kernel's own memory as `rank` sees it."""
        found = self._views.get(rank)
        if found is None:
            found = self._views[rank] = self.world.views(rank)[: len(self.kernel.memory)]
        return found

    @cached_property
    def _views(self) -> dict[int, Sequence[Any]]:
        """What was handed out so far; it holds no values, so all runs share it."""
        return {}

    @cached_property
    def inputs(self) -> list[list[Any]]:
        """The inputs by call and rank; a run gets copies."""
        made = [self.kernel.make_inputs(self.ranks, 0, self.seed)]
        each = _size_of(made[0])
        check_room(f"{self.kernel.ref}: what inputs(P={self.ranks}) gives for {self.calls} calls", each * self.calls)
        made += [self.kernel.make_inputs(self.ranks, call, self.seed) for call in range(1, self.calls)]
        copied(made)  # or there is no use in going on
        again = self.kernel.make_inputs(self.ranks, 0, self.seed)
        if _bits(made[0]) != _bits(again):
            raise MisuseError(
                f"{self.kernel.ref}: inputs gave other values the second time; draw them from its rng alone"
            )
        return made

    @cached_property
    def right_results(self) -> list[list[list[Any]]]:
        """The right results of each call, with one output a rank; none without a golden, or with a predicate."""
        return [self.kernel.right_results(copied(xs), call) for call, xs in enumerate(self.inputs)]

    @property
    def goldens(self) -> list[list[Any]] | None:
        """What the outputs must be, by call and rank; None if no golden says it, or several results are right."""
        if self.kernel.golden is None or self.kernel.any_right:
            return None
        return [results[0] for results in self.right_results]

    @cached_property
    def sites(self) -> Sites:
        """The source lines met so far."""
        return Sites()

    @cached_property
    def _source(self) -> str:
        """The digest of the kernel's file, which is read once."""
        return self.kernel.source

    def header(self, scheduler: str) -> Header:
        """Return the header of a trace of this case."""
        kernel = self.kernel
        return Header(
            kernel.ref, self._source, self.world, self.calls, self.memory, self.seed, scheduler, tuple(self.edits),
            max_steps=self.max_steps,
        )  # fmt: skip


def _bits(value: Any) -> Any:  # noqa: ANN401 - inputs are arrays, numbers, and tuples or lists of them
    if isinstance(value, list | tuple):
        return [_bits(part) for part in value]
    if isinstance(value, dict):
        return [(key, _bits(part)) for key, part in value.items()]
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    text = call(f"the repr of an input of type {type(value).__name__}", repr, value)
    return type(value) if text.endswith(f" at {id(value):#x}>") else text  # where an object lies says nothing


def _size_of(value: Any) -> int:  # noqa: ANN401 - inputs
    """Return how many bytes the arrays of a value have."""
    if isinstance(value, list | tuple):
        return sum(map(_size_of, value))
    return value.nbytes if isinstance(value, np.ndarray) else 0


def copied(value: Any) -> Any:  # noqa: ANN401 - inputs are arrays, numbers, and tuples or lists of them, as a rule
    """Return a private copy of an input, or of an output.

    Raises:
        MisuseError: there is none to be had.

    """
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return value.copy()
    if isinstance(value, list | tuple):
        parts = [copied(part) for part in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)  # _make: a namedtuple's
    if value is None or isinstance(value, int | float | complex | str | bytes | np.generic):
        return value
    try:
        with GUEST:
            return deepcopy(value)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        kind = type(value).__name__
        raise MisuseError(
            f"an input of type {kind} cannot be copied ({raised(error)}); "
            "each run gets a copy: give arrays, numbers, or lists"
        ) from error


def checked(value: Any) -> Any:  # noqa: ANN401 - what a kernel returned
    """Return an output, if it is one that can be compared.

    Raises:
        MisuseError: it is not.

    """
    if value.__class__ is np.ndarray and value.dtype.kind != "O":
        return value
    digest_value(value)
    return value


@dataclass(slots=True, eq=False)
class Run:
    """What came of one schedule.

    Args:
        case: what was run.
        choices: the actors by name, step by step.
        outputs: what the kernel returned, by call and rank; `MISSING` where a rank did not get so far.
        ending: *complete*, *deadlock*, *step-limit* or *overflow*.
        unwritten: the regions that were loaded without having been written, as text.
        windows: the contents of every window at the end, by slot.
        trace: every event, if the run was recorded.
        unapplied: the edits of the case that no operation met.
        offers: where older versions are kept, how many of them a read could have returned, by its actor and index.
        standing: operations stood at the gate at its end: of a deadlock, or of streams that outlive a call.

    """

    case: Case
    choices: list[str]
    outputs: list[list[Any]]
    ending: str
    unwritten: list[str] = field(default_factory=list)
    windows: list[Any] = field(default_factory=list)
    trace: Trace | None = None
    unapplied: tuple[str, ...] = ()
    offers: Mapping[tuple[str, int], int] = field(default_factory=dict)
    standing: bool = False

    @property
    def recorded(self) -> Trace:
        """The trace of a run that was recorded."""
        if self.trace is None:
            raise RuntimeError("the run was not recorded")
        return self.trace


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()
"""Stands for the output of a rank that did not finish the call."""
