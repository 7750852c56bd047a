"""The kit for schedulers says which rule one breaks, one broken scheduler a rule."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace

import pytest

from asyncsim import MisuseError
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.testing import check_scheduler
from asyncsim.testing.elsewhere import choices_elsewhere
from asyncsim.testing.schedulers import choices_of
from asyncsim.trace.op import Op


class Invents(Fifo):
    """Chooses what is not offered."""

    def choose(self, ready):
        return Op(ready[0].actor, "load")


class Sorts(Fifo):
    """Turns the list around that it is lent."""

    def choose(self, ready):
        ready.reverse()
        return ready[0]


class PicksOtherwise(Fifo):
    """Chooses the first, and picks the last."""

    blocks = False

    def choose(self, ready):
        return ready[0]

    def pick(self, ready):
        return len(ready) - 1


class Keeps(Fifo):
    """Looks into the list of the step before."""

    def begin(self, actors):
        self.last = []

    def choose(self, ready):
        op = ready[0] if self.last else ready[-1]
        self.last = ready
        return op


class Remembers(Fifo):
    """Counts on from run to run."""

    count = 0

    def begin(self, actors):
        """Forget nothing."""

    def choose(self, ready):
        self.count += 1
        return ready[self.count % len(ready)]


class Endless(Fifo):
    """Raises where somebody is late."""

    def choose(self, ready):
        if any(op.actor.wire for op in ready):
            raise MisuseError("what is this?")
        return super().choose(ready)


class ByHash(Fifo):
    """Looks at what differs from process to process."""

    def choose(self, ready):
        return min(ready, key=lambda op: hash(str(op)))


class OnlyHere(Fifo):
    """Raises in any other process."""

    here = False

    def __init__(self):
        """Look where it is."""
        if not self.here:
            raise LookupError("not here")


class NoBegin:
    """Has one method of two."""

    def choose(self, ready):
        return ready[0]


class BareBegin(NoBegin):
    """Begins without the actors."""

    def begin(self):
        """Take nothing."""


class NoChoose:
    """Has the other one."""

    def begin(self, actors):
        """Take the actors."""


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.setattr(OnlyHere, "here", True)


seeds = itertools.count()
one = Fifo()


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (Invents, "one of what is ready: with one actor, .* was chosen; ready: .*; return one of the objects"),
        (Sorts, "the list is lent: with .*, choose changed it; copy it first"),
        (Keeps, "the list is lent: with .* the choices depend on what the list of an earlier step became"),
        (PicksOtherwise, "pick says where choose chooses: with three ranks, .* they differ; write choose as"),
        (Remembers, "begin: the choices of a run depend on how far the run before it came; forget all of it"),
        (lambda: Random(next(seeds)), "same seed, same choices: two schedulers .* with"),
        (lambda: one, "make: it returned the same scheduler twice"),
        (ByHash, "same seed, same choices: in another process, under another PYTHONHASHSEED: it chose otherwise"),
        (OnlyHere, "in another process, under another PYTHONHASHSEED: LookupError: not here"),
        (one, "make: .*Fifo object.* makes no scheduler; give the class"),
        (lambda seed: one, "make: it takes arguments; give a function without any"),
        (NoBegin, r"begin: .* has no such method; define begin\(self, actors\)"),
        (BareBegin, r"begin: it does not take one argument; define begin\(self, actors\)"),
        (NoChoose, r"choose: .* has no such method; define choose\(self, ready\)"),
    ],
)
def test_a_scheduler_is_told_which_rule_it_breaks(make, rule):
    with pytest.raises(AssertionError, match=rule):
        check_scheduler(make)


def test_what_a_scheduler_raises_comes_through():
    with pytest.raises(MisuseError, match="what is this"):
        check_scheduler(Endless)


def test_a_scheduler_that_may_learn_need_not_forget():
    check_scheduler(Remembers, learns=True)


def test_a_scheduler_without_a_name_is_run_in_this_process_alone(monkeypatch):
    assert choices_elsewhere(lambda: Random(1)) == []
    lost = type("Lost", (Fifo,), {"__module__": "nowhere"})
    monkeypatch.setitem(sys.modules, "nowhere", SimpleNamespace(Lost=lost))  # here, but not there
    assert choices_elsewhere(lost) == []
    assert choices_elsewhere(Fifo) == 2 * [choices_of(Fifo)]
