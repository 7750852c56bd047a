"""What a proof takes for granted is looked at: variables of modules and closures that a kernel reaches, and changes."""

from __future__ import annotations

import functools
import sys

import outside_state
import pytest
from command import GOOD, run
from outside_state import CHANGING, STILL, X, kernel_of

from asyncsim import check, explore, kernel
from asyncsim.checking.record.outside import OutsideState, OutsideWatch
from asyncsim.checking.record.snapshot import MOST_PARTS, _of_iterator, add_contents
from asyncsim.checking.record.variables import reachable_variables
from asyncsim.checking.verdict.report import GRANTED
from asyncsim.schedulers.fifo import Fifo


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("ASYNCSIM_TEST", "")


def hidden(report):
    """Return what a report says of hidden state."""
    return " ".join(finding.why for finding in report.findings if finding.kind == "hidden-state")


@pytest.mark.parametrize("name", CHANGING)
def test_a_variable_that_a_kernel_changes_is_named_and_nothing_is_proved(name):
    report = check(kernel_of(CHANGING[name]), ranks=2, samples=2)
    assert report.verdict == "SURVIVED"
    if hasattr(CHANGING[name], "__self__"):  # what the kernel names is the bound method, and not its object
        name = "Total.every" if name == "Total.every" else "function of calls"
    assert f"the kernel changes what outlives a call: {name} (" in hidden(report)
    assert "outside_state.py" in hidden(report)
    assert report.proof is None


@pytest.mark.parametrize("name", STILL)
def test_what_changes_nothing_is_proved(name):
    report = check(kernel_of(STILL[name]), ranks=2)
    assert (report.verdict, report.findings) == ("PROVED", [])


def test_one_rank_alone_is_enough():
    report = check(kernel_of(CHANGING["COUNT"], ranks={1}), ranks=3, samples=2)
    assert "COUNT" in hidden(report)


def test_what_is_put_back_before_the_end_is_seen_between_the_steps():
    box = []

    @kernel(memory=[X])
    async def clears(rank, x):
        await rank.store(x[0], 1)
        box.append(rank.id)
        await rank.load(x[0])
        box.clear()

    report = check(clears, ranks=2, samples=2)
    assert report.verdict == "SURVIVED"
    assert "box of clears" in hidden(report)
    assert "seen after a step of rank" in hidden(report)


def test_closures_defaults_parameters_attributes_and_methods_are_reached():
    number, kept = 0, {}

    class Own:
        def __init__(self):
            self.calls = 0

        def __call__(self):
            self.calls += 1

    def attributed():
        attributed.calls += 1

    attributed.calls = 0
    own = Own()

    def bump(seen=[]):  # noqa: B006 - the point
        nonlocal number
        number += 1
        seen.append(1)

    @kernel(memory=[X])
    async def all_of_them(rank, x, *, box=None):
        bump()
        own()
        attributed()
        box.append(1)
        functools.partial(kept.update)({number: 1})
        await rank.store(x[0], 1)

    report = check(all_of_them.variant(box=[]), ranks=1, samples=2)
    for name in ("number of bump", "default 0 of bump", "own of all_of_them", "attributes of attributed",
                 "kept of all_of_them", "parameter box of all_of_them"):  # fmt: skip
        assert name in hidden(report)


def test_a_module_of_the_authors_is_reached_and_one_of_a_library_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_state.py").write_text("total = 0\nunused = []\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(
        "import json\nimport mine_state\nfrom asyncsim import kernel\n@kernel(memory=[])\nasync def k(rank):\n"
        "    mine_state.total += 1\n    json.loaded = rank.id\n",
        encoding="utf-8",
    )
    result = run("check", "mine.py", "-P", "2")
    assert result.exit_code == 0
    assert result.stdout.startswith("SURVIVED")
    assert "mine_state.total" in " ".join(result.stdout.split())
    assert "unused" not in result.stdout
    sys.modules.pop("mine_state", None)


def test_hidden_state_that_shows_in_the_results_is_named_too():
    report = check(kernel_of(outside_state.by_global).variant(), ranks=2, samples=2)
    assert report.verdict == "SURVIVED"
    turns = []

    @kernel(memory=[X])
    async def turns_matter(rank, x):
        turns.append(rank.id)
        await rank.store(x[0], len(turns))
        return await rank.load(x[0])

    refuted = check(turns_matter, ranks=2)
    assert refuted.verdict == "REFUTED"
    assert "a second schedule" in hidden(refuted)
    assert "turns of turns_matter" in hidden(refuted)


def test_where_one_run_does_not_decide_nothing_is_exhausted_either():
    turns = []

    @kernel(memory=[X])
    async def polls(rank, x):
        turns.append(1)
        if rank.id:
            await rank.store(x.at(0)[0], 1)
            await rank.store(x.at(0)[0], 2)
        else:
            await rank.poll(x[0], lambda tile: tile > 0)

    report = check(polls, ranks=2, calls=1)
    assert report.verdict == "SURVIVED"
    assert "turns of polls" in hidden(report)
    exhausted = explore(polls, ranks=2, calls=1, exhaustive=True)
    assert exhausted.verdict == "SURVIVED"
    assert "turns of polls" in hidden(exhausted)


def test_a_refuted_kernel_is_refuted_whatever_it_keeps():
    kept = []

    @kernel(memory=[X])
    async def races(rank, x):
        kept.append(1)
        await rank.store(x.at(0)[0], rank.id)
        return await rank.load(x.at(0)[0])

    report = check(races, ranks=2)
    assert report.verdict == "REFUTED"
    assert report.findings[0].harmful


def test_every_proof_says_what_it_takes_for_granted():
    shown = run("check", GOOD, "-P", "2").stdout
    assert f"taken for granted: {GRANTED}" in " ".join(shown.split())
    assert f'"granted": "{GRANTED}"' in run("check", GOOD, "-P", "2", "--json").stdout
    assert '"granted": null' in run("check", "reduce_scatter:no_post_barrier", "-P", "2", "--json").stdout


@pytest.mark.parametrize("name", ["reduce_scatter:builtin", "all_reduce:mesh", "ring:all_reduce", "zero:zero3"])
def test_ordinary_kernels_reach_nothing_so_nothing_is_looked_at(name):
    from asyncsim.checking.record.locate import all_kernels  # noqa: PLC0415 - imports all of them

    known = all_kernels()
    judged = known.get(name) or next(iter(known.values()))
    assert reachable_variables(judged) == []
    assert OutsideState(judged).parts == 0


def test_nobody_asks_an_object_of_the_authors():
    class Shy:
        def __eq__(self, other):
            raise AssertionError

        def __hash__(self):
            return 1

        def __repr__(self):
            raise AssertionError

    shy = {Shy(): Shy()}
    for _ in range(2):
        parts = []
        add_contents(shy, parts)
    assert len(parts) > 2


def test_what_is_too_large_is_compared_as_far_as_it_goes():
    parts = []
    add_contents([[0]] * 3 * MOST_PARTS, parts)
    assert MOST_PARTS <= len(parts) <= 5 * MOST_PARTS


def test_a_cell_without_contents_is_no_value():
    @kernel(memory=[X])
    async def early(rank, x):
        await rank.store(x[0], later if rank.id < 0 else 1)

    assert reachable_variables(early) == []
    later = 1
    assert check(early, ranks=2).verdict == "PROVED"


def test_an_iterator_that_cannot_be_looked_into_is_left_alone():
    class Odd:
        def __reduce__(self):
            raise TypeError

    assert _of_iterator(Odd()) is None


def test_a_generator_that_has_ended_holds_nothing():
    lines = (line for line in "ab")
    assert list(lines) == ["a", "b"]
    add_contents(lines, parts := [])
    assert len(parts) == 1


def test_a_scheduler_that_looks_between_is_the_one_that_it_asks():
    outside = OutsideState(kernel_of(CHANGING["COUNT"]))
    assert outside.parts == 1
    assert str(OutsideWatch(Fifo(), outside)) == str(Fifo())
    assert outside.text == ""
