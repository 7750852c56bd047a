"""Launches: whose turn it is, calls that do not fit, how runs end; and torch covered while it lasts."""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings

import numpy as np
import pytest
import trio
from command import run
from torch_ranks import started

from asyncsim.frontends import torch_dist as dist
from asyncsim.frontends.torch_dist import CallMismatchError, NotRunError, launch, session
from asyncsim.frontends.torch_dist.replayed import run_step
from asyncsim.guest.signals import handlers_by_rank
from asyncsim.guest.turns import Turns
from asyncsim.trace.errors import MisuseError
from asyncsim.views.report import report_text


def test_ranks_run_one_at_a_time_lowest_first():
    order = []

    def program(rank):
        for n in range(3):
            order.append((n, rank))
            dist.barrier()
        return threading.current_thread().name

    assert launch(started(program), ranks=3).results == ["rank 0", "rank 1", "rank 2"]
    assert order == [(n, rank) for n in range(3) for rank in range(3)]


def test_the_same_launch_gives_the_same_report_again():
    def program(rank):
        x = np.random.rand(5)  # noqa: NPY002 - nobody seeds it
        dist.all_reduce(x)
        return x.tolist()

    first, second, other = (launch(started(program), ranks=3, seed=seed) for seed in (1, 1, 2))
    assert first.results == second.results != other.results
    assert len({tuple(x) for x in first.results}) == 1
    texts = {report_text(launched.check()).rpartition(" in ")[0] for launched in (first, second)}
    assert len(texts) == 1


@pytest.mark.parametrize("scheduler", ["random:seed=5", "starve:rank=0", "pct:depth=3"])
def test_any_schedule_gives_the_same_values_and_verdict(scheduler):
    def program(rank):
        x, y = np.arange(4.0) * (rank + 1), np.zeros(2)
        dist.all_reduce(x)
        dist.reduce_scatter_tensor(y, x)
        return y.tolist()

    launched = launch(started(program), ranks=2, scheduler=scheduler)
    assert launched.results == [[0, 6], [12, 18]]
    assert launched.check().verdict == "PROVED"


def test_a_workspace_is_used_again_and_again():
    def program(rank):
        for n in range(1, 5):
            x = np.full(n, float(rank))
            dist.all_reduce(x)
            dist.broadcast(x, src=n % 3)

    launched = launch(started(program), ranks=3)
    names = [made.name for made in launched.kernel("sc").memory]
    assert names == [
        "rendezvous_ready", "world_ready", "rendezvous_int32_0", "rendezvous_int32_0_gathered", "world_float64_1",
        "world_float64_1_gathered", "world_float64_2", "world_float64_2_gathered",
    ]  # fmt: skip
    assert launched.check().verdict == "PROVED"


def test_transfers_that_do_not_fit_although_all_say_the_same():
    def program(rank):
        dist.all_to_all_single(np.zeros(4), np.ones(4), [1, 3], [1, 3])

    launched = launch(started(program), ranks=2)
    assert all(isinstance(error, CallMismatchError) for error in launched.errors)
    assert "rank 1 sends 1 elements to rank 0, which expects 3: rank 0 calls" in str(launched.errors[0])
    report = launched.check()
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("REFUTED", ["call-mismatch"])
    assert "in its transfers" in report.findings[0].why


def test_a_launch_without_a_collective_cannot_be_judged():
    launched = launch(started(lambda rank: dist.new_group([0])), ranks=2)
    with pytest.raises(MisuseError, match="called no collective; there is nothing to judge"):
        launched.check()


@pytest.mark.parametrize("wait", ["wait", "is_completed"])
def test_a_launch_in_which_a_collective_could_not_be_run_cannot_be_judged(wait, monkeypatch):
    def fail(step, **how):
        if step.first.name == "broadcast":
            raise KeyError(step.first.name)
        return run_step(step, **how)

    def program(rank):
        dist.barrier()
        if rank:
            with pytest.raises(NotRunError, match="collective 1 of the world could not be run"):
                dist.broadcast(np.ones(1), src=0)
        else:
            work = dist.broadcast(np.ones(1), src=0, async_op=True)
            with pytest.raises(NotRunError, match="KeyError: 'broadcast'"):
                _ = [*iter(getattr(work, wait), None)]
        with pytest.raises(NotRunError):
            dist.barrier()
        return True

    monkeypatch.setattr(session, "run_step", fail)
    launched = launch(started(program), ranks=2)
    assert launched.results == [True, True]
    with pytest.raises(NotRunError, match="could not be run") as told:
        launched.check()
    assert isinstance(told.value.__cause__, KeyError)


def test_a_session_that_is_broken_stays_so():
    def program(rank):
        with pytest.raises(CallMismatchError):
            dist.all_reduce(np.ones(1 + rank))
        with pytest.raises(CallMismatchError, match="call mismatch in collective 0 of the world"):
            dist.barrier()
        return True

    assert launch(started(program), ranks=2).results == [True, True]


def test_shapes_may_differ_where_sizes_do_not():
    def program(rank):
        x = np.ones((2, 2) if rank else 4)
        dist.all_reduce(x)
        return x.sum()

    launched = launch(started(program), ranks=2)
    assert launched.results == [8, 8]
    assert launched.check().verdict == "PROVED"


def test_asynchronous_calls_on_two_groups_may_be_complete_in_another_order():
    def program(rank):
        first, second = dist.new_group([0, 1]), dist.new_group([0, 1])
        x, y = np.ones(1), np.ones(1)
        order = ((x, first), (y, second)) if rank else ((y, second), (x, first))
        works = [dist.all_reduce(data, group=group, async_op=True) for data, group in order]
        return [work.wait() for work in works], x.tolist(), y.tolist()

    launched = launch(started(program), ranks=2)
    assert launched.results == [([True, True], [2], [2])] * 2
    assert launched.check().verdict == "PROVED"


def in_thread(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    thread.join(timeout=60)


def test_a_thread_that_a_rank_starts_may_ask_who_it_is():
    def program(rank):
        seen = []
        in_thread(lambda: seen.append((dist.is_initialized(), dist.get_rank(), dist.get_world_size())))
        in_thread(lambda: in_thread(lambda: seen.append(dist.get_rank())))
        return seen

    assert launch(started(program), ranks=2).results == [[(True, 0, 2), 0], [(True, 1, 2), 1]]
    seen = []
    in_thread(lambda: seen.append(dist.is_initialized()))  # of nobody's, and after the launch
    assert seen == [False]


@pytest.mark.parametrize("name", ["all_reduce", "wait() for all_reduce", "is_completed() of all_reduce"])
def test_a_thread_that_a_rank_starts_may_call_no_collective_and_nothing_is_judged(name):
    def program(rank):
        said, tensor = [], np.ones(2)
        work = None if name == "all_reduce" else dist.all_reduce(tensor, async_op=True)

        def asks():
            try:
                if name == "all_reduce":
                    dist.all_reduce(tensor)
                elif name.startswith("wait"):
                    work.wait()
                else:
                    work.is_completed()
            except MisuseError as error:
                said.append(str(error))

        in_thread(asks)
        return said

    launched = launch(started(program), ranks=2)
    for rank, (said,) in enumerate(launched.results):
        assert said.startswith(f"rank {rank}: {name} at ")
        assert "which the script started; asyncsim runs each rank as one thread" in said
    with pytest.raises(MisuseError, match=f"rank 0: {re.escape(name)} at .*test_torch_dist_session.py:"):
        launched.check()


def test_signal_handlers_are_noted_by_rank_and_never_set():
    def handler(number, frame):
        """Do nothing."""

    real, ours = signal.signal, signal.getsignal(signal.SIGTERM)

    def program(rank):
        first = signal.signal(signal.SIGTERM, handler if rank else signal.SIG_IGN)
        dist.barrier()
        for wrong, error in (((signal.SIGTERM, 7.5), TypeError), ((10_000, signal.SIG_IGN), ValueError)):
            with pytest.raises(error):
                signal.signal(*wrong)
        return first, signal.getsignal(signal.SIGTERM), signal.signal(signal.SIGTERM, signal.SIG_DFL)

    results = launch(started(program), ranks=2).results
    assert results == [(ours, signal.SIG_IGN, signal.SIG_IGN), (ours, handler, handler)]
    assert signal.signal is real
    assert signal.getsignal(signal.SIGTERM) is ours


def test_in_a_launch_the_main_thread_sets_real_handlers():
    before = signal.getsignal(signal.SIGUSR1)
    with handlers_by_rank():
        assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is before
        assert signal.signal(signal.SIGUSR1, before) is signal.SIG_IGN


def test_bad_choices_are_told_before_anything_runs():
    for wrong in ({"scheduler": "foo"}, {"memory": "foo"}):
        with pytest.raises(MisuseError, match="foo"):
            launch(list, ranks=2, **wrong)


def test_ctrl_c_ends_the_ranks_where_they_wait_and_leaves_the_process_as_it_was(monkeypatch):
    inside, go, ended, wait_for_all = threading.Event(), threading.Event(), [], Turns.join

    def program():
        inside.set()
        go.wait(60)
        try:
            dist.init_process_group()
        finally:
            ended.append(dist.is_initialized())

    def interrupted(turns):
        inside.wait(60)
        turns.stop()
        go.set()
        wait_for_all(turns)
        raise KeyboardInterrupt

    monkeypatch.setattr(Turns, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(program, ranks=3)
    assert ended == [False]  # the others had not begun
    assert "RANK" not in os.environ


def test_turns_that_nobody_can_take_are_a_bug_of_ours():
    turns = Turns(1, stuck=lambda: None, keep=lambda rank: None, bring=lambda rank: None)
    turns.begin()
    turns.enter(0)
    with pytest.raises(RuntimeError, match="nobody can go on"):
        turns.pause(0, lambda: False)


def test_ranks_that_all_poll_for_ever_are_stuck():
    def program(rank):
        group = [dist.new_group([0, 1]), dist.new_group([0, 1])][rank]
        work = dist.all_reduce(np.ones(1), group=group, async_op=True)
        while not work.is_completed():
            pass

    launched = launch(started(program), ranks=2)
    assert all("deadlock: in collective 0 of group_1 rank 0 calls" in str(error) for error in launched.errors)
    assert "rank 1 stands in all_reduce(" in str(launched.errors[0])
    assert launched.check().verdict == "REFUTED"


def test_a_launch_inside_a_trio_loop_works():
    async def outer():
        return launch(started(lambda rank: dist.barrier()), ranks=2).check().verdict

    assert trio.run(outer) == "PROVED"


def test_output_is_prefixed_by_rank_also_where_lines_come_in_pieces(tmp_path):
    (tmp_path / "script.py").write_text(
        "import sys, threading\nimport torch.distributed as dist\ndist.init_process_group()\n"
        "print('a', end=''); dist.barrier(); print('b\\nc')\nsys.stdout.writelines(['d', '\\n'])\n"
        "thread = threading.Thread(target=print, args=('e',)); thread.start(); thread.join()\n"
        "assert not sys.stdout.isatty()\n"
    )
    ran = run("torchrun", "-n", "2", "--prefix", str(tmp_path / "script.py"))
    lines = [f"[rank {rank}] {text}" for rank in range(2) for text in ("ab", "c", "d", "e")]
    assert ran.stdout.splitlines()[:8] == lines


def test_a_warning_names_the_scripts_line():
    def program(rank):
        group = dist.new_group([1])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dist.barrier(group=group)
        return [(warning.filename, warning.lineno) for warning in caught]

    line = program.__code__.co_firstlineno + 4
    assert launch(started(program), ranks=2).results == [[(__file__, line)], []]
