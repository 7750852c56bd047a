"""The exchange that is compared with Pallas is right, and its broken variant is found from any run."""

from __future__ import annotations

import sys

import bench_pallas
import pytest
from bench_pallas import Pallas, analysed, exchange, explored, main, off_by_one, raced

from asyncsim import check
from asyncsim.machine.case import Case


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_exchange_is_proved_and_its_variant_refuted_as_it_says(ranks):
    assert check(exchange, ranks=ranks).verdict == "PROVED"
    report = check(off_by_one, ranks=ranks)
    assert report.verdict == "REFUTED"
    assert any(expected.matches(finding, ranks) for expected in off_by_one.finds for finding in report.findings)


def test_the_barrier_that_is_off_by_one_is_found_in_every_run():
    assert raced(Case(off_by_one, 4), 20) == 20
    assert raced(Case(exchange, 4), 5) == 0


def test_what_is_measured_is_the_correct_exchange():
    case = Case(exchange, 2)
    assert explored(case, 2) > 0
    assert analysed(case, 2) > 0
    with pytest.raises(RuntimeError, match="has a finding"):
        analysed(Case(off_by_one, 2), 2)


def test_without_jax_nothing_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bench_pallas.py"])
    main()
    assert capsys.readouterr().out.startswith("not measured: give --install")


def test_a_worker_that_fails_says_what_may_be_missing(tmp_path, monkeypatch):
    worker = tmp_path / "worker.py"
    worker.write_text("raise SystemExit(3)\n")
    monkeypatch.setattr(bench_pallas, "WORKER", worker)
    with pytest.raises(RuntimeError, match="ended with status 3; is jax"):
        Pallas(sys.executable, 2)
