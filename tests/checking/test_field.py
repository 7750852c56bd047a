"""The corpus: each mistake is found from one run, with the reason in words, and its repair is proved."""

import importlib
import pkgutil

import pytest

import kernels.field
from asyncsim.checking.verdict.check import check
from asyncsim.machine.kernel import kernels_of
from kernels.field import (
    CASES,
    f04_eq_wait_overshot,
    f27_flag_overtakes_data,
    f46_too_many_copies_pending,
    f50_locks_zeroed_without_a_fence,
    not_bugs,
)

BY_NUMBER = {case.number: case for case in CASES}
OF_THE_RUN = {"deadlock", "wrong-result", "ranks-differ"}
"""What the fair run shows by itself; of all else a witness must show the harm."""

ENDLESS = {"F42"}
"""The tests of three calls have more executions than the budget allows."""

each_case = pytest.mark.parametrize("case", CASES, ids=BY_NUMBER)


def judge(kernel, case, **other):
    return check.aio(kernel, **{"ranks": case.ranks, "calls": case.calls, "memory": case.memory, **other})


def said(report):
    """Return all that a report says of its findings."""
    return " ".join(f"{finding.why} {finding.shown}" for finding in report.findings)


@each_case
async def test_the_mistake_is_refuted_and_named(case):
    report = await judge(case.buggy, case)
    assert report.verdict == "REFUTED"
    found = [finding for finding in report.findings if case.expected.matches(finding, case.ranks)]
    assert any(finding.harmful for finding in found)
    assert case.words in said(report)
    if case.expected.kind not in OF_THE_RUN:
        assert any(finding.shown for finding in found)


@each_case
async def test_a_buggy_kernel_gives_what_it_names_and_each_harm_is_explained(case):
    report = await judge(case.buggy, case)
    for expected in case.buggy.finds:
        assert any(expected.matches(finding, case.ranks) and finding.harmful for finding in report.findings), expected
    assert any(str(case.expected) == str(expected) for expected in case.buggy.finds)


@each_case
async def test_the_repair_is_proved(case):
    report = await judge(case.fixed, case)
    assert (report.verdict, report.findings) == (case.proof, [])
    assert all("outside the theory" in note for note in report.notes)
    assert bool(report.notes) == (case.proof != "PROVED")


@pytest.mark.parametrize("case", [case for case in CASES if case.number not in ENDLESS], ids=lambda case: case.number)
async def test_the_repair_holds_for_three_calls_from_any_reference_run(case):
    for scheduler in ("fifo", "random:seed=3", "starve:rank=0"):
        report = await judge(case.fixed, case, calls=3, scheduler=scheduler)
        assert (report.verdict, report.findings) == (case.proof, [])


async def test_another_repair_of_the_overshot_wait_is_proved_too():
    report = await judge(f04_eq_wait_overshot.fixed_by_at_least, BY_NUMBER["F04"])
    assert report.verdict == "PROVED"


async def test_a_fence_repairs_the_overtaking_flag_too():
    report = await judge(f27_flag_overtakes_data.fixed_by_fence, BY_NUMBER["F27"])
    assert report.verdict == "PROVED"


@pytest.mark.parametrize("memory", ["ldst", "nic"])
async def test_another_buffer_repairs_the_copies_left_pending_too(memory):
    report = await judge(f46_too_many_copies_pending.fixed_by_a_buffer, BY_NUMBER["F46"], memory=memory)
    assert report.verdict == "PROVED"


async def test_zeroed_locks_and_a_meeting_repair_it_too():
    report = await judge(f50_locks_zeroed_without_a_fence.fixed_by_a_meeting, BY_NUMBER["F50"])
    assert (report.verdict, report.findings) == ("EXHAUSTED", [])


@pytest.mark.parametrize("number", ["F26", "F27", "F28", "F29", "F30", "F45", "F46"])
async def test_what_only_late_memory_shows_is_not_there_under_sc(number):
    case = BY_NUMBER[number]
    report = await judge(case.buggy, case, memory="sc")
    assert (report.verdict, report.findings) == (case.proof, [])


@pytest.mark.parametrize("number", ["F47", "F48", "F49"])
async def test_what_order_and_scope_leave_open_is_not_there_under_sc(number):
    case = BY_NUMBER[number]
    report = await judge(case.buggy, case, memory="sc")
    assert (report.verdict, report.findings) == (case.proof, [])


async def test_reordered_sets_need_a_network_and_a_torn_line_needs_pieces():
    for number in ("F29", "F30"):
        case = BY_NUMBER[number]
        report = await judge(case.buggy, case, memory="ldst")
        assert (report.verdict, report.findings) == (case.proof, [])


async def test_every_case_is_decided_in_both_forms_from_one_run_without_exploration():
    undecided = set()
    for case in (case for case in CASES if case.proof == "PROVED"):
        for kernel in (case.buggy, case.fixed):
            report = await judge(kernel, case)
            if "were sampled" in report.scope or report.verdict not in ("PROVED", "REFUTED"):
                undecided.add(case.number)
    assert undecided == set()


def test_the_table_names_every_file_once_and_every_kernel_can_be_located():
    files = [info.name for info in pkgutil.iter_modules(kernels.field.__path__) if info.name[1:3].isdigit()]
    assert [case.number.lower() for case in CASES] == [name[:3] for name in files]
    for case, name in zip(CASES, files, strict=True):
        module = importlib.import_module(f"kernels.field.{name}")
        assert (case.buggy, case.fixed) == (module.buggy, module.fixed)
        assert case.buggy.ref == f"kernels.field.{name}:buggy"
        assert case.fixed.ref == f"kernels.field.{name}:fixed"
        assert f"{case.number}:" in (module.__doc__ or "")
        assert all(source.strip() in module.__doc__ for source in case.source.split(","))
        assert case.buggy.finds
        assert not case.fixed.finds
        assert case.buggy.first_line.endswith(".")
        assert case.fixed.first_line.endswith(".")


# What must not be reported.

SOUND = {name: kernel for name, kernel in kernels_of("kernels.field.not_bugs").items() if not kernel.finds}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", SOUND)
async def test_what_only_looks_wrong_is_proved(name, ranks):
    report = await check.aio(SOUND[name], ranks=ranks)
    assert (report.verdict, report.findings) == ("PROVED", [])


def test_three_kernels_only_look_wrong():
    assert set(SOUND) == {"root_copies_onto_itself", "ring_all_reduce", "counting_barrier"}


@pytest.mark.parametrize("ranks", [2, 3, 4])
async def test_identical_bytes_in_either_order_are_a_race_and_benign(ranks):
    report = await check.aio(not_bugs.identical_bytes, ranks=ranks)
    assert report.verdict == "EXHAUSTED"
    assert not report.refuted
    assert [(f.title, f.harmful) for f in report.findings] == [("WAW race, same call", False)]
    assert report.findings[0].pairs == ranks * (ranks - 1)  # two calls of P(P - 1) / 2
