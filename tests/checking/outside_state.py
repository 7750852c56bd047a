"""Kernels that keep something outside their memory, each in another way; and some that only look as if they did."""

from __future__ import annotations

import contextvars
import ctypes
import functools
import io
import itertools
import logging
import os
import queue
import random
import sys
import threading
import types
from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque
from random import random as draw

import numpy as np

from asyncsim import Window, kernel

X = Window("x", (1,), np.int64, initialised=True)
CHANGING, STILL = {}, {}
"""By name: a function that a kernel calls in every call, and the variable that is to be named."""

COUNT = 0
LIST, DICT, SET, DEQUE = [], {}, set(), deque()
COUNTER, BYTES, NUMBERS, DEFAULT = Counter(), bytearray(2), array("l", [0]), defaultdict(list)
TABLE = np.zeros(4)
OBJECTS = np.array([0, None], dtype=object)
NESTED = ({"deep": [[]]},)
RNG, OLD_RNG, OWN_RNG = np.random.default_rng(1), np.random.RandomState(1), random.Random(1)  # noqa: S311
BITS = np.random.PCG64(1)
IDS, LETTERS, SQUARES = itertools.count(), iter("abcdefghijklmnopqrst" * 100), (n * n for n in range(10_000))
MAIL, SPACE = queue.Queue(), types.SimpleNamespace(n=0)
CONTEXT = contextvars.ContextVar("CONTEXT", default=0)
RAW, TEXT, OWN = io.BytesIO(), io.StringIO(), threading.local()
VIEW, POST, PILES = memoryview(bytearray(1)), queue.SimpleQueue(), queue.LifoQueue()
POST.put(0)
C_INT, C_ARRAY, POINTER = ctypes.c_int(), (ctypes.c_int * 2)(), ctypes.pointer(ctypes.c_int())
BOTH, ROWS, LAYERS, ORDERED = UserDict(), UserList(), ChainMap({}), OrderedDict(a=1, b=2)
BELL, SEATS, DOOR = threading.Event(), threading.Semaphore(1000), threading.Lock()
SEEDS, FLAT, BY_TEXT, BY_NAME, BY_MODULE = np.random.SeedSequence(1), np.arange(1000).flat, 0, 0, 0


def both(words):
    """Give the words one after the other."""
    for word in words:
        yield from word


INNER = both(["a" * 1000])
LOG = logging.getLogger("outside")
ITSELF = []
ITSELF.append(ITSELF)


class Total:
    """Has a number of its own, and one for all."""

    every = 0

    def __init__(self):
        """Begin."""
        self.own = 0

    def add(self):
        """Count."""
        self.own += 1

    @classmethod
    def add_all(cls):
        """Count for all."""
        cls.every += 1

    @functools.cached_property
    def table(self):
        """Be made once."""
        return [1]

    @property
    def half(self):
        """Half of it."""
        return self.own / 2

    @staticmethod
    def none():
        """Nothing."""
        return 0


class Slotted:
    """Has a slot."""

    __slots__ = ("n",)


class Pile(list):
    """A list of a kind of its own."""


class Book(dict):
    """A dict of a kind of its own."""


TOTAL, SLOTTED, PILE, BOOK = Total(), Slotted(), Pile(), Book()
SLOTTED.n = 0


def changing(name):
    """Take a function that changes the variable of this name."""

    def take(function):
        CHANGING[name] = function
        return function

    return take


def still(function):
    """Take a function that changes nothing."""
    STILL[function.__name__] = function
    return function


@changing("COUNT")
def by_global():
    """Assign."""
    global COUNT  # noqa: PLW0603 - the point
    COUNT += 1


def remember(function, *arguments):
    """Return a function that calls another."""
    return functools.partial(function, *arguments)


def newer():
    """Assign what is not there at first."""
    global NEWER  # noqa: PLW0603 - the point
    NEWER = globals().get("NEWER", 0) + 1


CHANGING.update({
    "LIST": lambda: LIST.append(1),
    "DICT": lambda: DICT.update({len(DICT): 1}),
    "SET": lambda: SET.add(len(SET)),
    "DEQUE": lambda: DEQUE.append(1),
    "COUNTER": lambda: COUNTER.update("a"),
    "DEFAULT": lambda: DEFAULT[1].append(1),
    "NESTED": lambda: NESTED[0]["deep"][0].append(1),
    "BYTES": lambda: BYTES.append(1),
    "NUMBERS": lambda: NUMBERS.append(1),
    "TABLE": lambda: np.add(TABLE, 1, out=TABLE),
    "OBJECTS": lambda: OBJECTS.__setitem__(0, OBJECTS[0] + 1),
    "RNG": RNG.random,
    "OLD_RNG": OLD_RNG.rand,
    "OWN_RNG": OWN_RNG.random,
    "BITS": BITS.random_raw,
    "IDS": lambda: next(IDS),
    "LETTERS": lambda: next(LETTERS),
    "SQUARES": lambda: next(SQUARES),
    "RAW": lambda: RAW.write(b"1"),
    "TEXT": lambda: TEXT.write("1"),
    "OWN": lambda: vars(OWN).update(n=getattr(OWN, "n", 0) + 1),
    "VIEW": lambda: VIEW.__setitem__(0, VIEW[0] + 1),
    "POST": lambda: POST.put(POST.get() + 1),
    "PILES": lambda: PILES.put(1),
    "C_INT": lambda: setattr(C_INT, "value", C_INT.value + 1),
    "C_ARRAY": lambda: C_ARRAY.__setitem__(1, C_ARRAY[1] + 1),
    "POINTER": lambda: setattr(POINTER.contents, "value", POINTER.contents.value + 1),
    "BOTH": lambda: BOTH.update({len(BOTH): 1}),
    "ROWS": lambda: ROWS.append(1),
    "LAYERS": lambda: LAYERS.update({len(LAYERS): 1}),
    "ORDERED": lambda: ORDERED.move_to_end(next(iter(ORDERED))),
    "BELL": lambda: BELL.clear() if BELL.is_set() else BELL.set(),
    "SEATS": SEATS.release,
    "DOOR": lambda: DOOR.release() if DOOR.locked() else DOOR.acquire(),
    "SEEDS": lambda: SEEDS.spawn(1),
    "FLAT": lambda: next(FLAT),
    "INNER": lambda: next(INNER),
    "BY_TEXT": lambda: globals().__setitem__("BY_TEXT", globals()["BY_TEXT"] + 1),
    "BY_NAME": lambda: globals().update({"BY_" + "name".upper(): globals()["BY_" + "name".upper()] + 1}),
    "BY_MODULE": lambda: setattr(sys.modules[__name__], "BY_MODULE", sys.modules[__name__].BY_MODULE + 1),
    "the names of outside_state": lambda: globals().__setitem__("NEW", globals().get("NEW", 0) + 1),
    "NEWER": newer,
    "MAIL": lambda: MAIL.put(1),
    "SPACE": lambda: setattr(SPACE, "n", SPACE.n + 1),
    "CONTEXT": lambda: CONTEXT.set(CONTEXT.get() + 1),
    "TOTAL": TOTAL.add,
    "Total.every": Total.add_all,
    "SLOTTED": lambda: setattr(SLOTTED, "n", SLOTTED.n + 1),
    "PILE": lambda: PILE.append(1),
    "BOOK": lambda: BOOK.update({len(BOOK): 1}),
    "ITSELF": lambda: ITSELF.append(1),
    "the generator of the module random": lambda: random.random() + 1,  # noqa: S311 - no secret
    "the generator of numpy.random": lambda: np.random.rand() + 1,  # noqa: NPY002 - the point
    "os.environ": lambda: os.environ.__setitem__("ASYNCSIM_TEST", os.environ.get("ASYNCSIM_TEST", "") + "1"),
})  # fmt: skip


@functools.cache
def cached(number):
    """Keep what follows from the argument."""
    return [number]


@still
def reads():
    """Read what others change."""
    return COUNT, TABLE.sum(), len(LIST), TOTAL.half, Total.none()


@still
def logs():
    """Say something."""
    LOG.debug("nothing")


@still
def keeps():
    """Keep what follows from nothing else."""
    return cached(3), TOTAL.table


@still
def makes():
    """Make and change what is its own."""
    own, rng = [], np.random.default_rng(3)
    own.append(rng.random())
    total = Total()
    total.add()
    return own


@still
def nothing_to_see():
    """Reach things that cannot be looked into."""
    return LOG.name, draw.__name__, X.name, OTHER, remember(len, LIST)


OTHER = object()


def kernel_of(function, ranks=None):
    """Return a kernel that calls a function, of all ranks or of some."""

    @kernel(memory=[X])
    async def calls(rank, x):
        if ranks is None or rank.id in ranks:
            function()
        await rank.store(x[0], rank.id)
        return await rank.load(x[0])

    return calls
