"""Writes execution plans as MSCCL++'s DSL prints them; channels and buffers are numbered as they are met."""

import json
from collections import defaultdict


class Builder:
    """A plan that grows operation by operation.

    Spans are ``("i", index, size)`` of the own gpu, ``(peer, "s", index, size)`` of another one, and
    ``("switch", number, index, size)`` of a switch channel.
    """

    def __init__(self, ranks, collective, chunks, *, name=None, groups=(), semaphores=(), **top):  # noqa: PLR0913
        self.ranks, self.groups, self.semaphores = ranks, groups, semaphores
        self.top = {
            "name": name or f"{collective}_{ranks}", "collective": collective, "protocol": "Simple", "inplace": False,
            "reuse_resources": False, "use_double_scratch_buffer": False, "buffer_alignment": 16,
            "num_threads_per_block": 1024, "min_message_size": 0, "max_message_size": 2**40, **top,
        }  # fmt: skip
        self.chunks = chunks
        self.channels = defaultdict(list)
        self.remote = defaultdict(list)
        self.blocks = defaultdict(lambda: {"ops": [], "channels": defaultdict(list), "refs": defaultdict(list)})
        self.into = {}

    def channel(self, gpu, block, kind, peer, nth=0):
        """Return the number, in a thread block, of the nth channel of a gpu to a peer."""
        known = self.channels[gpu, kind]
        while known.count(peer) <= nth:
            known.append(peer)
        number = [n for n, other in enumerate(known) if other == peer][nth]
        return _number(self.blocks[gpu, block]["channels"][kind], number)

    def span(self, gpu, block, kind, span):
        if span[0] == "switch":
            used = self.blocks[gpu, block]["channels"]["switch"]
            return {"switch_channel_id": _number(used, span[1]), "index": span[2], "size": span[3]}
        if isinstance(span[0], str):
            return {"type": span[0], "index": span[1], "size": span[2]}
        peer, buffer, index, size = span
        remote = _number(self.remote[gpu], (peer, buffer))
        return {"buffer_id": _number(self.blocks[gpu, block]["refs"][kind], remote), "index": index, "size": size}

    def add(self, gpu, block, name, src=(), dst=(), *, to=(), kind="memory", nth=0, **fields):  # noqa: PLR0913
        """Add an operation; `to`: the peers of its channels."""
        op = {"name": name, **fields}
        if src:
            op["src_buff"] = [self.span(gpu, block, kind, span) for span in src]
        if dst:
            op["dst_buff"] = [self.span(gpu, block, kind, span) for span in dst]
        if to:
            op["channel_ids"] = [self.channel(gpu, block, kind, peer, nth) for peer in to]
        if to or dst:
            op["channel_type"] = kind
        self.into.get((gpu, block), self.blocks[gpu, block]["ops"]).append(op)
        return op

    def pipeline(self, gpu, block, unit, chunks):
        """Let the operations that follow in a thread block be the body of a pipeline, until `end`."""
        op = self.add(gpu, block, "pipeline", iter_context={"unit_size": unit, "num_chunks": chunks}, ops=[])
        self.into[gpu, block] = op["ops"]

    def end(self, gpu, block):
        del self.into[gpu, block]

    def tree(self):
        return {**self.top, "gpus": [self._gpu(gpu) for gpu in range(self.ranks)]}

    def _gpu(self, gpu):
        channels = [
            {"channel_type": kind, "connected_to": self.channels[gpu, kind]}
            for kind in ("memory", "port") if self.channels[gpu, kind]
        ]  # fmt: skip
        for buffer, ranks in self.groups:
            channels.append(
                {"channel_type": "switch", "buffer_type": buffer, "rank_groups": [{"size": len(ranks), "ranks": ranks}]}
            )
        inputs, outputs, scratch = self.chunks
        return {
            "id": gpu, "input_chunks": inputs, "output_chunks": outputs, "scratch_chunks": scratch,
            "channels": channels, "semaphores": [{"init_value": value} for value in self.semaphores],
            "remote_buffers": [
                {"rank": peer, "type": buffer, "access_channel_types": ["memory", "port"]}
                for peer, buffer in self.remote[gpu]
            ],
            "threadblocks": [
                {
                    "id": block, "ops": made["ops"],
                    "channels": [{"channel_type": kind, "channel_ids": ids} for kind, ids in made["channels"].items()],
                    "remote_buffer_refs": [
                        {"access_channel_type": kind, "remote_buffer_ids": ids} for kind, ids in made["refs"].items()
                    ],
                }
                for (owner, block), made in sorted(self.blocks.items()) if owner == gpu
            ],
        }  # fmt: skip

    def text(self):
        return json.dumps(self.tree(), indent=2)


def _number(listed, item):
    if item not in listed:
        listed.append(item)
    return listed.index(item)
