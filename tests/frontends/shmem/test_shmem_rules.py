"""Each rule of OpenSHMEM: the program that keeps it passes, the one that breaks it by a line is told."""

import pytest
from shmem_more_rules import FURTHER
from shmem_rules import RULES as SMALL
from shmem_scripts import SCRIPTS

from asyncsim import KernelError
from asyncsim.frontends.shmem.module import script

RULES = SMALL | FURTHER | SCRIPTS


def judged(path, ranks):
    """Return the verdict, the kinds of findings, and the message of a refusal."""
    program = script(str(path))
    with program.answered():
        try:
            program.follow(ranks, memory="nic", seed=0)
        except KernelError as error:
            return "", [], str(error)
        report = program.judge(ranks, memory="nic", races="all")
    return report.verdict, [finding.kind for finding in report.findings], ""


@pytest.mark.parametrize("name", RULES)
def test_the_program_that_keeps_a_rule_passes(name, tmp_path):
    rule, path = RULES[name], tmp_path / "kept.py"
    path.write_text(rule.program(broken=False), "utf-8")
    assert judged(path, rule.ranks) in [("PROVED", [], ""), ("EXHAUSTED", [], "")]


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.gives != "none"])
def test_the_program_that_breaks_it_is_told(name, tmp_path):
    rule, path = RULES[name], tmp_path / "broken.py"
    path.write_text(rule.program(broken=True), "utf-8")
    verdict, kinds, message = judged(path, rule.ranks)
    if verdict:
        assert verdict == "REFUTED"
        assert rule.gives in kinds
    else:
        assert rule.gives in message
