"""The exhibits of GPU synchronisation: right forms proved, or exhausted; broken forms refuted by what they name."""

import pytest

from asyncsim import check
from asyncsim.checking.record.locate import all_kernels

EXHIBITS = {name: made for name, made in all_kernels().items() if name.startswith("gpu.")}
EXHAUSTED = ("gpu.locks:spin_lock", "gpu.queues:queue_of_work", "gpu.last_block:last_block_reduces")
"""The order in which a lock is taken, or an item drawn, is free: one run does not decide. Tickets are cases of `sc`."""


def test_there_are_right_forms_and_broken_ones():
    right = [name for name, made in EXHIBITS.items() if not made.finds]
    assert len(right) == 8
    assert len(EXHIBITS) - len(right) == 18


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", [name for name, made in EXHIBITS.items() if not made.finds])
async def test_a_right_form_is_proved_or_exhausted(name, ranks):
    report = await check.aio(EXHIBITS[name], ranks=ranks)
    assert report.verdict == ("EXHAUSTED" if name in EXHAUSTED else "PROVED")


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", [name for name, made in EXHIBITS.items() if made.finds])
async def test_a_broken_form_is_refuted_by_what_it_names(name, ranks):
    made = EXHIBITS[name]
    report = await check.aio(made, ranks=ranks)
    assert report.verdict == "REFUTED"
    for expected in made.finds:
        assert any(expected.matches(finding, ranks) and finding.harmful for finding in report.findings), expected


@pytest.mark.parametrize("name", ["gpu.signal_pads:one_shot", "gpu.signal_pads:two_shot"])
async def test_the_pads_are_proved_under_sc_and_gpu(name):
    report = await check.aio(EXHIBITS[name], ranks=4)
    assert (report.verdict, report.models) == ("PROVED", ("sc", "gpu"))


async def test_what_an_atomic_returns_was_asked_for():
    report = await check.aio(EXHIBITS["gpu.queues:queue_of_work"], ranks=2)
    assert not any("is notified" in note for note in report.notes)
