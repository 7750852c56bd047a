"""Algorithms of MSCCL, the older XML: steps of thread blocks that send and receive through connections with slots.

A thread block has one peer to send to and one to receive from, on a channel. A connection is a FIFO at the receiver: a
send waits until one of its slots is free, a receive until the next one is filled. A step may wait for steps of other
thread blocks of its gpu.

Source: the XML of msccl-tools, and the interpreter of MSCCL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from asyncsim.frontends.mscclpp.operations import Thread
from asyncsim.frontends.mscclpp.plan import INPUT, OUTPUT, SCRATCH, TYPES, Fifos, Gpu, Operation, Plan, Span
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from asyncsim.frontends.mscclpp.operations import Steps

STEPS = {
    "s": "send", "r": "receive", "rcs": "receive, copy, send", "rrc": "receive, reduce, copy",
    "rrcs": "receive, reduce, copy, send", "rrs": "receive, reduce, send", "cpy": "copy",
    "re": "reduce", "nop": "nothing",
}  # fmt: skip
_COLLECTIVES = {"reduce_scatter": "reducescatter"}


def parse_algorithm(text: str, file: str = "algorithm.xml") -> Plan:
    """Return the plan that an XML algorithm is.

    Args:
        text: XML.
        file: what reports call it.

    Raises:
        MisuseError: it is no algorithm; the message has the place in the XML.

    """
    try:
        root = ET.fromstring(text)  # noqa: S314 - as above
    except ET.ParseError as error:
        raise MisuseError(f"{file} is no XML: {error}") from error
    places = sorted(root.iter("gpu"), key=lambda place: _number(place, "id", file, "gpu"))
    if root.tag != "algo" or [_number(place, "id", file, "gpu") for place in places] != list(range(len(places))):
        raise MisuseError(f"{file}: an algorithm is <algo> with a <gpu> each, ids from 0")
    fifos = Fifos(1 + max([_number(tb, "chan", file, "tb", 0) for tb in root.iter("tb")], default=0))
    gpus = tuple(_gpu(place, fifos, file, len(places)) for place in places)
    ends = [(gpu, way, end[way], end[2]) for (gpu, _), end in fifos.ends.items() for way in (0, 1) if end[way] >= 0]
    if len(set(ends)) < len(ends):
        gpu, way, peer, channel = next(end for end in ends if ends.count(end) > 1)
        word = ("send to", "receive from")[way]
        raise MisuseError(f"{file}: gpu {gpu}: two thread blocks {word} gpu {peer} on channel {channel}")
    fifos.most = max(
        [op.targets[0].size for gpu in gpus for ops in gpu.blocks.values() for op in ops if op.targets], default=1
    )
    for (gpu, block, step), needed in fifos.needs.items():
        for other, until in needed:
            if until not in fifos.posts.get((gpu, other), ()):
                raise MisuseError(
                    f"{file}: gpu {gpu}, tb {block}, step {step}: depends on tb {other}, step {until}, "
                    'which has no hasdep="1": it would wait for ever'
                )
    coll = root.get("coll", "custom")
    collective = _COLLECTIVES.get(coll, coll)
    in_place = root.get("inplace", "0") == "1"
    return Plan(file, root.get("name", "algorithm"), collective, in_place, False, False, gpus, {}, fifos)  # noqa: FBT003


def _gpu(place: ET.Element, fifos: Fifos, file: str, ranks: int) -> Gpu:
    rank = _number(place, "id", file, "gpu")
    names = {INPUT: "i_chunks", OUTPUT: "o_chunks", SCRATCH: "s_chunks"}
    chunks = {buffer: _number(place, key, file, f"gpu {rank}", 0) for buffer, key in names.items()}
    gpu = Gpu(rank, chunks, {"memory": (), "port": ()}, (), (), {})
    for tb in place.iter("tb"):
        block = _number(tb, "id", file, f"gpu {rank}")
        where = f"gpu {rank}, tb {block}"
        send, receive = (_number(tb, key, file, where, -1) for key in ("send", "recv"))
        if max(send, receive) >= ranks or rank in (send, receive):
            raise MisuseError(f"{file}: {where}: send={send}, recv={receive}; peers are other gpus below {ranks}")
        fifos.ends[rank, block] = send, receive, _number(tb, "chan", file, where, 0)
        gpu.blocks[block] = tuple(_step(step, n, gpu, block, fifos, file) for n, step in enumerate(tb.iter("step")))
    return gpu


def _step(place: ET.Element, index: int, gpu: Gpu, block: int, fifos: Fifos, file: str) -> Operation:  # noqa: PLR0913, PLR0917
    where = f"gpu {gpu.id}, tb {block}, step {index}"
    name = place.get("type", "")
    send, receive, _ = fifos.ends[gpu.id, block]
    if name not in STEPS:
        raise MisuseError(f"{file}: {where}: type={name!r}; it is one of {', '.join(STEPS)}")
    if ("send" in STEPS[name] and send < 0) or ("receive" in STEPS[name] and receive < 0):
        raise MisuseError(f"{file}: {where}: {name} ({STEPS[name]}), in a thread block that has no peer for it")
    spans = []
    for side in ("src", "dst") if name != "nop" else ():
        buffer = TYPES.get(place.get(f"{side}buf", ""))
        if buffer is None:
            raise MisuseError(f"{file}: {where}: {side}buf={place.get(f'{side}buf')!r}; it is i, o or s")
        size = _number(place, "cnt", file, where, 1)
        span = Span(gpu.id, buffer, _number(place, f"{side}off", file, where, 0), size)
        used = side == "dst" if name in ("r", "rcs") else side == "src" if name in ("s", "rrs") else True
        if used and not 0 <= span.index <= span.index + size <= gpu.chunks[buffer]:
            raise MisuseError(
                f"{file}: {where}: {span} is out of range: gpu {gpu.id} has {gpu.chunks[buffer]} chunks there"
            )
        spans.append(span)
    ids, steps = _list(place, "depid", file, where), _list(place, "deps", file, where)
    needed = tuple(pair for pair in zip(ids, steps, strict=False) if pair[0] >= 0)
    if needed:
        fifos.needs[gpu.id, block, index] = needed
    if place.get("hasdep", "0") == "1":
        fifos.posts[gpu.id, block] = (*fifos.posts.get((gpu.id, block), ()), index)
    return Operation(name, gpu.id, block, index, -1, where, 1, tuple(spans[:1]), tuple(spans[1:]), channel="fifo")


def _list(place: ET.Element, key: str, file: str, where: str) -> list[int]:
    text = place.get(key, "-1")
    if not text.replace(",", "").replace("-", "").isdecimal():
        raise MisuseError(f"{file}: {where}: {key}={text!r} is no list of integers")
    return [int(part) for part in text.split(",")]


def _number(place: ET.Element, key: str, file: str, where: str, default: int | None = None) -> int:
    text = place.get(key, "" if default is None else str(default))
    try:
        return int(text)
    except ValueError:
        raise MisuseError(f"{file}: {where}: {key}={text!r} is no integer") from None


class FifoThread(Thread):
    """A thread block of an algorithm, in a launch: one thread stands for all."""

    __slots__ = ()

    def steps(self, op: Operation) -> Steps:
        """Yield the steps of an operation."""
        fifos: Fifos = self.launch.context.plan.fifos  # type: ignore[assignment]
        does = STEPS[op.name]
        done = self.launch.signal("done")
        for block, until in fifos.needs.get((op.gpu, op.block, op.index), ()):
            posts = fifos.posts[op.gpu, block]
            times = self.launch.nth * len(posts) + posts.index(until) + 1
            yield self.rank.wait(done[block] >= times)
        values: Any = None
        if "receive" in does:
            values = yield from self._received(op, fifos)
        if op.name != "nop" and ("reduce" in does or values is None):
            held = yield self.rank.load(self._whole(op.sources[0]))
            values = held if values is None else np.add(held, values)
        if op.name == "re":
            values = np.add(values, (yield self.rank.load(self._whole(op.targets[0]))))
        if op.name in ("r", "rcs", "rrc", "rrcs", "cpy", "re"):
            yield self.rank.store(self._whole(op.targets[0]), values)
        if "send" in does:
            yield from self._sent_on(op, fifos, values)
        if op.index in fifos.posts.get((op.gpu, op.block), ()):
            yield self.rank.notify(done[op.block], 1)

    def _whole(self, span: Span) -> Any:  # noqa: ANN401 - a region
        launch = self.launch
        name, first = launch.layout.start(launch.context, span.rank, span.buffer, span.index, 0)
        return launch.state.memory[name][first : first + span.size * launch.layout.rows, :]

    def _slot(self, fifos: Fifos, connection: int, times: int, size: int) -> slice:
        rows = self.launch.layout.rows
        first = (connection * fifos.slots + (times - 1) % fifos.slots) * fifos.most * rows
        return slice(first, first + size * rows)

    def _received(self, op: Operation, fifos: Fifos) -> Generator[Coroutine[Any, Any, Any], Any, Any]:
        """Take the next slot of the connection that the thread block receives from, and give it back."""
        launch = self.launch
        _, peer, channel = fifos.ends[op.gpu, op.block]
        connection = peer * fifos.channels + channel
        times = launch.state.next(f"tail{launch.context.suffix}", connection)
        yield self.rank.wait(launch.signal("tail")[connection] >= times)
        place = self._slot(fifos, connection, times, op.targets[0].size)
        values = yield self.rank.load(launch.signal("fifo")[place, :])
        yield self.rank.notify(launch.signal("head").at(peer)[op.gpu * fifos.channels + channel], 1)
        return values

    def _sent_on(self, op: Operation, fifos: Fifos, values: Any) -> Steps:  # noqa: ANN401 - an array
        """Fill the next slot of the connection that the thread block sends to, as soon as it is free."""
        launch = self.launch
        peer, _, channel = fifos.ends[op.gpu, op.block]
        own, there = peer * fifos.channels + channel, op.gpu * fifos.channels + channel
        times = launch.state.next(f"head{launch.context.suffix}", own)
        if times > fifos.slots:
            yield self.rank.wait(launch.signal("head")[own] >= times - fifos.slots)
        place = self._slot(fifos, there, times, op.targets[0].size)
        yield self.rank.store(launch.signal("fifo").at(peer)[place, :], values)
        yield self.rank.notify(launch.signal("tail").at(peer)[there], 1)
