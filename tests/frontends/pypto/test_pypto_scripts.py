"""Sixteen scripts in the shape of PyPTO's tutorial: each prints ``OK``, and what asyncsim says of it.

Within one dispatch none of them races. A second dispatch on the same windows is another matter, which is the point:
`REUSED` is the table.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import NamedTuple

import pytest
from command import ROOT, run
from pypto_runs import SCRIPTS, run_script

ANY = None
"""A count that the table leaves open."""


def peers(P):
    """P - 1: everybody but one."""
    return P - 1


def ranks(P):
    """P: each with its neighbour."""
    return P


def each_with_each(P):
    """P(P - 1): a fast rank and a slow peer."""
    return P * (P - 1)


def ring(P):
    """2, 6, 16, 30: the reads that a rank leaves behind; see `kernels.ring`."""
    return P * (P - 1 + max(P - 3, 0))


CLEAN = {}


def war(count):
    """A next dispatch that overwrites what slow peers still read."""
    return {"WAR": count}


def war_and_raw(count, early=ANY):
    """The same, and waits that the credits of the first dispatch satisfy, because nobody gave them back."""
    return {"WAR": count, "RAW": early or count}


REUSED = {
    "01_hello_rank": {"hand": CLEAN},  # touches no window
    "02_programming_model": {"class": CLEAN, "function": CLEAN},  # has no window
    "03_window_buffer": {"bytes": CLEAN, "shape": CLEAN},  # touches its own alone
    "04_barrier": {"hand": war_and_raw(ranks), "builtin": war(ranks)},
    "05_remote_load_store": {"load": war_and_raw(ranks), "store": war_and_raw(ranks), "add": war_and_raw(ANY)},
    "06_put_get": {"put": war_and_raw(each_with_each), "get": war_and_raw(each_with_each)},
    "07_dynamic_rank_count": {"hand": war_and_raw(each_with_each)},
    "08_allreduce_mesh": {"hand": war_and_raw(each_with_each), "builtin": CLEAN},
    "09_allreduce_two_phase": {"hand": war(each_with_each), "builtin": CLEAN},
    "10_allreduce_ring": {"hand": war(ring), "builtin": CLEAN},
    "11_allreduce_reveal": {"mesh": CLEAN, "max": CLEAN, "ring": CLEAN},
    "12_broadcast": {"hand": war_and_raw(peers), "builtin": war(peers)},
    "13_allgather": {"hand": war(each_with_each), "builtin": war(each_with_each)},
    "14_reduce_scatter": {"hand": war_and_raw(each_with_each), "builtin": CLEAN},
    "15_all_to_all": {
        "hand": war_and_raw(each_with_each),
        "builtin": war(each_with_each),
        "counts": war(each_with_each),
    },
    "16_putting_it_together": {"hand": war_and_raw(ANY), "builtin": CLEAN, "loops": CLEAN},
}
"""Script -> mode -> hazard -> how many pairs, of a second dispatch on the same windows.

Clean are the composites that meet once more after they have read, and what leaves other ranks' windows alone.
"""


class Row(NamedTuple):
    """A script in one of its modes, at one number of ranks."""

    script: str
    mode: str
    ranks: int

    @property
    def path(self):
        """Where it lies."""
        return SCRIPTS / f"{self.script}.py"

    @property
    def arguments(self):
        """What the script is given."""
        return "-d", ",".join(map(str, range(self.ranks))), "--mode", self.mode

    @property
    def reused(self):
        """The hazards of a second dispatch, with their counts of pairs."""
        return {hazard: count and count(self.ranks) for hazard, count in REUSED[self.script][self.mode].items()}


def pairs_of(judged, row):
    """Count the pairs of each hazard of a second dispatch, except where the table leaves it open."""
    found = Counter()
    for finding in judged.reused["findings"]:
        if finding["kind"] == "race":
            found[finding["hazard"]] += finding["pairs"]
    return {hazard: ANY if hazard in row.reused and row.reused[hazard] is ANY else n for hazard, n in found.items()}


ROWS = [Row(script, mode, ranks) for script, modes in REUSED.items() for mode in modes for ranks in (2, 3, 4)]
ORDINARY = {row for number, row in enumerate(ROWS) if number // 3 % 3 == number % 3}
"""What an ordinary run takes: every mode at one number of ranks, by turns."""


@pytest.fixture(params=["numpy", "torch"])
def tensors(request, monkeypatch):
    """Choose what the scripts compute with."""
    if request.param == "torch":
        pytest.importorskip("torch")
    monkeypatch.setenv("TENSORS", request.param)
    return request.param


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.script}-{row.mode}-{row.ranks}")
def test_a_script_says_ok_and_is_judged(row, tensors, request, tmp_path):
    if row not in ORDINARY and not request.config.getoption("--thorough"):
        pytest.skip("with --thorough")
    judged = run_script(row.path, *row.arguments, folder=tmp_path)
    assert judged.status == 0, judged.output
    assert "OK" in judged.output.splitlines()
    assert judged.output.index("OK") < judged.output.index("PROVED")  # the script's own lines come first
    assert judged.dispatched["verdict"] == "PROVED"
    assert judged.dispatched["findings"] == []
    assert pairs_of(judged, row) == row.reused
    assert judged.reused["verdict"] == ("REFUTED" if row.reused else "PROVED")
    assert all(finding["harmful"] and finding["token"] for finding in judged.reused["findings"])


@pytest.mark.parametrize(
    "row",
    [Row("14_reduce_scatter", mode, 3) for mode in ("hand", "builtin")],
    ids=lambda row: f"{row.script}-{row.mode}-{row.ranks}",
)
def test_a_second_dispatch_counts_for_the_status_where_it_is_asked_for(row, tmp_path):
    judged = run_script(row.path, *row.arguments, options=["--calls", "2"], folder=tmp_path)
    assert judged.status == bool(row.reused)
    assert "OK" in judged.output.splitlines()


@pytest.mark.parametrize("script", REUSED)
def test_a_script_that_only_compiles_runs_nothing_and_has_no_verdict(script, tmp_path):
    result = run("pypto", str(SCRIPTS / f"{script}.py"), "--compile-only")
    assert result.exit_code == 0, result.output
    assert "OK" not in result.output
    assert "PROVED" not in result.output


def test_another_root_is_the_scripts_own_argument(tmp_path):
    judged = run_script(SCRIPTS / "12_broadcast.py", "-d", "0,1,2", "--root", "2", folder=tmp_path)
    assert judged.status == 0
    assert judged.dispatched["verdict"] == "PROVED"


@pytest.mark.parametrize("number", [1, 14])
def test_a_process_says_the_same_from_any_folder(number, tmp_path):
    row = next(row for row in ROWS if row.script.startswith(f"{number:02}"))
    relative = os.path.relpath(row.path, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TENSORS": "numpy"}
    command = [sys.executable, "-m", "asyncsim", "pypto", relative, *row.arguments]
    done = subprocess.run(  # noqa: S603 - ours
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stdout.splitlines()
    assert "PROVED" in done.stdout


def test_the_tutorials_own_listing_runs_and_is_judged(tmp_path):
    for mode in ("hand", "builtin"):
        row = Row("14_reduce_scatter", mode, 4)
        judged = run_script(ROOT / "kernels" / "pypto_reduce_scatter.py", *row.arguments, folder=tmp_path)
        assert judged.status == 0, judged.output
        assert "OK" in judged.output.splitlines()
        assert judged.dispatched["verdict"] == "PROVED"
        assert pairs_of(judged, row) == row.reused


def test_importing_the_listing_without_pypto_needs_nothing():
    code = "import kernels.pypto_reduce_scatter, sys; assert 'pypto' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=240)  # noqa: S603 - ours
