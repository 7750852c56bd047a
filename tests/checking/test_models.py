"""The default memory model: what a kernel says decides under which models it is judged, and the report names them."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from asyncsim import Signal, Window, barrier, check, kernel
from asyncsim.cli.main import main
from asyncsim.views.report import report_text
from kernels.field import f30_flag_half_before_data_half as f30
from kernels.field import f31_one_counter_for_chunks_in_flight as f31
from kernels.reduce_scatter import builtin, no_post_barrier

data = Window("data", (1,), np.int32, initialised=True)
met = Signal("met", ("P", 1))
BUGGY, FIXED = f31.buggy, f31.fixed


@kernel(memory=[data, met])
async def refuted_by_all(rank, data, met):
    """A put without any order, and a load."""
    if rank.id == 0:
        await rank.put(data.at(1)[0], np.int32(7))
        return None
    return await rank.load(data[0])


def test_a_kernel_without_words_for_late_memory_is_judged_under_sc():
    report = check(builtin, ranks=2)
    assert (report.verdict, report.models) == ("PROVED", ("sc",))
    assert report_text(report).splitlines()[0].endswith(", sc")


def test_what_only_late_memory_shows_is_refuted_without_an_option():
    report = check(BUGGY, ranks=2)
    assert (report.verdict, report.models, report.case.memory) == ("REFUTED", ("ldst",), "ldst")
    assert report.findings[0].title == "RAW race, same call"
    assert "PROVED under sc" in report.notes
    assert report_text(report).splitlines()[0].endswith("P = 2, 2 calls, ldst")


def test_proved_means_proved_under_each_model_and_all_are_named():
    report = check(FIXED, ranks=2)
    assert (report.verdict, report.models, report.notes) == ("PROVED", ("sc", "ldst", "nic"), [])
    assert report_text(report).splitlines()[0].endswith("P = 2, 2 calls, sc, ldst and nic")
    assert all(f"under {model}, one run of" in report.scope for model in report.models)
    assert report.to_json()["models"] == ["sc", "ldst", "nic"]


def test_a_model_that_is_named_is_the_only_one():
    for memory in ("sc", "nic"):
        report = check(FIXED, ranks=2, memory=memory)
        assert report.models == (memory,)


def test_a_kernel_that_sc_refutes_is_judged_no_further():
    report = check(refuted_by_all, ranks=2, calls=1)
    assert (report.verdict, report.models) == ("REFUTED", ("sc",))


def test_what_needs_no_more_than_sc_is_refuted_as_before():
    assert check(no_post_barrier, ranks=2).models == ("sc",)


def test_the_weakest_verdict_is_that_of_all_and_the_others_are_told():
    @kernel(memory=[data, met])
    async def tested(rank, data, met):
        if rank.id == 0:
            await rank.put(data.at(1)[0], np.int32(7))
            await rank.fence()
            await rank.notify(met.at(1)[0, 0], 1, order="relaxed")
            return None
        seen = await rank.test(met[0, 0] >= 1)
        await rank.wait(met[0, 0] >= 1)
        return [seen >= 0, await rank.load(data[0])]

    report = check(tested, ranks=2, calls=1)
    assert (report.verdict, report.models) == ("EXHAUSTED", ("sc", "ldst", "nic"))
    half = check(f30.fixed, ranks=2, calls=1)
    assert half.models == ("sc", "ldst", "nic")


def test_runs_and_findings_of_all_models_are_counted():
    single = [check(FIXED, ranks=2, memory=memory) for memory in ("sc", "ldst", "nic")]
    assert check(FIXED, ranks=2).schedules == sum(report.schedules for report in single)


def test_a_late_word_of_a_composite_is_no_word_of_the_kernel():
    @kernel(memory=[data, met])
    async def meets(rank, data, met):
        await barrier(rank, met, generation=rank.call + 1)

    assert check(meets, ranks=2).models == ("sc",)


def test_a_benign_race_is_told_once_for_all_models():
    @kernel(memory=[data, met])
    async def alike(rank, data, met):
        await rank.put(data.at(0)[0], np.int32(7))
        await rank.quiet()
        await barrier(rank, met, generation=rank.call + 1)

    report = check(alike, ranks=3, calls=1)
    assert report.models == ("sc", "ldst", "nic")
    assert [(finding.title, finding.harmful) for finding in report.findings].count(("WAW race, same call", False)) == 1


@pytest.mark.parametrize(("kernel", "status"), [(BUGGY, 1), (FIXED, 0)])
def test_the_command_names_the_models(kernel, status):
    result = CliRunner().invoke(main, ["check", kernel.ref, "-P", "2", "--json"])
    assert result.exit_code == status
    made = json.loads(result.output)
    assert made["models"] == (["ldst"] if status else ["sc", "ldst", "nic"])


def test_a_certificate_is_of_one_model(tmp_path):
    file = tmp_path / "fixed.jsonl"
    result = CliRunner().invoke(main, ["check", FIXED.ref, "-P", "2", "--certificate", str(file)])
    assert "name one of them with --memory" in result.stderr
    assert not file.exists()
    named = CliRunner().invoke(main, ["check", FIXED.ref, "-P", "2", "--memory", "nic", "--certificate", str(file)])
    assert (named.exit_code, file.exists()) == (0, True)


def test_other_commands_take_a_model_by_its_name_alone():
    result = CliRunner().invoke(main, ["explore", BUGGY.ref, "-P", "2", "--memory", "auto"])
    assert result.exit_code == 2
    assert "the memory models are" in result.stderr


def test_the_line_of_each_number_of_ranks_names_the_models():
    result = CliRunner().invoke(main, ["check", FIXED.ref, "-P", "2,3"])
    assert [line for line in result.output.splitlines() if line.startswith("PROVED")][:2] == [
        f"PROVED  {FIXED.ref}, P = {ranks}, 2 calls, sc, ldst and nic" for ranks in (2, 3)
    ]


class Kept:
    """What outlives a call."""

    number = 0


def test_a_kernel_that_depends_on_outside_state_is_judged_no_further():
    @kernel(memory=[data, met])
    async def depends(rank, data, met):
        Kept.number = 7
        if rank.id == 0:
            await rank.put(data.at(1)[0], np.int32(7))
        await barrier(rank, met, generation=rank.call + 1)

    report = check(depends, ranks=2)
    assert (report.verdict, report.models) == ("SURVIVED", ("sc",))
    assert "decides for every schedule" not in report.scope


def test_a_proof_under_late_memory_says_that_writes_land_whole():
    whole = "what one operation writes lands whole"
    assert whole in " ".join(report_text(check(FIXED, ranks=2)).split())
    assert whole in check(FIXED, ranks=2, memory="nic").to_json()["granted"]
    assert whole not in report_text(check(FIXED, ranks=2, memory="nic:atom=1"))
    assert whole not in report_text(check(builtin, ranks=2))
