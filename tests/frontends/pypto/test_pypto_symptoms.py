"""What step 14 does when it is wrong: its own golden fails, its status is passed on, and reports point to its lines."""

from __future__ import annotations

import shutil

import pytest
from pypto_runs import SCRIPTS, run_script

SCRIPT = SCRIPTS / "14_reduce_scatter.py"
SOURCE = SCRIPT.read_text("utf-8")
LOAD_OWN = "acc = pl.load(data, [my_rank, 0], [1, SIZE])"
LOAD_PEER = "recv = pld.tile.remote_load(data, peer=peer, offsets=[my_rank, 0], shape=[1, SIZE])"
STAGE = "data = pl.store(chunk, [c, 0], data)"
WAIT = "pld.system.wait(signal, offsets=[src, 0], expected=1, cmp=pld.WaitCmp.Ge)"


def line_of(text, source=SOURCE):
    """Return the number of the first line that holds `text`."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)


@pytest.fixture
def variant(tmp_path, monkeypatch):
    """Return what writes a variant of the script beside a copy of `tensors.py`, and runs it."""
    monkeypatch.setenv("TENSORS", "numpy")
    shutil.copy(SCRIPTS / "tensors.py", tmp_path)

    def run_variant(*changes, arguments=("-d", "0,1"), options=()):
        source = SOURCE
        for old, new in changes:
            assert old in source
            source = source.replace(old, new, 1)
        script = tmp_path / "variant.py"
        script.write_text(source, "utf-8")
        return run_script(script, *arguments, options=options, folder=tmp_path)

    return run_variant


SYMPTOMS = {
    "the accumulator is seeded with zeros": [(LOAD_OWN, "acc = pl.mul(pl.load(data, [my_rank, 0], [1, SIZE]), 0.0)")],
    "the row is fixed to 0": [
        (LOAD_OWN, LOAD_OWN.replace("my_rank", "0")),
        (LOAD_PEER, LOAD_PEER.replace("my_rank", "0")),
    ],
    "the offset of a chunk is wrong": [("chunk = pl.load(x, [0, c * SIZE]", "chunk = pl.load(x, [0, c * (SIZE - 1)]")],
}


@pytest.mark.parametrize("symptom", SYMPTOMS)
def test_a_wrong_result_is_the_scripts_own_failure_and_its_status_is_passed_on(symptom, variant):
    judged = variant(*SYMPTOMS[symptom])
    assert judged.status == 1
    assert "FAILED: rank" in judged.output
    assert "OK" not in judged.output.splitlines()
    assert judged.dispatched["verdict"] == "PROVED"  # always the same wrong result: nothing is wrong with the order


def test_another_order_of_adding_is_equal_within_tolerance_and_not_bit_for_bit(variant):
    fractions = ("inputs = inputs.reshape(nr, 1, width)", "inputs = inputs.reshape(nr, 1, width) / 7")
    shown = ('print("OK")', 'print("OK")\n    print([float(value) for value in outputs.reshape(-1)])')
    loop = f"for peer in pl.range(nr):\n{' ' * 16}if peer != my_rank:\n{' ' * 20}{LOAD_PEER}"
    descending = (loop, loop.replace("pl.range(nr)", "pl.range(nr - 1, -1, -1)"))
    ascending = variant(fractions, shown, arguments=("-d", "0,1,2"))
    other = variant(fractions, shown, descending, arguments=("-d", "0,1,2"))
    assert ascending.status == other.status == 0
    assert ascending.dispatched["verdict"] == other.dispatched["verdict"] == "PROVED"
    sums, others = (next(line for line in each.output.splitlines() if line[0:1] == "[") for each in (ascending, other))
    assert sums != others


def test_an_operator_that_is_not_lowered_is_refused_in_upstreams_words(variant):
    change = ("reduce_scatter(data, signal, op=pld.ReduceOp.Sum)", "reduce_scatter(data, signal, op=pld.ReduceOp.Min)")
    judged = variant(change, arguments=("-d", "0,1,2", "--mode", "builtin"))
    assert judged.status == 2
    assert (
        "pld.tensor.reduce_scatter op must be ReduceOp.Sum (got int 2); "
        "Max / Min / Prod lowerings are not yet implemented" in " ".join(judged.output.split())
    )
    assert f"variant.py:{line_of('reduce_scatter(data, signal')}" in judged.output


def test_a_race_report_points_to_the_two_lines_of_the_script(variant):
    judged = variant()
    assert judged.status == 0
    assert judged.reused["verdict"] == "REFUTED"
    for text in (STAGE, LOAD_PEER):
        assert f"variant.py:{line_of(text)}" in judged.output
        assert text in judged.output


def test_a_deadlock_points_to_the_line_that_waits(variant):
    judged = variant((WAIT, WAIT.replace("expected=1", "expected=2")))
    assert judged.status == 1
    assert judged.dispatched["verdict"] == "REFUTED"
    assert [finding["kind"] for finding in judged.dispatched["findings"]] == ["deadlock"]
    assert f"variant.py:{line_of('pld.system.wait')}" in judged.output


def test_an_exception_in_a_kernel_points_to_its_line(variant):
    judged = variant((LOAD_OWN, f"{LOAD_OWN} if my_rank != 1 else [][0]"))
    assert judged.status not in (0, 3)
    assert (
        f'variant.py", line {line_of(LOAD_OWN)}' in judged.output or f"variant.py:{line_of(LOAD_OWN)}" in judged.output
    )
    assert "IndexError" in judged.output


def test_a_failure_of_the_script_itself_is_passed_on_with_its_status(variant):
    judged = variant(('print("OK")\n    return 0', 'print("OK")\n    return 7'))
    assert judged.status == 7
    assert judged.dispatched["verdict"] == "PROVED"


def test_a_race_inside_a_composite_points_to_the_line_that_calls_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORS", "numpy")
    script = SCRIPTS / "12_broadcast.py"
    judged = run_script(script, "-d", "0,1,2", "--mode", "builtin", folder=tmp_path)
    (race,) = judged.reused["findings"]
    read = next(side for side in race["sides"] if side["op"] == "get")
    assert read["file"].endswith("12_broadcast.py")
    assert read["line"] == line_of("pld.tensor.broadcast(", script.read_text("utf-8"))
    assert read["composite"].partition(":")[0].endswith("broadcast.py")


def test_the_witness_of_a_reused_window_replays(variant):
    judged = variant()
    token = judged.reused["findings"][0]["token"]
    again = variant(options=["--replay", token])
    assert again.status == 1
    assert "instead of" in again.output
