"""A process group of torch's whose collectives are those of the simulated machine; all above it is torch's own code.

torch must have been imported: only a script that has done so comes here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.frontends.torch_dist import collectives, exchanges, rooted
from asyncsim.frontends.torch_dist.flights import Flight, launched
from asyncsim.frontends.torch_dist.line import here
from asyncsim.frontends.torch_dist.reduce_op import PremulSum, ReduceOp
from asyncsim.frontends.torch_dist.session import participant
from asyncsim.frontends.torch_dist.torch_parts import GroupBase, WorkBase, torch
from asyncsim.guest.answers import answers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from asyncsim.frontends.torch_dist.team import ProcessGroup
    from asyncsim.frontends.torch_dist.work import Work

Tensor = Any


def _op(given: Any) -> ReduceOp | PremulSum:
    """Return an operator of torch's as the functions of this dialect take it."""
    op = getattr(given, "op", given)
    return PremulSum(float(given.factor)) if op.name == "PREMUL_SUM" else ReduceOp[op.name]


class TorchWork(WorkBase):  # type: ignore[misc]  # torch need not be installed
    """Calls under way, as torch's own code waits for them.

    Args:
        works: the calls.
        outputs: what they write.
        inputs: what they read; nobody may write it before the end.

    """

    def __init__(self, works: Sequence[Work], outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        super().__init__()
        self._works = works
        self._outputs = list(outputs)
        self._flight = Flight(str(here()), works[0].name if works else "", self._outputs, list(inputs))
        if any(work.asynchronous for work in works):
            launched(self._flight)

    def wait(self, timeout: object = None) -> bool:  # noqa: ARG002 - nothing takes time here
        """Wait until the calls are complete; return True."""
        for work in self._works:
            work.wait()
        self._flight.land()
        return True

    def synchronize(self) -> None:
        """Wait likewise."""
        self.wait()

    def is_completed(self) -> bool:
        """Say whether the calls are complete, after every other rank had a turn."""
        complete = all(work.is_completed() for work in self._works)
        if complete:
            self._flight.land()
        return complete

    def is_success(self) -> bool:
        """Say so likewise; a call that cannot be complete raises."""
        return self.is_completed()

    def exception(self) -> None:
        """Return None: what fails raises where it is waited for."""

    def result(self) -> list[Tensor]:
        """Return the outputs."""
        self.wait()
        return self._outputs

    def get_future(self) -> Any:
        """Return a future that has the outputs: whoever asks for it waits, as torch's own code does in C++."""
        self.wait()
        future = torch.futures.Future()
        future.set_result(self._outputs)
        return future


class Group(GroupBase):  # type: ignore[misc]  # as above
    """A group as one of its members has it. Its methods are those of torch's ``ProcessGroup``.

    Args:
        own: the group.
        name: as torch registers it.

    """

    def __init__(self, own: ProcessGroup, name: str) -> None:
        super().__init__(own.rank(), own.size())
        self._own = own
        self._name = name

    @property
    def group_name(self) -> str:
        """Return the name by which torch finds it."""
        return self._name

    pg_name = group_name

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """Return a name that torch's C++ knows nothing of: of "gloo" or "nccl" it would ask more."""
        return "asyncsim"

    name = getBackendName

    def __repr__(self) -> str:
        return repr(self._own)

    def shutdown(self) -> None:
        """Do nothing: there is nothing to release."""

    abort = shutdown

    def _make(
        self, call: Callable[..., Any], given: Iterable[tuple[Any, ...]], opts: Any,
        outputs: Sequence[Tensor], inputs: Sequence[Tensor] = (),
    ) -> TorchWork:  # fmt: skip
        """Make a call for each tuple of arguments, and return what waits for all of them."""
        works = [call(*each, group=self._own, async_op=True) for each in given]
        if not getattr(opts, "asyncOp", True):
            for work in works:
                work.asynchronous = False
        return TorchWork(works, outputs, inputs)

    @answers
    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> TorchWork:
        """Reduce each tensor over all members, in place."""
        op = ReduceOp.SUM if opts is None else _op(getattr(opts, "reduceOp", opts))
        return self._make(collectives.all_reduce, [(x, op) for x in tensors], opts, tensors)

    allreduce_coalesced = allreduce

    @answers
    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> TorchWork:
        """Copy one member's tensors to all."""
        src = self._own.team.members[int(getattr(opts, "rootRank", opts))]
        return self._make(collectives.broadcast, [(x, src) for x in tensors], opts, tensors)

    @answers
    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> TorchWork:
        """Reduce each tensor into that of one member."""
        given = [(x, opts.rootRank, _op(opts.reduceOp)) for x in tensors]
        return self._make(rooted.reduce, given, opts, tensors)

    @answers
    def allgather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None) -> TorchWork:
        """Gather the inputs of all members into lists."""
        given = list(zip(outputs, inputs, strict=True))
        return self._make(exchanges.all_gather, given, opts, [x for part in outputs for x in part], inputs)

    allgather_coalesced = allgather

    @answers
    def all_gather_single(self, output: Tensor, source: Tensor, opts: Any = None) -> TorchWork:
        """Gather the inputs of all members into one tensor."""
        return self._make(exchanges.all_gather_into_tensor, [(output, source)], opts, [output], [source])

    _allgather_base = all_gather_single

    @answers
    def all_gather_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None
    ) -> TorchWork:
        """Gather several inputs, each into one tensor."""
        given = list(zip(outputs, inputs, strict=True))
        return self._make(exchanges.all_gather_into_tensor, given, opts, outputs, inputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    @answers
    def reduce_scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any) -> TorchWork:
        """Reduce lists of tensors; each member gets its own."""
        op = _op(opts.reduceOp)
        given = [(out, parts, op) for out, parts in zip(outputs, inputs, strict=True)]
        return self._make(collectives.reduce_scatter, given, opts, outputs, [x for part in inputs for x in part])

    @answers
    def reduce_scatter_single(self, output: Tensor, source: Tensor, opts: Any) -> TorchWork:
        """Reduce a tensor; each member gets its part."""
        given = [(output, source, _op(opts.reduceOp))]
        return self._make(collectives.reduce_scatter_tensor, given, opts, [output], [source])

    _reduce_scatter_base = reduce_scatter_single

    @answers
    def reduce_scatter_single_coalesced(
        self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any
    ) -> TorchWork:
        """Reduce several tensors; each member gets its parts."""
        op = _op(opts.reduceOp)
        given = [(out, source, op) for out, source in zip(outputs, inputs, strict=True)]
        return self._make(collectives.reduce_scatter_tensor, given, opts, outputs, inputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    @answers
    def gather(self, outputs: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any) -> TorchWork:
        """Gather the inputs of all members at one."""
        outs = outputs[0] if outputs else []
        return self._make(rooted.gather, [(inputs[0], outs, opts.rootRank)], opts, outs, inputs)

    @answers
    def scatter(self, outputs: Sequence[Tensor], inputs: Sequence[Sequence[Tensor]], opts: Any) -> TorchWork:
        """Send each member its tensor of one member's list."""
        sources = inputs[0] if inputs else []
        return self._make(rooted.scatter, [(outputs[0], sources, opts.rootRank)], opts, outputs, sources)

    @answers
    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], opts: Any = None) -> TorchWork:
        """Send each member its tensor of a list."""
        return self._make(rooted.all_to_all, [(outputs, inputs)], opts, outputs, inputs)

    @answers
    def all_to_all_single(
        self, output: Tensor, source: Tensor, output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None, opts: Any = None,
    ) -> TorchWork:  # fmt: skip
        """Send each member its part of a tensor."""
        given = [(output, source, output_splits, input_splits)]
        return self._make(exchanges.all_to_all_single, given, opts, [output], [source])

    alltoall_base = all_to_all_single

    def barrier(self, opts: Any = None) -> TorchWork:
        """Wait for all members."""
        return self._make(collectives.barrier, [()], opts, ())

    @answers
    def monitored_barrier(self, timeout: object = None, wait_all_ranks: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - torch's
        """Wait for all members; who is absent is said in any case."""
        collectives.barrier(self._own)

    @answers
    def send(self, tensors: Sequence[Tensor], peer: int, tag: int) -> TorchWork:
        """Send tensors to a member."""
        return self._make(rooted.send, [(x, peer, tag) for x in tensors], None, (), tensors)

    @answers
    def recv(self, tensors: Sequence[Tensor], peer: int, tag: int) -> TorchWork:
        """Receive tensors from a member."""
        return self._make(rooted.recv, [(x, peer, tag) for x in tensors], None, tensors)

    @answers
    def recv_anysource(self, tensors: Sequence[Tensor], tag: int) -> TorchWork:
        """Refuse to receive from whichever member comes first."""
        raise NotImplementedError(
            "recv without src takes whichever comes first, so that a run would not be the same every time; name src"
        )


def group_of(own: ProcessGroup, name: str) -> Group:
    """Return a group for torch; it is kept as long as its rank, since C++ may hold it longer than Python does.

    Args:
        own: the group.
        name: as torch registers it.

    """
    made = Group(own, name)
    me = participant()
    if me is not None:
        me.kept.append(made)
    return made
