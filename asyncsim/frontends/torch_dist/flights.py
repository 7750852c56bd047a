"""Tensors in flight: what an asynchronous call writes, or reads, until its ``wait()``.

Nobody may touch what it writes, or write what it reads. A dispatch mode of torch's sees which tensors
every operator reads and writes, on the rank's thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist.line import here
from asyncsim.frontends.torch_dist.session import RaceError, participant
from asyncsim.frontends.torch_dist.torch_parts import DispatchBase, torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_SILENT = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "profiler", "prim")
"""Namespaces of operators that wait themselves, or touch no element."""


class Flight:
    """What an asynchronous call reads and writes until it is waited for.

    Args:
        line: where it was made.
        name: of the call.
        outputs: tensors that it writes.
        inputs: tensors that it reads.

    """

    def __init__(self, line: str, name: str, outputs: list[Any], inputs: list[Any]) -> None:
        self.line, self.name = line, name
        self.writes = [span for x in outputs for span in _span(x)]
        self.reads = [span for x in inputs for span in _span(x)]
        self._in: list[Flight] | None = None

    def begin(self, flights: list[Flight]) -> None:
        """Be one of a rank's."""
        self._in = flights
        flights.append(self)

    def land(self) -> None:
        """Be complete: the tensors may be used again."""
        if self._in is not None and self in self._in:
            self._in.remove(self)


def _span(tensor: Any) -> Iterator[tuple[int, int]]:
    """Return the bytes from a dense tensor's first element to its last."""
    if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided and tensor.numel():
        start = tensor.data_ptr()
        reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        yield start, start + (reach + 1) * tensor.element_size()


def launched(flight: Flight) -> None:
    """Watch a call from now on.

    Args:
        flight: what it touches.

    """
    me = participant()
    if me is None:
        return
    if me.watch is None:
        me.watch = _Watch(me.flights)
        me.watch.__enter__()
    flight.begin(me.flights)


def _tensors(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


class _Watch(DispatchBase):  # type: ignore[misc]  # torch need not be installed
    """Sees every operator of a rank.

    Args:
        flights: the rank's calls under way.

    """

    def __init__(self, flights: list[Flight]) -> None:
        super().__init__()
        self._flights = flights

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do an operator, if what it touches is not in flight."""
        kwargs = kwargs or {}
        if self._flights and func.namespace not in _SILENT:
            self._check(func, args, kwargs)
        return func(*args, **kwargs)

    def _check(self, func: Any, args: Any, kwargs: Any) -> None:
        for n, argument in enumerate(func._schema.arguments):
            value = args[n] if n < len(args) else kwargs.get(argument.name)
            alias = argument.alias_info
            if value is None or (alias is not None and not alias.is_write):
                continue  # a view: no element is touched
            writing = alias is not None
            for tensor in _tensors([value]):
                for span in _span(tensor):
                    self._refuse(func, span, writing=writing)

    def _refuse(self, func: Any, span: tuple[int, int], *, writing: bool) -> None:
        for flight in self._flights:
            for spans, does in ((flight.writes, "writes"), *(((flight.reads, "reads"),) if writing else ())):
                if any(start < span[1] and span[0] < end for start, end in spans):
                    me: Any = participant()
                    raise RaceError(me.session.race(
                        f"race: rank {me.rank} {'writes' if writing else 'reads'} a tensor at {here()} "
                        f"({func.name().removeprefix('aten::')}) that {flight.name} at {flight.line} {does} until it "
                        "is waited for; call wait() before"
                    ))  # fmt: skip
