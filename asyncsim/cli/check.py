"""``asyncsim check``: prove or refute, from one run."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from asyncsim.checking.record.interrupts import interrupts_stay_masked
from asyncsim.checking.record.locate import import_shipped
from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.explore import MOST_RUNS
from asyncsim.cli.certify import write_certificate
from asyncsim.cli.completion import complete_kernels
from asyncsim.cli.judge import judge_all
from asyncsim.cli.options import RANKS, Options, Whole, engine_option, races_option, shared_options_of_check
from asyncsim.cli.outputs import check_outputs
from asyncsim.cli.progress import memory_watched
from asyncsim.trace.finding import PROVED, REFUTED
from asyncsim.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from asyncsim.checking.verdict.explore import Progress
    from asyncsim.checking.verdict.report import Report
    from asyncsim.machine.kernel import Kernel
    from asyncsim.machine.simulate import Engine


@click.command("check")
@click.argument("kernels", metavar="KERNEL...", nargs=-1, shell_complete=complete_kernels)
@click.option("--all", "corpus", type=click.Choice(["field"]), help="Judge a whole corpus against what it must give.")
@click.option("--explain", is_flag=True, help="Say for each cell why counting its credits was enough, or why not.")
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a proof that `asyncsim certify` checks; of one kernel at one P.",
)
@click.option(
    "--budget", type=Whole(min=0, max=MOST_RUNS), metavar="N",
    help="How many executions may be explored where one run does not decide; 0: none.  "
    "[default: a few seconds' worth, at most 2000]",
)  # fmt: skip
@races_option
@engine_option
@shared_options_of_check
@click.pass_context
def check_command(  # noqa: PLR0913 - one argument an option
    ctx: click.Context,
    kernels: tuple[str, ...],
    *,
    corpus: str | None,
    explain: bool,
    certificate: Path | None,
    budget: int | None,
    races: str,
    engine: Engine | None,
    options: Options,
) -> None:
    """Prove or refute a kernel from one run.

    KERNEL is module:name, the short name of a kernel that `asyncsim list` shows, or file.py:name.

    At several P, a line tells the verdict of each, and one report is shown in full: the first that refutes, else
    the one that says least. A P that the kernel refuses is told, and left out.

    Time and memory grow with the operations of one run: from 32 ranks on it takes at most 400 bytes an
    operation and 56 MB, if windows and inputs are small. At 1024 ranks, two calls of reduce_scatter:builtin are
    14.7 million operations: 5.9 GB at most.
    Who watches is shown how far it is; Ctrl-C ends it early and reports what was found until then.

    \b
    Examples:
        asyncsim check reduce_scatter:builtin
        asyncsim check reduce_scatter:no_post_barrier -P 2,3,4,8 --save witnesses
        asyncsim check my_kernels.py:all_reduce -d 0,1 --calls 1 --json
        asyncsim check my_kernels.py:spin --calls 1 --budget 50000
        asyncsim check --all field
    """  # noqa: D301 - click keeps the lines after a backspace as they are
    if corpus is not None:
        if kernels or certificate is not None:
            raise click.UsageError(
                "--all judges a corpus, each case as it is meant; give it no kernel or --certificate"
            )
        ctx.exit(_show_field(seed=options.seed, as_json=options.json))
    if not kernels:
        raise click.UsageError(
            "which kernel? Give one: asyncsim check reduce_scatter:builtin (asyncsim list shows all)"
        )
    if certificate is not None and not options.chosen:
        options = replace(options, ranks=RANKS)
    if certificate is not None and (len(kernels) > 1 or len(options.ranks) > 1):
        raise click.UsageError("--certificate is of one kernel at one P")
    reports: list[Report] = []

    def judge(kernel: Kernel, ranks: int, progress: Callable[[Progress], None] | None) -> Report:
        check_outputs({"--certificate": certificate}, kernels=[kernel])
        with memory_watched(progress) as told:
            report = check(
                kernel,
                ranks=ranks,
                calls=options.calls,
                memory=options.memory,
                seed=options.seed,
                engine=engine,
                budget=budget,
                races=races,
                save=options.save,
                progress=told,
            )
        reports.append(report)
        return report

    with interrupts_stay_masked():  # once Ctrl-C has ended a check, another must not lose its report
        status = judge_all(kernels, options, judge, explain=explain)
    if certificate is not None:
        write_certificate(reports[0], certificate)
    ctx.exit(status)


NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class _JudgedForm:
    """One form of one case, and what was found in it.

    Args:
        number: of the case: "F01".
        title: the mistake.
        form: "buggy" or "fixed".
        expected: the finding that it must give, in words; "nothing" for a fixed form.
        report: what `check` says at the P, calls and memory model that show the case.
        right: it is as expected: refuted with a harmful finding of that kind, or without any finding.

    """

    number: str
    title: str
    form: str
    expected: str
    report: Report
    right: bool

    @property
    def found(self) -> str:
        """The findings, in words."""
        return "; ".join(dict.fromkeys(finding.title for finding in self.report.findings)) or NOTHING

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of this form."""
        return {
            "name": f"{self.number} {self.title}", "form": self.form, "kernel": self.report.case.kernel.ref,
            "expected": self.expected, "found": self.found, "verdict": self.report.verdict,
            "one_run": self.report.one_run, "as_expected": self.right,
        }  # fmt: skip


def judge_field(seed: int = 0) -> Iterator[_JudgedForm]:
    """Judge both forms of every case of ``kernels.field``, in order."""
    for case in import_shipped("field").CASES:
        report = _check(case, case.buggy, seed)
        said = f"{report.findings} {report.notes}"
        harmful = [finding for finding in report.findings if finding.harmful and case.expected.matches(finding)]
        right = report.verdict == REFUTED and bool(harmful) and case.words in said
        yield _JudgedForm(case.number, case.title, "buggy", str(case.expected), report, right)
        report = _check(case, case.fixed, seed)
        right = report.verdict == case.proof and not report.findings
        yield _JudgedForm(case.number, case.title, "fixed", NOTHING, report, right)


def _check(case: Any, kernel: Kernel, seed: int) -> Report:  # noqa: ANN401 - a FieldCase, which stands outside the package
    return check(kernel, ranks=case.ranks, calls=case.calls, memory=case.memory, seed=seed)


def _show_field(*, seed: int = 0, as_json: bool = False) -> int:
    """Judge the corpus, print it, and return the exit status: 0 if every form is as expected."""
    forms: list[_JudgedForm] = []
    for judged in judge_field(seed):
        forms.append(judged)
        if not as_json and not judged.right:
            click.echo(f"{judged.number} {judged.form}: expected {judged.expected}, found {judged.found}", err=True)
    if as_json:
        click.echo(json.dumps([judged.to_json() for judged in forms], indent=2))
    else:
        click.echo(table_text(("case", "mistake", "expected", "found", "fixed"), _rows(forms)), nl=False)
        click.echo("\n" + _counts(forms))
    return int(not all(judged.right for judged in forms))


def _rows(forms: list[_JudgedForm]) -> list[tuple[str, ...]]:
    pairs = zip(forms[::2], forms[1::2], strict=True)
    return [
        (buggy.number, buggy.title, buggy.expected, f"{buggy.report.verdict}: {buggy.found}", fixed.report.verdict)
        for buggy, fixed in pairs
    ]


def _counts(forms: list[_JudgedForm]) -> str:
    buggy, fixed = forms[::2], forms[1::2]
    one_run = sum(a.report.one_run and b.report.one_run for a, b in zip(buggy, fixed, strict=True))
    proved = sum(judged.report.verdict == PROVED for judged in fixed)
    return (
        f"{sum(judged.right for judged in buggy)} of {len(buggy)} buggy forms REFUTED with the expected finding, "
        f"{sum(judged.right for judged in fixed)} of {len(fixed)} fixed forms without any finding ({proved} PROVED); "
        f"{one_run} of {len(buggy)} cases were decided from one run in both forms, without exploration"
    )
