"""What Python shows of a report: its text, one line, HTML, rows; and what leads from it back to a run."""

import asyncio
import pydoc

import pytest

from asyncsim import MisuseError, check, replay, simulate
from asyncsim.views.report import report_text
from kernels.reduce_scatter import builtin, hand, no_post_barrier


@pytest.fixture(scope="module")
def report():
    return check(no_post_barrier, ranks=3)


def test_a_report_prints_as_the_command_prints_it(report):
    assert f"{report}\n" == report_text(report)


def test_the_repr_of_a_report_is_one_line(report):
    assert repr(report) == ("<Report REFUTED kernels.reduce_scatter:no_post_barrier, P = 3: WAR race, next call>")
    assert repr(check(builtin, ranks=2)) == "<Report PROVED kernels.reduce_scatter:builtin, P = 2: no findings>"


def test_a_notebook_shows_a_card_a_finding_and_escapes_what_is_the_authors(report):
    shown = report._repr_html_()
    assert shown.count("<b>1. WAR race, next call") == 1
    for side in report.findings[0].sides:
        assert side.at[0] in shown
    assert "acc += await rank.load(data.at(peer)[rank.id])" in shown
    assert "signal[0, 0]@1 &gt;= 1" in shown
    assert shown.count("<div") == shown.count("</div>")


def test_findings_are_rows_of_plain_values(report):
    (row,) = report.rows()
    finding = report.findings[0]
    assert row["title"] == finding.title
    assert (row["first"], row["second"]) == tuple(side.at[0] for side in finding.sides)
    assert {type(value) for value in row.values()} == {str, bool}


def test_a_token_is_a_text_wherever_a_run_is_wanted(report):
    done = replay(report.findings[0].token, no_post_barrier)
    assert done.steps == len(done.run.choices) > 0
    with pytest.raises(MisuseError, match="there is no trace file 'nothing'"):
        replay("nothing", no_post_barrier)


def test_a_check_is_awaited_and_called_inside_a_loop_of_asyncio():
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        awaited = await check.aio(hand, ranks=2)
        ticking.cancel()
        return ticks, awaited.verdict, check(hand, ranks=2).verdict

    ticks, awaited, called = asyncio.run(main())
    assert ticks > 1
    assert awaited == called == "REFUTED"


@pytest.mark.parametrize("function", [check, replay, simulate], ids=lambda function: function.__name__)
def test_help_shows_the_signature_and_what_each_argument_is(function):
    shown = pydoc.render_doc(function, renderer=pydoc.plaintext)
    assert f"\n{function.__name__}(" in shown
    assert "    Args:" in shown
