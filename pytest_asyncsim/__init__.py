"""The pytest plugin's front door: what every run of pytest loads where asyncsim is installed.

It stands outside the package `asyncsim`, whose import brings numpy and trio: a suite that judges no kernel
must not pay for them. What does the work is `asyncsim.pytest_plugin`, loaded when the first kernel is met.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from asyncsim.pytest_plugin.judging import Judge

MARK = "asyncsim"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the options."""
    group = parser.getgroup("asyncsim", "asyncsim: kernels on symmetric memory")
    group.addoption(
        "--asyncsim-runs", metavar="N", type=_at_least_one,
        help="How many schedules to sample where one run does not decide; also where a test says otherwise.",
    )  # fmt: skip
    group.addoption("--asyncsim-save", metavar="DIR", help="Write the trace of each witness to this folder.")
    group.addoption(
        "--asyncsim-replay", metavar="TOKEN",
        help="Instead of judging, do this recorded run again (a token, or a trace file) in the test that it is of.",
    )  # fmt: skip


def _at_least_one(text: str) -> int:
    """Read a number of runs; argparse makes the message."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise ValueError(text)
    return number


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark; and read the recorded run now, so that a bad one is noticed before any test."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(ranks=[2, 3, 4], calls=2, memory='sc', require='proved'): "
        "a kernel, or a function that returns one, judged by asyncsim at each P and memory model",
    )
    if config.getoption("asyncsim_save") is not None:
        from asyncsim.pytest_plugin import saving  # noqa: PLC0415 - see the top of this page

        saving.check_folder(config)
    if config.getoption("asyncsim_replay"):
        from asyncsim.pytest_plugin import replaying  # noqa: PLC0415 - as above

        replaying.load(config)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:  # noqa: ANN401
    """Collect a kernel that is marked, or is called like a test."""
    if "asyncsim.machine.kernel" not in sys.modules:
        return None  # then nothing can be a kernel
    from asyncsim.pytest_plugin import collecting  # noqa: PLC0415 - as above

    return collecting.make_items(collector, name, obj)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each P and memory model."""
    if metafunc.definition.get_closest_marker(MARK) is not None:
        from asyncsim.pytest_plugin import collecting  # noqa: PLC0415 - as above

        collecting.parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only what a recorded run can be of, if one is to be done again."""
    if config.getoption("asyncsim_replay"):
        from asyncsim.pytest_plugin import replaying  # noqa: PLC0415 - as above

        replaying.select(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let the witnesses of a test and its fixtures be saved, if the option says so."""
    if item.config.getoption("asyncsim_save") is None:
        return (yield)
    from asyncsim.pytest_plugin import saving  # noqa: PLC0415 - as above

    with saving.saving(item):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Judge the kernel that a marked test returns."""
    if pyfuncitem.get_closest_marker(MARK) is None:
        return None
    from asyncsim.pytest_plugin import judging  # noqa: PLC0415 - as above

    judging.judge_item(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the whole report of a failure in a section of its own."""
    if call.excinfo is None or "asyncsim.testing.requirement" not in sys.modules:
        return (yield)
    from asyncsim.pytest_plugin import sections  # noqa: PLC0415 - as above

    error = sections.shorten(call.excinfo.value)
    made = yield
    if error is not None:
        made.sections.append(("asyncsim", sections.section_text(error, item)))
    return made


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """Judge kernels: ``judge(kernel, ranks=3)`` returns the report, or fails; ``await judge.aio(...)`` under trio."""
    from asyncsim.pytest_plugin.judging import Judge  # noqa: PLC0415 - as above

    return Judge(request.node)
