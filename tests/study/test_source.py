"""The file of a kernel as text: what cannot be changed is said, and what can is changed as it stands there."""

from __future__ import annotations

import planted
import pytest
from repairs import looked_for

from asyncsim import Signal, kernel
from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.study.source import Change, Source, UnreadableError, overlap
from asyncsim.trace.finding import PROVED

MISTAKE = '''"""A kernel with nothing before its end."""
import numpy as np
from asyncsim import Window, kernel
{more}
box = Window("box", (1,), np.float32)


def golden(xs): return [xs[rank - 1] for rank in range(len(xs))]


@kernel(memory=[box], inputs=lambda P, call, rng: rng.standard_normal((P, 1), np.float32), golden=golden)
async def shift(rank, x, box):
    left = (rank.id - 1) % rank.size
    {statement}
    return await rank.load(box.at(left)[:])
'''
STORE = "await rank.store(box[:], x)"


def written(folder, more="", statement=STORE, *, newline="\n"):
    file = folder / "mistake.py"
    file.write_bytes(MISTAKE.format(more=more, statement=statement).replace("\n", newline).encode())
    return locate(f"{file}:shift")


def test_a_file_with_line_ends_of_windows_keeps_them(tmp_path):
    audited = looked_for(written(tmp_path, newline="\r\n"), ranks=3)
    source = Source(audited.report.case.kernel)
    at = next(iter(source.statements(source.program)))
    assert source.before(at, ["pass"]).text == "    pass\r\n"
    assert "\r" not in audited.repairs[0].diff


def test_a_signal_is_imported_where_it_is_not_known(tmp_path):
    audited = looked_for(written(tmp_path), ranks=3)
    assert "+from asyncsim import Signal\n" in audited.repairs[0].diff


def test_what_the_file_prints_is_not_printed_again(tmp_path, capsys):
    made = written(tmp_path, 'print("loaded")')
    assert capsys.readouterr().out == "loaded\n"
    assert looked_for(made, ranks=2).repairs
    assert capsys.readouterr().out == ""


def test_a_file_that_repairs_its_own_kernel_does_not_go_on_for_ever(tmp_path):
    more = "from asyncsim.study.source import Source, UnreadableError\n"
    end = "try: note = Source(shift) and ''\nexcept UnreadableError as error: note = str(error)\n"
    file = tmp_path / "own.py"
    file.write_text(MISTAKE.format(more=more, statement=STORE) + end, "utf-8")
    made = locate(f"{file}:shift")
    assert made.program.__globals__["note"] == ""
    again = Source(made).load([])
    assert again.program.__globals__["note"] == "it stands in a file that is changed already"


@pytest.mark.parametrize("statement", [STORE + "; left += 0", f"if x is not None: {STORE}"])
def test_what_shares_a_line_is_not_taken_apart(tmp_path, statement):
    source = Source(written(tmp_path, statement=statement))
    inside = [made for made in source.statements(source.program) if made.parents]
    assert inside == []


def test_every_block_of_a_statement_is_looked_into(tmp_path):
    statement = (
        f"try:\n        {STORE}\n    except ValueError:\n        pass\n    finally:\n        x = x\n"
        "    match left:\n        case 0:\n            left = 0 + left\n"
        "    if left == 1:\n        x = +x\n    elif left == 2:\n        x = 1 * x\n    else:\n        x = x * 1"
    )
    source = Source(written(tmp_path, statement=statement))
    inside = [source.lines[made.first - 1].strip() for made in source.statements(source.program) if made.parents]
    assert inside == [STORE, "x = x", "pass", "left = 0 + left", "x = +x"]  # an elif cannot be moved


def test_columns_count_bytes(tmp_path):
    source = Source(written(tmp_path, statement=f'x = {{"é": x}}["é"]; {STORE}'))
    store = source.program.body[2]
    assert source.words(store.value) == STORE


# ---- what cannot be changed


def reason(made):
    with pytest.raises(UnreadableError) as raised:
        Source(made)
    return str(raised.value)


def test_a_file_that_has_changed_is_left_as_it_is(tmp_path):
    made = written(tmp_path)
    written_later = tmp_path / "mistake.py"
    written_later.write_text(written_later.read_text("utf-8") + "\n", "utf-8")
    assert reason(made) == "its file has changed since it was loaded"
    assert looked_for(made, ranks=2).unrepaired == "none was looked for: its file has changed since it was loaded"


def test_a_file_that_is_gone_cannot_be_read(tmp_path):
    made = written(tmp_path)
    (tmp_path / "mistake.py").unlink()
    assert reason(made).startswith("its file cannot be read: ")


def test_a_script_that_is_run_is_not_run_again(monkeypatch):
    monkeypatch.setitem(planted.bare.program.__globals__, "__name__", "__main__")
    monkeypatch.setitem(planted.bare.program.__globals__, "__spec__", None)
    assert reason(planted.bare).startswith("it stands in the script that is run")


def test_a_file_that_runs_only_once_is_told(tmp_path):
    more = "import sys\nif 'ran_once' in sys.modules: sys.exit()\nsys.modules['ran_once'] = sys"
    source = Source(written(tmp_path, more))
    with pytest.raises(UnreadableError, match="its file cannot be run again: SystemExit"):
        source.load([])
    del __import__("sys").modules["ran_once"]


def test_a_change_after_which_there_is_no_kernel_is_none(tmp_path):
    source = Source(written(tmp_path))
    end = len(source.text)
    with pytest.raises(UnreadableError, match="it is not a kernel when its file is run again"):
        source.load([Change(end, end, "shift = None\n")])


def test_changes_inside_what_is_taken_away_overlap():
    assert overlap([Change(0, 5, ""), Change(3, 3, "x")])
    assert not overlap([Change(0, 5, ""), Change(5, 5, "x"), Change(0, 0, "y")])


# ---- a signal that nobody waits for


@pytest.mark.parametrize("ranks", [2, 40])
def test_a_signal_that_nobody_waits_for_is_noted(ranks):
    @kernel(memory=[Signal("heard", (1,)), Signal("lost", (1,)), Signal("own", (1,))])
    async def lonely(rank, heard, lost, own):
        right = (rank.id + 1) % rank.size
        await rank.notify(own[0], 1)
        await rank.notify(lost.at(right)[0], 1)
        await rank.notify(heard.at(right)[0], 1)
        await rank.wait(heard[0] >= rank.call + 1)

    report = check(lonely, ranks=ranks, calls=1)
    assert report.verdict == PROVED
    line = lonely.program.__code__.co_firstlineno + 4
    said = f"signal lost is notified, first at test_source.py:{line}, and no rank waits for it or tests it"
    assert [note for note in report.notes if "no rank waits" in note] == [said]
    assert report.steps == 4 * ranks


def test_of_a_run_that_hangs_nothing_is_said_of_who_did_not_come_to_wait():
    @kernel(memory=[Signal("never", (1,)), Signal("later", (1,))])
    async def hangs(rank, never, later):
        await rank.notify(later.at((rank.id + 1) % rank.size)[0], 1)
        await rank.wait(never[0] >= 1)
        await rank.wait(later[0] >= 1)

    assert not any("no rank waits" in note for note in check(hangs, ranks=2, calls=1).notes)
