"""The pytest plugin: what it collects, what it requires, what it replays, and what it says of a wrong mark."""

from __future__ import annotations

import re

import pytest

import asyncsim.testing
from asyncsim.checking.record.locate import locate
from asyncsim.pytest_plugin import collecting, judging, replaying, sections  # before pytester takes modules away again

pytest_plugins = ["pytester"]

LOADED = (asyncsim.testing, collecting, judging, replaying, sections)

KERNELS = """
import pytest
import numpy as np
from asyncsim import Expected, KernelError, Signal, WAR, Window, kernel

box = Window("box", (1,), np.float32, initialised=True)
flag = Signal("flag", (1,), self_cleaning=True)

@kernel(memory=[box])
async def fine(rank, box):
    await rank.store(box[0], 1.0)
    return await rank.load(box[0])

@kernel(memory=[box])
async def last_wins(rank, box):
    await rank.store(box.at(0)[0], float(rank.id))
    return float(await rank.load(box.at(0)[0]))

@kernel(memory=[box])
async def polls(rank, box):
    if rank.id == 0:
        await rank.store(box.at(rank.size - 1)[0], 1.0)
    elif rank.id == rank.size - 1:
        float(await rank.load(box[0]))

hangs_finds = Expected("deadlock")

@kernel(memory=[flag], finds=hangs_finds)
async def hangs(rank, flag):
    await rank.wait(flag[0] >= 1)

@kernel(memory=[box])
async def raises(rank, box):
    raise ValueError("not today")
"""


@pytest.fixture
def suite(pytester):
    """Return a function that runs tests in a file that has the kernels above."""
    lean = "-p no:cacheprovider -p no:hypothesispytest -p no:cov -p no:xdist"
    pytester.makeini(f"[pytest]\ntrio_mode = true\nfilterwarnings = error\naddopts = --strict-markers {lean}")

    def run(text, *arguments, name="test_it"):
        pytester.makepyfile(**{name: KERNELS + text})
        return pytester.runpytest_inprocess(*arguments)

    return run


def errors(result):
    return "\n".join(line.removeprefix("E   ").strip() for line in result.outlines)


def test_a_kernel_that_is_marked_or_called_like_a_test_is_one(suite):
    result = suite(
        """
@pytest.mark.asyncsim(ranks=3, memory=["sc", "ldst:atom=4"])
@kernel(memory=[box])
async def test_above(rank, box):
    await rank.store(box[0], 1.0)

@kernel(memory=[box])
@pytest.mark.asyncsim(ranks=[1, 2, 1])
async def test_below(rank, box):
    await rank.store(box[0], 1.0)

@pytest.mark.asyncsim
@kernel(memory=[box])
async def without_the_prefix(rank, box):
    await rank.store(box[0], 1.0)

test_variant = fine.variant()
test_waits = pytest.mark.asyncsim(ranks=2)(hangs)

class TestInAClass:
    @pytest.mark.asyncsim(ranks=range(2, 4))
    @kernel(memory=[box])
    async def test_kernel(rank, box):
        await rank.store(box[0], 1.0)
""",
        "-v",
    )
    result.assert_outcomes(passed=13)
    names = re.findall(r"test_it.py::(\S+) PASSED", errors(result))
    assert names == [
        "test_above[P3-sc]", "test_above[P3-ldst:atom=4]", "test_below[P1]", "test_below[P2]",
        "without_the_prefix[P2]", "without_the_prefix[P3]", "without_the_prefix[P4]",
        "test_variant[P2]", "test_variant[P3]", "test_variant[P4]", "test_waits[P2]",
        "TestInAClass::test_kernel[P2]", "TestInAClass::test_kernel[P3]",
    ]  # fmt: skip


def test_fixtures_parameters_and_other_marks_go_with_it(suite):
    result = suite(
        """
@pytest.fixture(autouse=True)
def seen(request):
    request.config.seen = getattr(request.config, "seen", 0) + 1

class TestAll:
    def setup_method(self):
        self.kernel = fine

    @pytest.mark.asyncsim(ranks=2)
    @pytest.mark.parametrize("calls", [1, 2])
    def test_function(self, calls, tmp_path):
        return self.kernel

    @pytest.mark.xfail(strict=True)
    @pytest.mark.asyncsim(ranks=2)
    @kernel(memory=[box])
    async def test_expected(rank, box):
        return float(await rank.load(box.at(0)[0])) or await rank.store(box.at(0)[0], 1.0)

    @pytest.mark.skip
    @pytest.mark.asyncsim
    @kernel(memory=[box])
    async def test_skipped(rank, box): ...

def test_seen(request):
    assert request.config.seen == 4
"""
    )
    result.assert_outcomes(passed=3, xfailed=1, skipped=3)


@pytest.mark.parametrize(
    ("require", "kernel", "why"),
    [
        ('require="proved"', "polls", "PROVED is required, and it is EXHAUSTED"),
        ('require="exhausted"', "polls", ""),
        ('require="survived"', "polls", ""),
        ('require="survived"', "last_wins", "PROVED or EXHAUSTED or SURVIVED is required, and it is REFUTED"),
        ('require="refuted"', "fine", "REFUTED is required, and it is PROVED"),
        ('require="refuted"', "last_wins", ""),
        ('finds="WAW"', "last_wins", ""),
        ('finds=["WAW race, same call", "overflow"]', "last_wins", "it is REFUTED, but not by overflow: what was"),
        ('finds="deadlock"', "hangs", ""),
        ("", "hangs", ""),
        ('require="proved"', "hangs", "PROVED is required, and it is REFUTED"),
        ("", "raises", "KernelError: rank 0 failed in call 0"),
        ("", "7", "test_x[P2] returned 7, which is no kernel; a test marked asyncsim returns one"),
    ],
)
def test_what_is_required_decides(suite, require, kernel, why):
    result = suite(f"@pytest.mark.asyncsim(ranks=2, {require})\ndef test_x(): return {kernel}")
    result.assert_outcomes(passed=not why, failed=bool(why))
    assert why in errors(result)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("3", "3 has no name; write asyncsim(ranks=[2, 3, 4]"),
        ("rank=3", "there is no argument 'rank'; write asyncsim(ranks="),
        ("ranks=0", "ranks=0; give a number of ranks of at least 1"),
        ("ranks='3'", "ranks='3'; give a number of ranks"),
        ("ranks=[]", "ranks=[]; give a number"),
        ("memory='x86'", "x86"),
        ("memory=3", "memory=3; give a memory model"),
        ("require='sure'", "require='sure'; give one of 'proved', 'exhausted', 'survived', 'refuted'"),
        ("finds='WXW'", "finds='WXW'; a finding is one of RAW, WAR, WAW, race"),
        ("finds=3", "finds=3; name a finding"),
        ("require='proved', finds='WAR'", "require='proved' leaves no room for finds='WAR'"),
        ("calls='2'", "calls='2'; the default is 2"),
        ("edits=3", "edits=3; the default is ()"),
    ],
)
def test_a_wrong_mark_is_an_error_that_names_the_test(suite, arguments, message):
    for text in (
        f"@pytest.mark.asyncsim({arguments})\n@kernel(memory=[box])\nasync def test_x(rank, box): ...",
        f"@pytest.mark.asyncsim({arguments})\ndef test_x(): return fine",
    ):
        result = suite(text)
        assert result.ret == pytest.ExitCode.INTERRUPTED
        assert "test_it.py::test_x: @pytest.mark.asyncsim: " in errors(result)
        assert message in errors(result)


def test_a_mark_on_what_cannot_be_judged_is_an_error(suite):
    result = suite("@pytest.mark.asyncsim\nasync def test_x(judge): ...")
    assert "test_it.py::test_x: a test marked asyncsim is a kernel, or a plain function" in errors(result)
    result = suite("test_x = pytest.mark.parametrize('a', [1])(pytest.mark.asyncsim(fine))")
    assert "test_it.py::test_x: a kernel takes no parameters of pytest's" in errors(result)


JUDGE = """
def test_plain(judge):
    assert judge(fine, ranks=2).verdict == "PROVED"
    judge(hangs, ranks=2)

async def test_trio(judge):
    assert (await judge.aio(fine, ranks=2)).verdict == judge(fine, ranks=2).verdict
    import trio
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: judge.aio(last_wins, ranks=2))

def test_inner(judge):
    @kernel(memory=[box])
    async def inner(rank, box):
        await rank.store(box.at(0)[0], float(rank.id))
        return float(await rank.load(box.at(0)[0]))
    judge(inner, ranks=2, calls=1)

def test_no_kernel(judge):
    judge(7)
"""


def test_the_fixture_judges_and_shows_where_it_was_asked(suite):
    result = suite(JUDGE, "--asyncsim-save", "witnesses")
    result.assert_outcomes(passed=1, failed=3)
    text = errors(result)
    assert text.count("- asyncsim -") == 2
    assert "VerdictError: PROVED is required, and it is REFUTED: test_it.py:last_wins, P = 2" in text
    assert "test_it.py::test_trio --asyncsim-replay as1." in text
    assert "--kernel test_it.py:last_wins" in text
    assert "pytest_plugin/judging.py" not in text.partition("test_no_kernel")[0]
    assert "7 is no kernel" in text
    # One that is made within a function cannot be named: no command, but its file and pytest's line.
    inner = text.partition("_ test_inner _")[2].partition("_ test_no_kernel _")[0]
    assert "saved:" in inner
    assert "asyncsim replay" not in inner
    assert "test_it.py::test_inner --asyncsim-replay as1." in inner


def test_the_fixture_replays_what_it_judges(suite):
    result = suite(JUDGE, "-k", "inner")
    token = token_of(result)
    again = suite(JUDGE, "--asyncsim-replay", token, "-k", "inner or plain")
    assert "replayed " in errors(again)
    again.assert_outcomes(passed=1, failed=1)
    token = token_of(suite(JUDGE, "-k", "trio"))
    assert "replayed " in errors(suite(JUDGE, "--asyncsim-replay", token, "-k", "trio"))


RACE = "@pytest.mark.asyncsim(ranks=[2, 3])\ndef test_x(): return last_wins\ntest_y = pytest.mark.asyncsim(last_wins)\n"
OTHERS = "@pytest.mark.asyncsim(ranks=2)\ndef test_z(): return fine\ntest_w = fine.variant()\ndef test_plain(): ...\n"


def token_of(result):
    return re.search(r"--asyncsim-replay (\S+)", errors(result))[1]


def test_a_token_selects_the_tests_that_it_can_be_of(suite):
    token = token_of(suite(RACE))
    again = suite(RACE + OTHERS, "--asyncsim-replay", token, "-v")
    again.assert_outcomes(failed=2, skipped=1, deselected=7)
    assert "the recorded run is of another kernel or another case" in errors(
        suite(OTHERS, "--asyncsim-replay", token, "-rs")
    )


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("await rank.store(box.at(0)[0], float(rank.id)); await rank.load(box.at(0)[0])", ""),
        ("await rank.load(box[0])", "this is not the recorded run any more: divergence at step 4"),
    ],
)
def test_a_kernel_that_was_changed_is_replayed_as_far_as_it_goes(suite, body, shown):
    token = token_of(suite(RACE, "-k", "test_x and P2"))
    changed = f"""
async def changed(rank, box):
    {body}

last_wins = kernel(memory=[box])(changed).variant(name="last_wins")
"""
    result = suite(changed + RACE, "--asyncsim-replay", token, "-k", "test_x")
    result.assert_outcomes(passed=not shown, failed=bool(shown), deselected=4)
    assert shown in errors(result)


def test_a_replay_of_a_kernel_that_raises_says_so(suite):
    early = """
@kernel(memory=[box], finds=Expected("wrong-result"))
async def early(rank, box):
    if rank.id == 0:
        await rank.store(box[0], 1.0)
    elif (await rank.load(box.at(0)[0])) == 0.0:
        raise ValueError("too early")

@pytest.mark.asyncsim(ranks=2, calls=1, require="proved")
def test_x(): return early
"""
    token = token_of(suite(early))
    assert "the kernel raises: rank 1 failed" in errors(suite(early, "--asyncsim-replay", token))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--asyncsim-replay", "as1.xx"), "ERROR: --asyncsim-replay: token: "),
        (
            ("--asyncsim-replay", "gone.jsonl"),
            "ERROR: --asyncsim-replay: there is no trace file 'gone.jsonl'; a token begins",
        ),
        (("--asyncsim-runs", "0"), "argument --asyncsim-runs: invalid"),
        (("--asyncsim-runs", "many"), "argument --asyncsim-runs: invalid"),
    ],
)
def test_a_wrong_option_is_an_error(suite, arguments, message):
    result = suite("def test_x(): ...", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in "\n".join([*result.outlines, *result.errlines])


@pytest.mark.parametrize("folder", ["test_it.py", "test_it.py/sub", "test_it.py/a/b"])
def test_a_folder_that_cannot_be_is_a_wrong_option(suite, folder):
    result = suite("def test_x(): ...", "--asyncsim-save", folder)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --asyncsim-save: " in result.stderr.str()
    assert "is no folder" in result.stderr.str()


PLAIN = """
from asyncsim.testing import assert_proved, assert_refuted, assert_same_result

def test_proved():
    assert_proved(last_wins, ranks=2)

def test_same():
    assert_same_result(last_wins, ranks=2)

@pytest.fixture
def known(judge):
    return judge(last_wins, ranks=2, finds="WAW")

def test_refuted(known):
    assert_refuted(last_wins, ranks=2)

def test_own(tmp_path):
    assert_refuted(last_wins, ranks=2, save=tmp_path)
    assert list(tmp_path.iterdir())

async def test_trio(judge):
    assert (await judge.aio(last_wins, ranks=2, finds="WAW")).refuted
"""


def test_what_the_plain_assertions_find_is_saved_too(suite, pytester):
    result = suite(PLAIN, "--asyncsim-save", "kept")
    result.assert_outcomes(passed=3, failed=2)
    folders = {path.name: [file.suffix for file in path.iterdir()] for path in (pytester.path / "kept").iterdir()}
    names = ("proved", "same", "refuted", "trio")
    assert set(folders) == {f"test_it.py-test_{name}" for name in names}
    assert all(found and set(found) == {".jsonl"} for found in folders.values())
    result.stdout.fnmatch_lines(["*trace *kept/test_it.py-test_proved/*", "*trace *kept/test_it.py-test_same/*"])
    again = suite(PLAIN)
    again.assert_outcomes(passed=3, failed=2)
    again.stdout.no_fnmatch_line("*trace  *")


def test_a_witness_that_cannot_be_written_costs_no_report(suite, pytester):
    (pytester.path / "kept").mkdir()
    for name in ("proved", "same", "trio"):
        (pytester.path / "kept" / f"test_it.py-test_{name}").write_text("in the way")
    result = suite(PLAIN, "--asyncsim-save", "kept")
    result.assert_outcomes(passed=3, failed=2)
    assert "NotADirectoryError" not in result.stdout.str()
    assert result.stdout.str().count("note: no witness was saved: [Errno ") == 2


def test_as_many_schedules_are_sampled_as_asked(suite):
    text = """
def test_x(judge):
    def judged(**how):
        return judge(polls, ranks=2, budget=0, require="survived", **how)
    assert judged().scope.startswith("one run does not decide; 7 schedules were sampled")
    assert judged(samples=30).schedules == judged().schedules
"""
    suite(text, "--asyncsim-runs", "7").assert_outcomes(passed=1)


def test_a_mark_says_which_races_refute_and_what_may_be_explored(suite):
    text = """
@pytest.mark.asyncsim(ranks=3, calls=1, require="exhausted", budget=50, races="{races}")
@kernel(memory=[box])
async def test_x(rank, box):
    await rank.store(box.at(0)[0], 1)
    return 0
"""
    suite(text.format(races="harmful")).assert_outcomes(passed=1)
    result = suite(text.format(races="all"))
    result.assert_outcomes(failed=1)
    assert "counts all the same (races: all)" in " ".join(result.stdout.str().split())
    assert "budget='50'; the default is None" in errors(suite(text.replace("50", "'50'").format(races="all")))


def test_the_mark_is_explained(suite):
    suite("def test_x(): ...", "--markers").stdout.fnmatch_lines(["@pytest.mark.asyncsim(ranks=*): a kernel, or*"])


def test_a_kernel_under_a_mark_is_located(tmp_path):
    file = tmp_path / "marked.py"
    file.write_text(KERNELS + "test_x = pytest.mark.slow(a=1)(pytest.mark.asyncsim(ranks=2)(fine))\n", encoding="utf-8")
    assert locate(f"{file}:test_x").name == "fine"
