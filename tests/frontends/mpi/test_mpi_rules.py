"""Each rule of MPI's windows: the program that keeps it passes, the one that breaks it by a line is told."""

import pytest
from mpi_accumulates import ACCUMULATES
from mpi_completion import COMPLETION
from mpi_rules import RULES as SMALL
from mpi_rules import program
from mpi_scripts import SCRIPTS
from mpi_shared import SHARED

from asyncsim import KernelError
from asyncsim.frontends.mpi.module import script

RULES = SMALL | COMPLETION | ACCUMULATES | SHARED | SCRIPTS


def judged(path):
    """Return the verdict, the kinds of findings, and the message of a refusal."""
    made = script(str(path))
    with made.answered():
        try:
            made.follow(2, memory="nic", seed=0)
        except KernelError as error:
            return "", [], str(error)
        report = made.judge(2, memory="nic", races="all")
    return report.verdict, [finding.kind for finding in report.findings], ""


@pytest.mark.parametrize("name", RULES)
def test_the_program_that_keeps_a_rule_passes(name, tmp_path):
    path = tmp_path / "kept.py"
    path.write_text(program(RULES[name][0], broken=False), "utf-8")
    assert judged(path) in [("PROVED", [], ""), ("EXHAUSTED", [], "")]


@pytest.mark.parametrize("name", RULES)
def test_the_program_that_breaks_it_is_told(name, tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(program(RULES[name][0], broken=True), "utf-8")
    verdict, kinds, message = judged(path)
    if verdict:
        assert verdict == "REFUTED"
        assert RULES[name][1] in kinds
    else:
        assert RULES[name][1] in message
