"""Scripts for what upstream's own tests use beyond the tutorial: each right, and with one fault."""

from __future__ import annotations

import json

import pytest
from command import run
from pypto_runs import SCRIPTS

FEATURES = {
    "17_host_collectives": "RAW",
    "18_carried_values": "RAW",
    "19_reading_cells": None,
    "20_prepared": "RAW",
    "21_tiles_and_slices": "RAW",
    "22_chunks_and_groups": "RAW",
}
"""Script -> the hazard that its fault shows; None: it shows in the result alone."""


def judged(script, ranks, *arguments, folder):
    """Run a script; return the result of the command, and the report of its first program as it was dispatched."""
    report = folder / "report.json"
    devices = ",".join(map(str, range(ranks)))
    result = run("pypto", "--json", str(report), str(SCRIPTS / f"{script}.py"), "-d", devices, *arguments)
    return result, json.loads(report.read_text("utf-8"))["programs"][0]["as_dispatched"]


@pytest.fixture(params=[2, 3, 4])
def ranks(request):
    """Give each number of ranks; an ordinary run takes one a script, by turns."""
    number = list(FEATURES).index(request.node.callspec.params["script"])
    if number % 3 + 2 != request.param and not request.config.getoption("--thorough"):
        pytest.skip("with --thorough")
    return request.param


@pytest.mark.parametrize("script", FEATURES)
def test_a_script_that_is_right_says_ok_and_is_proved(script, ranks, tmp_path):
    result, report = judged(script, ranks, folder=tmp_path)
    assert result.exit_code == 0, result.output
    assert "OK" in result.output.splitlines()
    assert report["verdict"] == "PROVED"


@pytest.mark.parametrize(("script", "hazard"), FEATURES.items())
def test_its_fault_is_found(script, hazard, ranks, tmp_path):
    result, report = judged(script, ranks, "--broken", folder=tmp_path)
    assert result.exit_code == 1, result.output
    assert report["verdict"] == "REFUTED"
    first = report["findings"][0]
    assert first["harmful"]
    assert first.get("hazard") == hazard


def test_of_a_script_that_fails_in_every_schedule_it_is_said_that_order_is_not_the_fault(tmp_path):
    script = tmp_path / "wrong.py"
    text = (SCRIPTS / "22_chunks_and_groups.py").read_text("utf-8")
    script.write_text(text.replace("np.roll(x[:GROUP], 1, 0)", "x[:GROUP]"), "utf-8")
    result = run("pypto", str(script))
    assert result.exit_code == 1
    assert "the script failed, and every schedule of host gives the results that it saw" in result.output
    assert "the script failed" not in run("pypto", str(script), "--broken").output
