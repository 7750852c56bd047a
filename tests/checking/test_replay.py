"""Replay: the recorded run again, or the step at which it is another one."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from everything_late import late

from asyncsim import Case, DivergenceError, KernelError, MisuseError, Signal, Window, kernel, simulate
from asyncsim.checking.record.replay import replay
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.random import Random
from asyncsim.schedulers.table import make
from asyncsim.trace.event import Digest
from asyncsim.trace.finding import Finding
from asyncsim.trace.jsonl import read_trace, write_trace
from asyncsim.trace.token import Token, decode, encode
from kernels.reduce_scatter import builtin, no_post_barrier

data = Window("data", (2,), np.int32)
flag = Signal("flag", ("P",), np.int8)


@kernel(memory=[data, flag])
async def pair(rank, data, flag, *, first=1, hang=False, phase="work", more=0, fail="", wait=1, start=0):  # noqa: PLR0913
    """Rank 0 gives a number to rank 1; with arguments for all that can differ in a replay."""
    with rank.phase(phase):
        if rank.id == 0:
            await rank.store(data.at(1)[0], first)
            await rank.notify(flag.at(1)[0], wait)
            got = first
        else:
            await rank.wait(flag[0] >= wait)
            got = int(await rank.load(data[0]))
    if got == 9:
        await rank.store(data[1], 0)
    for _ in range(more):
        await rank.load(data[0])
    if fail == "late" or (fail == "early" and rank.id == 1):
        raise ValueError(fail)
    if hang:
        await rank.wait(flag[rank.id] >= 5)
    return np.asarray(got + start)


def recorded(program=pair, ranks=2, calls=1, scheduler=None, **options):
    return simulate(Case(program, ranks, calls, **options), scheduler or Fifo(), record="fifo").trace


def written(trace):
    stream = io.StringIO()
    write_trace(trace, stream)
    return stream.getvalue()


def from_file(trace):
    return read_trace(io.StringIO(written(trace)))


@pytest.mark.parametrize("program", [builtin, no_post_barrier, pair, pair.variant(name="pair", hang=True)])
def test_a_replay_of_a_trace_is_that_trace(program):
    trace = recorded(program, 2, 2, Random(seed=4))
    trace.header.scheduler = "random:seed=4"
    trace.footer.verdict = "REFUTED"
    trace.footer.findings = [{"kind": "race"}]
    for source in (trace, from_file(trace)):
        again = replay(source, program)
        assert written(again.run.trace) == written(trace)
        assert (again.steps, again.source_changed) == (len(trace.events), False)


async def test_a_replay_can_be_awaited():
    trace = (await simulate.aio(Case(pair, 2, 1), Fifo(), record="fifo")).trace
    assert (await replay.aio(trace, pair)).steps == 4


def test_a_run_that_was_cut_off_ends_where_it_did():
    trace = recorded(max_steps=3)
    assert trace.footer.ending == "step-limit"
    assert written(replay(trace, pair).run.trace) == written(trace)


def endless_or_cut(source, kernel=pair, **options):
    """Say whether a replay takes a record for one that was cut short; and what it leaves of a finding of its limit."""
    again = replay(source, kernel, **options)
    left = again.failures([Finding("step-limit", "it did not end"), Finding("race", "two stores")])
    assert [finding.kind for finding in left] == (["race"] if again.cut_short else ["step-limit", "race"])
    return "cut" if again.cut_short else "endless"


def test_a_record_that_is_shorter_than_its_case_allows_is_cut_short():
    trace = recorded(max_steps=3)
    assert endless_or_cut(trace) == endless_or_cut(from_file(trace)) == "cut"
    assert endless_or_cut(from_file(trace), max_steps=4) == "cut"
    assert endless_or_cut(from_file(trace), max_steps=3) == "endless"
    assert not replay(recorded(), pair).cut_short
    trace.footer = None
    assert endless_or_cut(trace) == "cut"


def test_a_trace_that_was_judged_endless_stays_so():
    trace = recorded(max_steps=3)
    trace.footer.findings = [{"kind": "race"}]
    assert endless_or_cut(from_file(trace)) == "cut"
    trace.footer.findings.append({"kind": "step-limit"})
    assert endless_or_cut(from_file(trace)) == "endless"


def test_a_token_knows_the_limit_that_a_case_had_of_its_own():
    trace = recorded(max_steps=3)
    token = Token.of(trace.header, trace.choices, ending="step-limit")
    assert token.limit == 3
    assert decode(encode(token)) == token
    assert endless_or_cut(token) == "endless"
    assert endless_or_cut(replace(token, limit=None)) == endless_or_cut(replace(token, limit=4)) == "cut"
    assert Token.of(trace.header, trace.choices, ending="stopped").limit is None


def test_a_run_as_long_as_its_case_allows_is_endless():
    @kernel(memory=[Window("word", (1,), np.int32, initialised=True)])
    async def spins(rank, word):
        while True:
            await rank.load(word[0])

    limit = Case(spins, 1, 1).step_limit
    token = Token.of(Case(spins, 1, 1).header("fifo"), ["0"] * limit, ending="step-limit")
    assert token.limit is None
    assert endless_or_cut(token, spins, engine="direct") == "endless"


def test_an_overflow_is_replayed():
    program = pair.variant(name="pair", wait=100)
    trace = recorded(program, 2, 2)
    assert trace.footer.ending == "overflow"
    assert written(replay(from_file(trace), program).run.trace) == written(trace)


def test_a_trace_without_an_end_is_replayed_as_far_as_it_goes():
    trace = recorded()
    trace.footer = None
    del trace.events[3:]
    again = replay(trace, pair)
    assert again.steps == 3
    assert written(again.run.trace) == written(trace)


def test_a_kernel_that_raised_raises_again():
    program = pair.variant(name="pair", fail="late")
    with pytest.raises(KernelError) as caught:
        recorded(program)
    trace = caught.value.trace
    with pytest.raises(KernelError) as again:
        replay(from_file(trace), program)
    assert written(again.value.trace) == written(trace)
    with pytest.raises(KernelError):
        replay(Token.of(trace.header, trace.choices, ending="stopped"), program)


def test_a_run_that_stopped_may_go_on_only_if_it_was_interrupted():
    trace = recorded()
    del trace.events[3:]
    trace.footer.ending = "stopped"
    assert written(replay(trace, pair).run.trace) == written(trace)
    trace.header.source = "0" * 16
    with pytest.raises(DivergenceError, match=r"step 3: the recorded run stopped here; this one goes on"):
        replay(trace, pair)
    trace = recorded()
    trace.footer.ending = "stopped"
    with pytest.raises(DivergenceError, match=r"step 4: the recorded run stopped here; this one ended \(complete\)"):
        replay(trace, pair)


def test_a_changed_file_is_said_and_its_lines_are_not_compared():
    trace = recorded()
    trace.header.source = "0" * 16
    trace.events[1].at = ("elsewhere.py:1",)
    assert replay(trace, pair).source_changed
    assert replay(Token.of(trace.header, trace.choices), pair).source_changed


@pytest.mark.parametrize(
    ("changes", "step", "reason"),
    [
        ({"first": 2}, 0, "remote_store to data[0]@1: the value differs; recorded: [1]; met: [2]"),
        ({"first": 9}, 0, "the value differs; recorded: [1]; met: [9]"),
        ({"phase": "play"}, 0, "the phase differs; recorded: work; met: play"),
        ({"wait": 2}, 1, "the operation differs"),
        ({"more": 1}, 4, "the schedule ends here, after 4 steps, but the run goes on"),
        ({"hang": True}, 4, "the ending differs; recorded: complete; met: deadlock"),
        ({"start": 1}, 4, "the output of rank 0 in call 0 differs"),
        ({"fail": "late"}, 2, "the recorded run did not fail here; this one did: rank 0 failed"),
    ],
)
def test_another_kernel_diverges_at_the_step_where_it_differs(changes, step, reason):
    trace = from_file(recorded())
    with pytest.raises(DivergenceError) as caught:
        replay(trace, pair.variant(**changes))
    if "operation" in reason:
        assert "recorded: notify flag[0]@1 += 1; met: notify flag[0]@1 += 2" in caught.value.reason
    else:
        assert reason in caught.value.reason
    assert caught.value.step == step


def test_a_value_is_blamed_before_the_operation_that_it_leads_to():
    trace = recorded()
    trace.events[3].data = np.int32(9).tobytes()
    trace.events.append(trace.events[0])
    with pytest.raises(DivergenceError, match=r"step 3: actor 1, load of data\[0\]@1: the value differs"):
        replay(trace, pair)


def altered(change):
    trace = recorded()
    change(trace)
    return trace


def set_output(trace):
    trace.footer.outputs[0][1] = "0" * 16


@pytest.mark.parametrize(
    ("change", "step", "reason"),
    [
        (lambda trace: setattr(trace.events[1], "at", ("x:1",)), 1, "the source line differs; recorded: x:1; met: "),
        (lambda trace: setattr(trace.events[1], "call", 1), 1, "the call differs; recorded: 1; met: 0"),
        (lambda trace: setattr(trace.events[2], "have", 4), 2, "the cell's value differs; recorded: 4; met: 1"),
        (lambda trace: setattr(trace.events[3], "unwritten", True), 3, "unwritten differs"),
        (lambda trace: setattr(trace.events[3], "data", Digest("0" * 16, 17)), 3, "the value differs"),
        (lambda trace: setattr(trace.footer, "pending", trace.events[:1]), 4, "pending at the end differs"),
        (set_output, 4, "the output of rank 1 in call 0 differs; recorded: 0000000000000000; met: "),
        (lambda trace: trace.events.append(trace.events[3]), 4, "went on for 1 steps; this one ended (complete)"),
        (lambda trace: trace.events.pop(), 3, "the schedule ends here, after 3 steps"),
    ],
)
def test_a_record_that_was_altered_diverges_where_it_was(change, step, reason):
    with pytest.raises(DivergenceError) as caught:
        replay(altered(change), pair)
    assert reason in caught.value.reason
    assert caught.value.step == step


def test_a_value_that_was_not_recorded_is_not_compared():
    trace = altered(lambda trace: setattr(trace.events[3], "data", None))
    trace.footer.outputs = []
    assert replay(trace, pair).steps == 4


def test_another_pending_operation_is_a_divergence():
    program = pair.variant(name="pair", hang=True)
    trace = recorded(program)
    trace.footer.pending[0].have = 3
    with pytest.raises(DivergenceError, match=r"what is pending at the end differs; recorded: 0 \(wait"):
        replay(trace, program)


def test_other_memory_is_a_divergence_before_the_first_step():
    other = pair.variant(memory=[data, Signal("flag", ("P",), np.int8, start=1)])
    with pytest.raises(DivergenceError, match="step 0: the memory differs"):
        replay(recorded(), other)


def test_edits_that_are_none_and_unknown_memory_models_are_refused():
    trace = recorded()
    trace.header.edits = ("skip a.py",)
    with pytest.raises(MisuseError, match=r"'skip a\.py' is no edit"):
        replay(trace, pair)
    trace.header.edits, trace.header.memory = (), "weird"
    with pytest.raises(MisuseError, match="memory='weird'"):
        replay(trace, pair)


@pytest.mark.parametrize("ending", [None, "complete"])
def test_a_token_is_a_schedule_that_must_fit(ending):
    trace = recorded(no_post_barrier, 2, 2, Random(seed=2))
    token = Token.of(trace.header, trace.choices, ending=ending)
    run = replay(token, no_post_barrier).run
    assert run.choices == trace.choices
    assert run.trace.header.scheduler == "replay"
    for choices, step in ((trace.choices[:-1], 35), ([*trace.choices, "0"], 36), (["7"], 0)):
        with pytest.raises(DivergenceError) as caught:
            replay(Token.of(trace.header, choices, ending=ending), no_post_barrier)
        assert caught.value.step == step


def test_a_token_knows_how_the_run_ended():
    trace = recorded()
    assert replay(Token.of(trace.header, trace.choices[:2], ending="step-limit"), pair).steps == 2
    with pytest.raises(DivergenceError, match="step 4: the ending differs; recorded: deadlock; met: complete"):
        replay(Token.of(trace.header, trace.choices, ending="deadlock"), pair)


@pytest.mark.parametrize("options", [{"memory": "sc"}, {"memory": "ldst"}, {"memory": "nic:atom=5"}])
@pytest.mark.parametrize("text", ["fifo", "random:seed=4", "pct:seed=1", "starve:rank=0"])
def test_a_run_with_streams_and_landings_is_replayed(text, options):
    trace = recorded(late, scheduler=make(text), **options)
    for source in (trace, from_file(trace)):
        assert written(replay(source, late).run.trace) == written(trace)
    token = decode(encode(Token.of(trace.header, trace.choices, ending="complete")))
    again = replay(token, late).run.trace
    again.header.scheduler = trace.header.scheduler
    assert written(again) == written(trace)


@pytest.mark.parametrize("steps", [1, 12, 30])
def test_a_run_with_landings_that_was_cut_off_is_replayed(steps):
    trace = recorded(late, scheduler=Random(3), memory="nic", max_steps=steps)
    assert trace.footer.ending == "step-limit"
    assert any(event.op.actor.wire for event in trace.footer.pending) or steps == 1
    assert written(replay(from_file(trace), late).run.trace) == written(trace)


def test_another_memory_model_is_a_divergence():
    trace = recorded(late, scheduler=Random(3), memory="nic")
    for model in ("sc", "ldst:atom=3"):
        trace.header.memory = model
        with pytest.raises(DivergenceError, match=r"step \d+"):
            replay(trace, late)


@pytest.mark.parametrize(
    ("kind", "change"),
    [("land", "link"), ("sync", "amount"), ("put", "late"), ("notify", "relaxed"), ("put_signal", "amount")],
)
def test_every_part_of_an_operation_is_compared(kind, change):
    trace = recorded(late, memory="nic")
    value = {"link": "x", "amount": 5}.get(change, True)
    event = next(e for e in trace.events if e.op.kind == kind and getattr(e.op, change) != value)
    setattr(event.op, change, value)
    with pytest.raises(DivergenceError) as caught:
        replay(trace, late)
    assert caught.value.step == event.step


def test_a_trace_does_not_depend_on_the_process():
    program = (
        "import sys\n"
        "from test_replay import late, make, recorded, written\n"
        "for text in ('fifo', 'random:seed=3', 'pct:seed=3', 'pos:seed=3', 'surw:seed=3'):\n"
        "    sys.stdout.write(written(recorded(late, scheduler=make(text), memory='nic:atom=5')))\n"
    )
    printed = {
        subprocess.run(  # noqa: S603 - this interpreter, on the text above
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, check=True, text=True, timeout=240
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    (text,) = printed
    assert text.startswith(written(recorded(late, memory="nic:atom=5")))
    for one in text.split('{"event":"header"')[1:]:
        trace = read_trace(io.StringIO('{"event":"header"' + one))
        assert written(replay(trace, late).run.trace) == '{"event":"header"' + one


def test_the_given_kernel_is_run_and_no_other():
    assert isinstance(pair, Kernel)
    trace = recorded()
    trace.header.kernel = "os:system"
    assert replay(trace, pair).run.case.kernel is pair
