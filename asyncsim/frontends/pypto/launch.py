"""What a host call dispatched, as a kernel of asyncsim: memory, program, and the arrays of each rank."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.barrier import barrier
from asyncsim.frontends.pypto.host import HostTensor
from asyncsim.frontends.pypto.overlaps import Overlap, Passed, overlaps
from asyncsim.frontends.pypto.parameters import declared
from asyncsim.frontends.pypto.values import DATA, READ, ROW, SIGNAL, Buffer, LocalTensor, View, WindowTensor
from asyncsim.guest.author import is_the_authors
from asyncsim.machine.kernel import Kernel
from asyncsim.trace.declare import Group, Signal, Window
from asyncsim.trace.world import SignalView

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from asyncsim.frontends.pypto.host import Array, HostCall
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.declare import Declaration
    from asyncsim.trace.region import Cell

Uses = set[tuple[View, str]]


class Live:
    """The arrays of one rank, handed to its program as they are: this run is the script's own, and writes to them."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = tuple(arrays)

    def __deepcopy__(self, memo: dict[int, Any]) -> Live:
        """Return itself; all other inputs are copied for every run."""
        return self

    def __repr__(self) -> str:
        """Write it the same for all: inputs of a case are compared by what they say of themselves."""
        return "Live"


@dataclass(slots=True, eq=False)
class Part:
    """What is dispatched to one rank.

    Args:
        arrays: the rank's tensors, each once.
        runs: for each dispatch the function and its arguments; a tensor by its number in `arrays`.
        out: the numbers of the tensors that annotations mark as written, or that were written.
        passed: where each of `arrays` was passed first.
        overlaps: by number, those whose memory another tensor of the launch shows, too.
        control: by number, which elements were read one by one: counts and indices, as a rule.

    """

    arrays: list[Array] = field(default_factory=list)
    runs: list[tuple[Any, dict[str, Any]]] = field(default_factory=list)
    out: set[int] = field(default_factory=set)
    only_out: set[int] = field(default_factory=set)
    passed: list[Passed] = field(default_factory=list)
    overlaps: dict[int, Overlap] = field(default_factory=dict)
    control: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Numbered:
    """Stands for a tensor of the rank, by its number."""

    number: int


class Launch:
    """All that one host call dispatched.

    Args:
        call: the host call, which was checked.
        name: of the program.
        path: of the script, as reports show it.
        joined: each call on the same windows begins when the one before has ended on every rank.

    Raises:
        RefusedError: a tensor that is marked as written shares memory with another one.

    """

    def __init__(self, call: HostCall, name: str, path: str, *, joined: bool = False) -> None:
        self.ranks = call.ranks
        self.name = name
        self.path = path
        self.joined = joined
        ours = [each.function for each in call.dispatches if is_the_authors(each.function.raw.__code__)]
        self.first = (ours or [call.dispatches[0].function])[0]
        self.groups: dict[Buffer, Group] = {}
        self.parts = [Part() for _ in range(call.ranks)]
        self.names: dict[View, str] = {}
        for each in call.dispatches:
            part = self.parts[each.device]
            hints = each.function.parameters
            values = {}
            for parameter, value in each.values.items():
                if isinstance(value, HostTensor):
                    hint = hints[declared(parameter)]
                    passed = Passed(f"{each.function.name}: parameter {parameter}", each.device, each.place)
                    number = _number(part, value.array, passed)
                    if hint is not None and hint.out:
                        part.out.add(number)
                        if hint.out == "Out":
                            part.only_out.add(number)
                    values[parameter] = Numbered(number)
                else:
                    if isinstance(value, View):
                        self._name(value, parameter)
                        self._join(call, value.buffer)
                    values[parameter] = value
            part.runs.append((each.function, values))
        shared = overlaps([part.arrays for part in self.parts], [part.passed for part in self.parts])
        for part, part.overlaps in zip(self.parts, shared, strict=True):
            for number in sorted(part.out & part.overlaps.keys()):
                raise part.overlaps[number].error()

    def _join(self, call: HostCall, buffer: Buffer) -> None:
        """Note which devices have a buffer, if not all of them do: their ranks are numbered within."""
        if buffer not in self.groups and len(holders := call.holders(buffer)) < self.ranks:
            self.groups[buffer] = Group(f"devices_{'_'.join(map(str, holders))}", holders)

    def _name(self, view: View, parameter: str) -> None:
        """Call a view as the first parameter that holds it."""
        if view not in self.names:
            parameter = parameter.replace("[", "_").rstrip("]")
            taken = set(self.names.values())
            tries = (parameter if n == 1 else f"{parameter}_{n}" for n in range(1, len(taken) + 2))
            self.names[view] = next(name for name in tries if name not in taken)

    @property
    def key(self) -> tuple[Any, ...]:
        """What two launches have in common that are judged once: functions, shapes, dtypes, numbers; not values."""
        views = [(view.shape, view.dtype.name, name) for view, name in self.names.items()]
        raws = [function.raw for part in self.parts for function, _ in part.runs]
        return (self.ranks, *raws, repr(views), repr([_shown(part) for part in self.parts]))

    def kernel(self, memory: Memory, inputs: Any, *, name: str = "") -> Kernel:  # noqa: ANN401 - as `Kernel` takes it
        """Return the kernel, on this memory and these inputs."""
        return Kernel(
            DeviceProgram(self, memory), memory=tuple(memory.declared), inputs=inputs, given_name=name or self.name
        )


def _shown(part: Part) -> Any:  # noqa: ANN401 - compared only
    return [(array.shape, array.dtype.name) for array in part.arrays], [
        [value for value in values.values() if not isinstance(value, View)] for _, values in part.runs
    ]


def _number(part: Part, array: Array, passed: Passed) -> int:
    place = (array.ctypes.data, array.shape, array.strides, array.dtype)
    for number, known in enumerate(part.arrays):
        if (known.ctypes.data, known.shape, known.strides, known.dtype) == place:
            return number
    part.arrays.append(array)
    part.passed.append(passed)
    return len(part.arrays) - 1


class Memory:
    """The declarations for the views of a launch, by how they are used.

    Args:
        launch: whose views they are.
        uses: as what each is used; None: that is not known yet, so each is declared as all that it could be.

    """

    def __init__(self, launch: Launch, uses: Uses | None) -> None:
        self.declared: list[Declaration] = []
        self.data: dict[View, int] = {}
        self.cells: dict[View, int] = {}
        self.rows: dict[View, int] = {}
        self.kept: dict[Buffer, int] = {}
        self.joins: int | None = None
        names, known = launch.names, uses is not None

        def used(use: str) -> list[View]:
            return [view for view in names if (view, use) in (uses or ())]

        signals = {view.buffer: view.nbytes for view in sorted(used(SIGNAL), key=lambda view: view.nbytes)}
        read = {view: view.nbytes <= signals.get(view.buffer, 0) for view in used(READ)}
        data = used(DATA) + [view for view in read if not read[view]] if known else list(names)
        cells = used(SIGNAL) + [view for view in read if read[view]] if known else _counting(names)
        bases: dict[Buffer, str] = {}
        for view in sorted(dict.fromkeys(data), key=lambda view: -view.nbytes):
            base = bases.get(view.buffer) if known else None
            self.data[view] = len(self.declared)
            over = {} if base is None else {"over": base}
            start = {} if base is not None else {"initialised": True, "group": launch.groups.get(view.buffer)}
            self.declared.append(Window(names[view], view.shape, view.dtype.numpy, **start, **over))  # type: ignore[arg-type]
            bases.setdefault(view.buffer, names[view])
            if (view, ROW) in uses if uses is not None else len(view.shape) != 2 or view.shape[0] != 1:  # noqa: PLR2004
                self.rows[view] = len(self.declared)
                row = (1, math.prod(view.shape))
                self.declared.append(Window(f"{names[view]}_row", row, view.dtype.numpy, over=base or names[view]))
        shown: dict[Buffer, int] = {}
        for view in sorted(dict.fromkeys(cells), key=lambda view: -view.nbytes):
            if known and view.buffer in shown:
                self.cells[view] = shown[view.buffer]
                continue
            name = names[view] if view not in self.data else f"{names[view]}_cells"
            self.cells[view] = shown[view.buffer] = len(self.declared)
            self.declared.append(Signal(name, view.shape, np.int32, group=launch.groups.get(view.buffer)))
            if known:
                self.kept[view.buffer] = view.nbytes
        if launch.joined:
            self.joins = len(self.declared)
            self.declared.append(Signal("ended", ("P", 1), np.int32))


def _counting(views: Iterable[View]) -> list[View]:
    return [view for view in views if view.dtype.name == "INT32"]


class _Reshaped(SignalView):
    """A signal in another shape: the same cells, in row-major order."""

    __slots__ = ("_declared", "_shape")

    def __init__(self, declared: SignalView, shape: tuple[int, ...]) -> None:
        self._declared = declared
        self._shape = shape

    def at(self, peer: int) -> _Reshaped:
        """Turn to a peer."""
        return _Reshaped(self._declared.at(peer), self._shape)

    def __getitem__(self, key: Any) -> Cell:  # noqa: ANN401 - an offset a dimension, or fewer from the left
        at = key if isinstance(key, tuple) else (key,)
        flat = np.ravel_multi_index((*at, *(0 for _ in self._shape[len(at) :])), self._shape)
        return self._declared[tuple(int(each) for each in np.unravel_index(flat, self._declared.shape))]

    @property
    def name(self) -> str:
        """The declared name."""
        return self._declared.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in numbers."""
        return self._shape


class DeviceProgram:
    """The program of every rank: its dispatches, one after the other. It is called as a kernel's program is."""

    def __init__(self, launch: Launch, memory: Memory, *, unknown: bool = False) -> None:
        """Stand, for reports, where the first function that is dispatched stands."""
        self.launch = launch
        self.memory = memory
        self.uses: Uses = set()
        self.unknown = unknown
        raw = launch.first.raw
        self.__code__ = raw.__code__
        self.__globals__ = {"__name__": raw.__globals__.get("__name__", ""), "__asyncsim_path__": launch.path}
        self.__name__ = launch.name
        self.__doc__ = raw.__doc__

    async def __call__(self, rank: Rank, x: Any, *views: Any) -> Any:  # noqa: ANN401 - `Live`, or a tuple of arrays
        """Run the dispatches of a rank; return what they wrote."""
        part = self.launch.parts[rank.id]
        live = isinstance(x, Live)
        tensors = [
            LocalTensor(array, unknown=self.unknown, overlap=part.overlaps.get(number))
            for number, array in enumerate(x.arrays if live else x)
        ]
        try:
            for function, values in part.runs:
                await function.on_device(
                    rank, {name: self._given(rank, value, tensors, views) for name, value in values.items()}
                )
            if self.memory.joins is not None:
                with rank.phase("end of the call"):
                    await barrier(rank, views[self.memory.joins], generation=rank.call + 1)
        finally:
            if live:
                _note(part, tensors)
        return None if live else tuple(tensors[number].array for number in sorted(part.out))

    def _given(self, rank: Rank, value: Any, tensors: list[LocalTensor], views: Any) -> Any:  # noqa: ANN401
        if isinstance(value, Numbered):
            return tensors[value.number]
        if not isinstance(value, View):
            return value
        memory = self.memory
        data, at = memory.data.get(value), memory.cells.get(value)
        cells = None if at is None else views[at]
        if cells is not None and cells.shape != value.shape:
            cells = _Reshaped(cells, value.shape)
        group = self.launch.groups.get(value.buffer)
        return WindowTensor(
            rank if group is None else rank.within(group), value, None if data is None else views[data], cells,
            self.uses, memory.kept.get(value.buffer, 0),
            flat=views[memory.rows[value]] if value in memory.rows else None,
        )  # fmt: skip


def _note(part: Part, tensors: list[LocalTensor]) -> None:
    """Keep what a run did with the tensors of its rank."""
    for number, tensor in enumerate(tensors):
        if tensor.written:
            part.out.add(number)
        if tensor.read is not None:
            part.control[number] = tensor.read
