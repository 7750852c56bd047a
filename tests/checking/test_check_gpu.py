"""Checks under ``gpu`` that one run decides: orders, scopes and fences that are right are proved, others refuted."""

from typing import Any

import pytest

from asyncsim import Kernel, MisuseError, Set, Signal, Window, check, kernel, replay
from asyncsim.analysis.certificate import certificate
from asyncsim.checking.verdict.report import SCOPED
from asyncsim.trace.token import decode


def message(
    release: str = "release", acquire: str = "acquire", *, before: str = "", behind: str = "", scope: str = "world"
) -> Kernel:
    """Return a kernel in which each rank stores at the next one, and says so; fences stand before that, and behind."""

    @kernel(memory=[Window("x", (1,), "int64"), Signal("f", (1,))], inputs=lambda P, call, rng: [0] * P,
            golden=lambda xs: [7] * len(xs))  # fmt: skip
    async def tell(rank: Any, _: int, x: Any, f: Any) -> int:
        peer = (rank.id + 1) % rank.size
        await rank.store(x.at(peer)[0], 7)
        if before:
            await rank.fence(order=before)
        await rank.notify(f.at(peer)[0], order=release, scope=scope)
        await rank.wait(f[0] >= 1, order=acquire, scope=scope)
        if behind:
            await rank.fence(order=behind)
        return int(await rank.load(x[0]))

    return tell


def judged(made: Kernel, **more: Any) -> Any:
    return check(made, ranks=2, calls=1, memory="gpu", **more)


@pytest.mark.parametrize(("release", "acquire", "before", "behind"), [
    ("release", "acquire", "", ""),
    ("relaxed", "relaxed", "release", "acquire"),
    ("relaxed", "acquire", "acq_rel", ""),
    ("release", "relaxed", "", "acq_rel"),
])  # fmt: skip
def test_releases_and_acquires_are_proved_from_one_run(release: str, acquire: str, before: str, behind: str) -> None:
    report = judged(message(release, acquire, before=before, behind=behind))
    assert report.verdict == "PROVED"
    assert report.one_run
    assert SCOPED in report.to_json()["granted"]


@pytest.mark.parametrize(("made", "missing"), [
    (message("relaxed"), "no release fence stands between"),
    (message(acquire="relaxed"), "no acquire fence stands between"),
    (message("relaxed", "relaxed", before="acquire", behind="acquire"), "no release fence stands between"),
    (message("relaxed", "relaxed", before="release", behind="release"), "no acquire fence stands between"),
    (message(scope="rank"), "do not include each other"),
])  # fmt: skip
def test_what_is_missing_is_named_and_a_witness_reads_the_value_before(made: Kernel, missing: str) -> None:
    report = judged(made)
    assert report.verdict == "REFUTED"
    found = report.findings[0]
    assert found.kind == "race"
    assert missing in found.why
    again = replay(decode(found.token), made)
    assert again.run.case.memory.startswith("gpu:old=")
    assert 0 in again.run.outputs[0]


def test_under_sc_none_of_this_is_seen() -> None:
    assert check(message("relaxed", "relaxed", scope="block"), ranks=2, calls=1, memory="sc").verdict == "PROVED"


def test_a_store_that_may_pass_a_relaxed_wait_is_a_race_that_no_run_shows() -> None:
    @kernel(memory=[Window("x", (1,), "int64", initialised=True), Signal("f", (1,))],
            inputs=lambda P, call, rng: [0] * P, golden=lambda xs: [0] * len(xs))  # fmt: skip
    async def late(rank: Any, _: int, x: Any, f: Any) -> int:
        if rank.id:
            await rank.wait(f[0] >= 1, order="relaxed")
            await rank.store(x.at(0)[0], 1)
            return 0
        seen = int(await rank.load(x[0]))
        await rank.notify(f.at(1)[0])
        return seen

    report = judged(late)
    assert report.verdict == "SURVIVED"
    assert [(found.kind, found.hazard, found.harmful) for found in report.findings] == [("race", "WAR", None)]
    assert "no later than they stand" in report.scope


def test_blocks_of_one_rank_synchronise_in_its_scope() -> None:
    def of(scope: str, block: str) -> Kernel:
        @kernel(memory=[Window("x", (1,), "int64"), Signal("f", (1,))], inputs=lambda P, call, rng: [0] * P,
                golden=lambda xs: [7] * len(xs))  # fmt: skip
        async def blocks(rank: Any, _: int, x: Any, f: Any) -> int:
            async def give(rank: Any) -> None:
                await rank.store(x[0], 7)
                await rank.notify(f[0], 1, Set, scope=scope)

            async def take(rank: Any) -> int:
                await rank.wait(f[0] == 1, scope=scope)
                return int(await rank.load(x[0]))

            giver, taker = await rank.start(give, block="a"), await rank.start(take, block=block)
            await rank.join(giver)
            return int(await rank.join(taker))

        return blocks

    assert judged(of("rank", "b")).verdict == "PROVED"
    assert judged(of("block", "a")).verdict == "PROVED"
    assert judged(of("block", "b")).verdict == "REFUTED"


def test_nothing_is_said_of_later_calls_and_there_is_no_certificate() -> None:
    report = judged(message("relaxed", before="release"))
    assert report.verdict == "PROVED"
    assert not report.later_calls
    with pytest.raises(MisuseError, match="orders or scopes"):
        certificate(*report.proof)
