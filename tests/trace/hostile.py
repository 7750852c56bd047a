"""Traces made wrong in every way that came to mind: bytes, lines, values; with sums that fit, or not."""

from __future__ import annotations

import io
import json
import random
import zlib

import everything
import instrumented
from command import ROOT
from everything_late import late

from asyncsim import Case, simulate
from asyncsim.schedulers.table import make
from asyncsim.trace.jsonl import write_trace

KEPT = (
    "reduce_scatter-no_post_barrier-WAR-next-call",
    "f10_parity_per_handle_slots_shared-signal-race",
    "f25_two_streams_one_communicator-WAR-same-call",
    "f27_flag_overtakes_data-RAW-same-call",
)
"""Witnesses whose kernels come with asyncsim."""


def originals():
    """Return the text of each trace that is made wrong."""
    texts = [everything.TEXT, instrumented.log(instrumented.run(acknowledged=False))]
    texts += [(ROOT / f"traces/{name}.jsonl").read_text("utf-8") for name in KEPT]
    for memory in ("ldst:atom=4", "nic"):
        stream = io.StringIO()
        write_trace(simulate(Case(late, 2, 1, memory), make("random:seed=2"), record="x").trace, stream)
        texts.append(stream.getvalue())
    return texts


def bare(text):
    """Return the lines of a text as objects, without sums."""
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        line.pop("crc", None)
    return lines


def summed(bodies):
    """Return lines with sums that fit, whatever they hold."""
    crc = 0
    made = []
    for body in bodies:
        crc = zlib.crc32(body.encode("utf-8", "surrogatepass"), crc)
        made.append(f'{body[:-1]},"crc":"{crc:08x}"}}\n')
    return "".join(made)


NUMBERS = (-1, 0, 1, 2, 7, 1 << 16, 1 << 31, 1 << 62, 1 << 64, 10**30, 1e308, 0.5, -0.0)
OTHERS = (
    None, True, False, "", "0", "1", "0.1", "0>1", "0>1s", "9", "inf", "nan:7fc00000", "bits:00", "\x00", "é", "[",
    "a:1", "x" * 5000, [], {}, [[]], [0], [0, 1], [0, 1, 1], [5, 2, 1], [0, 1 << 40, 1], {"signal": "flag"},
    {"window": "data"},
)  # fmt: skip
LITERALS = (
    "NaN", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 99, '"\\ud800"', "[" * 40 + "]" * 40, "[" * 100_000, "tru", "",
)  # fmt: skip
WORDS = (
    "load", "store", "remote_load", "remote_store", "get", "put", "notify", "wait", "test", "put_signal", "poll",
    "fence", "quiet", "start", "join", "sync", "fetch", "land", "read", "write", "add", "AtomicAdd", "Set", "Ge", "Eq",
    "Lt", "header", "step", "footer", "complete", "deadlock", "stopped", "sc", "nic", "ldst:atom=1", "local",
    "elsewhere",
)  # fmt: skip
FIELDS = ("extra", "step", "late", "consume", "relaxed", "group", "over", "time", "unwritten")
NAMES = ("0", "1", "data", "flag", "done", "ready")


class Mutator:
    """Makes one wrong trace after the other.

    Args:
        seed: of the draws.

    """

    def __init__(self, seed):
        """Take the originals."""
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.texts = originals()
        self.objects = [bare(text) for text in self.texts]

    def next(self):
        """Return (number of the original, the bytes of a wrong trace)."""
        number = self.draw.randrange(len(self.texts))
        kind = self.draw.random()
        if kind < 0.2:
            return number, self._bytes(self.texts[number].encode())
        if kind < 0.35:
            return number, "".join(self._lines(self.texts[number].splitlines(keepends=True))).encode()
        if kind < 0.5:
            lines = self._lines(list(map(json.dumps, self.objects[number])))
            return number, summed(lines).encode()
        if kind < 0.6:
            return number, self._literal(number).encode("utf-8", "surrogatepass")
        lines = json.loads(json.dumps(self.objects[number]))
        for _ in range(self.draw.choice((1, 1, 1, 2, 4))):
            self._value(lines)
        bodies = [json.dumps(line) for line in lines]
        text = summed(bodies) if self.draw.random() < 0.7 else "".join(body + "\n" for body in bodies)
        return number, text.encode()

    def _bytes(self, data):
        draw = self.draw
        at, to = sorted((draw.randrange(len(data)), draw.randrange(len(data))))
        to = min(to, at + draw.choice((1, 8, 200, len(data))))
        what = draw.randrange(6)
        if what == 0:
            return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        if what == 1:
            return data[:at]
        if what == 2:
            return data[:at] + data[to:]
        if what == 3:
            return data[:to] + data[at:to] + data[to:]
        if what == 4:
            return data[:at] + draw.randbytes(draw.choice((1, 3, 50))) + data[at:]
        return draw.choice((b"\xff\xfe", b"\x00", b"\n", b"\r\n", b"\xef\xbb\xbf")) * draw.choice((1, 3)) + data[at:]

    def _lines(self, lines):
        draw = self.draw
        at, to = draw.randrange(len(lines)), draw.randrange(len(lines))
        what = draw.randrange(6)
        if what == 0:
            del lines[at]
        elif what == 1:
            lines[at], lines[to] = lines[to], lines[at]
        elif what == 2:
            lines.insert(to, lines[at])
        elif what == 3:
            del lines[at:]
        elif what == 4:
            lines.insert(to, lines.pop(at))
        else:
            other = draw.choice(self.objects)
            end = "\n" if lines[at].endswith("\n") else ""
            lines.insert(to, json.dumps(draw.choice(other)) + end)
        return lines or ["{}"]

    def _literal(self, number):
        """Put what no JSON writer writes where a value stands, with sums that fit."""
        bodies = list(map(json.dumps, self.objects[number]))
        at = self.draw.randrange(len(bodies))
        places = [place for place, sign in enumerate(bodies[at]) if sign in ":[,"]
        place = self.draw.choice(places) + 1
        bodies[at] = bodies[at][:place] + self.draw.choice(LITERALS) + bodies[at][place + self.draw.choice((0, 1, 3)) :]
        return summed(bodies)

    def _value(self, lines):
        """Change, drop or add one value somewhere in one line."""
        draw = self.draw
        holder = draw.choice(lines[:1] * 3 + lines)
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                return
            key = draw.choice(keys)
            if not isinstance(holder[key], dict | list) or draw.random() < 0.2:
                break
            holder = holder[key]
        what = draw.random()
        if what < 0.1:
            del holder[key]
        elif what < 0.15 and isinstance(holder, list):
            holder.extend([holder[key]] * draw.choice((1, 3, 40)))
        elif what < 0.2 and isinstance(holder, dict):
            holder[draw.choice(FIELDS)] = holder[key]
        elif what < 0.6:
            self._like(holder, key)
        else:
            holder[key] = draw.choice(draw.choice((NUMBERS, OTHERS, WORDS)))

    def _like(self, holder, key):
        """Put another value of the same type: that gets furthest."""
        draw = self.draw
        value = holder[key]
        if isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, int | float):
            holder[key] = draw.choice((value + 1, value - 1, -value, value * 2, 0, 1, 2, 3))
        elif isinstance(value, str):
            holder[key] = draw.choice(WORDS) if value in WORDS else draw.choice((*NAMES, f"{value}x"))
        elif isinstance(value, list):
            draw.shuffle(value)
