"""Algorithms of MSCCL, the older XML: steps of thread blocks that send and receive through connections with slots.

A thread block has one peer to send to and one to receive from, on a channel. A connection is a FIFO at the receiver: a
send waits until one of its slots is free, a receive until the next one is filled. A step may wait for steps of other
thread blocks of its gpu.

Source: the XML of msccl-tools, and the interpreter of MSCCL.
"""

from __future__ import annotations

from dataclasses import dataclass
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
_MOST = 1 << 20
"""Larger numbers of chunks and channels are no algorithm's."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An element of the XML, and where it stands."""

    element: ET.Element
    file: str
    where: str

    def fail(self, text: str) -> MisuseError:
        return MisuseError(f"{self.file}: {self.where}: {text}")

    def numbers(self, key: str, default: int | None = None, least: int = 0) -> list[int]:
        text = self.element.get(key, "" if default is None else str(default))
        try:
            found = [int(part) for part in text.split(",")]
        except ValueError:
            raise self.fail(f"{key}={text!r} is no integer") from None
        if not least <= min(found) <= max(found) < _MOST:
            raise self.fail(f"{key}={text!r}; it is at least {least}, and less than {_MOST}")
        return found

    def number(self, key: str, default: int | None = None, least: int = 0) -> int:
        return self.numbers(key, default, least)[0]


def parse_algorithm(text: str, file: str = "algorithm.xml") -> Plan:
    """Return the plan that an XML algorithm is.

    Args:
        text: XML.
        file: what reports call it.

    Raises:
        MisuseError: it is no algorithm; the message has the place in the XML.

    """
    try:
        root = ET.fromstring(text)  # noqa: S314 - a file of the user's own
    except ET.ParseError as error:
        raise MisuseError(f"{file} is no XML: {error}") from error
    places = [_Place(each, file, f"gpu {each.get('id')}") for each in root.iter("gpu")]
    places.sort(key=lambda place: place.number("id"))
    if root.tag != "algo" or [place.number("id") for place in places] != list(range(len(places))) or not places:
        raise MisuseError(f"{file}: an algorithm is <algo> with a <gpu> each, ids from 0")
    channels = [_Place(tb, file, "tb").number("chan", 0) for tb in root.iter("tb")]
    fifos = Fifos(1 + max(channels, default=0))
    gpus = tuple(_gpu(place, fifos, len(places)) for place in places)
    ends = [(gpu, way, end[way], end[2]) for (gpu, _), end in fifos.ends.items() for way in (0, 1) if end[way] >= 0]
    for gpu, way, peer, channel in (end for end in ends if ends.count(end) > 1):
        word = ("send to", "receive from")[way]
        raise MisuseError(f"{file}: gpu {gpu}: two thread blocks {word} gpu {peer} on channel {channel}")
    steps = [op for gpu in gpus for ops in gpu.blocks.values() for op in ops]
    fifos.most = max([op.targets[0].size for op in steps if op.targets], default=1)
    for (gpu, block, step), needed in fifos.needs.items():
        for other, until in needed:
            if until not in fifos.posts.get((gpu, other), ()):
                raise MisuseError(
                    f"{file}: gpu {gpu}, tb {block}, step {step}: depends on tb {other}, step {until}, "
                    'which has no hasdep="1": it would wait for ever'
                )
    collective = root.get("coll", "custom").replace("reduce_scatter", "reducescatter")
    return Plan(file, root.get("name", "algorithm"), collective, root.get("inplace") == "1", gpus, fifos=fifos)


def _gpu(place: _Place, fifos: Fifos, ranks: int) -> Gpu:
    rank = place.number("id")
    names = {INPUT: "i_chunks", OUTPUT: "o_chunks", SCRATCH: "s_chunks"}
    gpu = Gpu(rank, {buffer: place.number(key, 0) for buffer, key in names.items()})
    for tb in place.element.iter("tb"):
        block = _Place(tb, place.file, place.where).number("id")
        here = _Place(tb, place.file, f"gpu {rank}, tb {block}")
        send, receive = (here.number(key, -1, -1) for key in ("send", "recv"))
        if max(send, receive) >= ranks or rank in {send, receive}:
            raise here.fail(f"send={send}, recv={receive}; peers are other gpus below {ranks}")
        if block in gpu.blocks:
            raise here.fail("stands here twice")
        fifos.ends[rank, block] = send, receive, here.number("chan", 0)
        steps = (_Place(step, place.file, f"{here.where}, step {n}") for n, step in enumerate(tb.iter("step")))
        gpu.blocks[block] = tuple(_step(step, n, gpu, block, fifos) for n, step in enumerate(steps))
    return gpu


def _step(place: _Place, index: int, gpu: Gpu, block: int, fifos: Fifos) -> Operation:
    name = place.element.get("type", "")
    send, receive, _ = fifos.ends[gpu.id, block]
    if name not in STEPS:
        raise place.fail(f"type={name!r}; it is one of {', '.join(STEPS)}")
    if ("send" in STEPS[name] and send < 0) or ("receive" in STEPS[name] and receive < 0):
        raise place.fail(f"{name} ({STEPS[name]}), in a thread block that has no peer for it")
    spans = []
    for side in ("src", "dst") if name != "nop" else ():
        text = place.element.get(f"{side}buf", "")
        if text not in TYPES:
            raise place.fail(f"{side}buf={text!r}; it is i, o or s")
        span = Span(gpu.id, TYPES[text], place.number(f"{side}off", 0, -1), place.number("cnt", 1, 1))
        used = name not in ({"s", "rrs"} if side == "dst" else {"r", "rcs"})
        if used and not 0 <= span.index <= span.index + span.size <= gpu.chunks[span.buffer]:
            raise place.fail(f"{span} is out of range: gpu {gpu.id} has {gpu.chunks[span.buffer]} chunks there")
        spans.append(span)
    ids, steps = (place.numbers(key, -1, -1) for key in ("depid", "deps"))
    if needed := tuple(pair for pair in zip(ids, steps, strict=False) if pair[0] >= 0):
        fifos.needs[gpu.id, block, index] = needed
    if place.element.get("hasdep") == "1":
        fifos.posts[gpu.id, block] = (*fifos.posts.get((gpu.id, block), ()), index)
    return Operation(name, gpu.id, block, index, -1, place.where, 1, tuple(spans[:1]), tuple(spans[1:]), channel="fifo")


class FifoThread(Thread):
    """A thread block of an algorithm, in a launch: one thread stands for all."""

    __slots__ = ()

    def steps(self, op: Operation) -> Steps:
        """Yield the steps of an operation."""
        launch, does = self.launch, STEPS[op.name]
        fifos: Fifos = launch.context.plan.fifos  # type: ignore[assignment]
        done = launch.signal("done")
        for block, until in fifos.needs.get((op.gpu, op.block, op.index), ()):
            posts = fifos.posts[op.gpu, block]
            yield self.rank.wait(done[block] >= launch.nth * len(posts) + posts.index(until) + 1)
        values: Any = None
        if "receive" in does:
            values = yield from self._received(op, fifos)
        if op.name != "nop" and ("reduce" in does or values is None):
            held = yield self.rank.load(self._whole(op.sources[0]))
            values = held if values is None else np.add(held, values)
        if op.name == "re":
            values = np.add(values, (yield self.rank.load(self._whole(op.targets[0]))))
        if op.name not in {"s", "rrs", "nop"}:
            yield self.rank.store(self._whole(op.targets[0]), values)
        if "send" in does:
            yield from self._sent_on(op, fifos, values)
        if op.index in fifos.posts.get((op.gpu, op.block), ()):
            yield self.rank.notify(done[op.block], 1)

    def _whole(self, span: Span) -> Any:  # noqa: ANN401 - a region
        name, first = self.launch.start(span, span.rank)
        return self.launch.state.memory[name][first : first + span.size * self.launch.layout.rows, :]

    def _slot(self, fifos: Fifos, connection: int, times: int, size: int) -> slice:
        rows = self.launch.layout.rows
        first = (connection * fifos.slots + (times - 1) % fifos.slots) * fifos.most * rows
        return slice(first, first + size * rows)

    def _received(self, op: Operation, fifos: Fifos) -> Generator[Coroutine[Any, Any, Any], Any, Any]:
        """Read the next slot of the connection that the thread block receives from, and give it back."""
        launch = self.launch
        _, peer, channel = fifos.ends[op.gpu, op.block]
        connection = peer * fifos.channels + channel
        times = launch.next("tail", connection)
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
        times = launch.next("head", own)
        if times > fifos.slots:
            yield self.rank.wait(launch.signal("head")[own] >= times - fifos.slots)
        place = self._slot(fifos, there, times, op.targets[0].size)
        yield self.rank.store(launch.signal("fifo").at(peer)[place, :], values)
        yield self.rank.notify(launch.signal("tail").at(peer)[there], 1)
