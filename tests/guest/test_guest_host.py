"""The host of guests: a blocking function is a kernel, its own lines are told, and what ends it passes through it."""

import sys

import numpy as np
import pytest

from asyncsim import Case, Fifo, KernelError, Signal, Window, check, kernel, simulate
from asyncsim.guest.host import blocking, hosted, is_hosted

box = Window("box", (1,), np.float32, initialised=True)
ready = Signal("ready", (1,))


class Dialect:
    """A front end in four lines: what its authors call is blocking."""

    def __init__(self, rank, box, ready):
        """Keep what an operation needs."""
        self.rank, self.box, self.ready = rank, box, ready

    def put(self, value, pe):
        blocking(self.rank.store(self.box.at(pe)[0], np.float32(value)))

    def get(self):
        return float(blocking(self.rank.load(self.box[0])))

    def signal(self, pe):
        blocking(self.rank.notify(self.ready.at(pe)[0], 1))

    def wait(self, count):
        blocking(self.rank.wait(self.ready[0] >= count))


def of(program, **finds):
    """Make a kernel of a blocking function of a dialect."""

    @kernel(memory=[box, ready], **finds)
    async def guest(rank, box, ready):
        return await hosted(program, Dialect(rank, box, ready), rank.id, rank.size)

    return guest


def run(program, ranks=2):
    return simulate(Case(of(program), ranks=ranks, calls=1), Fifo(), record="fifo")


def shift(shmem, me, size):
    class Peer:
        right = (me + 1) % size

    tell = lambda distance: shmem.signal((me + distance) % size)  # noqa: E731 - a lambda is the point
    shmem.put(me, Peer.right)
    tell(1)
    shmem.wait(1)
    return next(shmem.get() for _ in range(1))


def test_a_blocking_function_with_lambdas_classes_and_generators_is_proved():
    report = check(of(shift), ranks=3, calls=1)
    assert report.verdict == "PROVED"
    assert run(shift, 3).outputs == [[2.0, 0.0, 1.0]]


def test_an_operation_is_told_with_the_line_of_the_dialects_author():
    trace = run(shift).trace
    places = {event.op.kind: event.at for event in trace.events}
    assert all(place[0].startswith("tests/") or "test_guest_host" in place[0] for place in places.values())
    assert len({place[0] for place in places.values()}) == len(places)


def test_a_race_of_a_guest_names_both_lines():
    def racing(shmem, me, size):
        shmem.put(me, 1 - me)
        return shmem.get()

    report = check(of(racing), ranks=2, calls=1)
    assert report.verdict == "REFUTED"
    assert {side.op for side in report.findings[0].sides} == {"remote_store", "load"}


def test_what_a_guest_raises_has_its_line():
    def failing(shmem, me, size):
        shmem.signal(me)
        raise ValueError("its own")  # the line

    with pytest.raises(KernelError, match="ValueError: its own") as caught:
        run(failing)
    assert "# the line" in str(caught.value)


def test_a_refusal_can_be_caught_where_the_operation_stands():
    def careful(shmem, me, size):
        try:
            shmem.put(me, size + 5)
        except Exception as error:  # noqa: BLE001 - whatever it is
            return type(error).__name__
        return None

    assert run(careful).outputs[0][0].endswith("Error")


def test_the_end_of_a_run_passes_through_a_guests_finally():
    seen = []

    def waiting(shmem, me, size):
        try:
            shmem.wait(1)
        finally:
            seen.append(me)

    assert run(waiting).ending == "deadlock"
    assert sorted(seen) == [0, 1]


def test_only_a_guest_is_hosted():
    hosted_there = []

    def asking(shmem, me, size):
        hosted_there.append(is_hosted())

    assert not is_hosted()
    run(asking)
    assert hosted_there == [True, True]
    assert not is_hosted()


def test_both_engines_give_the_same_run():
    case = Case(of(shift), ranks=3, calls=1)
    runs = [simulate(case, Fifo(), record="fifo", engine=engine) for engine in ("trio", "direct")]
    assert runs[0].choices == runs[1].choices
    assert [str(event.op) for event in runs[0].trace.events] == [str(event.op) for event in runs[1].trace.events]


def test_a_guest_may_go_deep():
    def deep(shmem, me, size, depth=300):
        return shmem.get() if depth == 0 else deep(shmem, me, size, depth - 1)

    assert run(deep).outputs == [[0.0, 0.0]]
    assert sys.getrecursionlimit() > 300
