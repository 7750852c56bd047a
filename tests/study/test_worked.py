"""Worked examples: the numbers, what a changed input changes, and the words in three formats."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from asyncsim import MisuseError, ReduceOp, RefusedError
from asyncsim.study.worked import COLLECTIVES, OPS, REDUCING, Change, work
from asyncsim.study.worked_inputs import Asked, worked_example
from asyncsim.views.worked import (
    Heading,
    Marked,
    Sentences,
    Table,
    document_html,
    document_markdown,
    document_text,
    worked_text,
)


def example(collective="reduce_scatter", **asked):
    return worked_example(Asked(collective=collective, **asked))


def lists(arrays):
    return [array.tolist() for array in arrays]


FULL = [111, 222, 333, 444, 555, 666]


def test_the_reference_example():
    worked = example()
    assert lists(worked.inputs) == [[1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60], [100, 200, 300, 400, 500, 600]]
    assert lists(worked.outputs) == [[111, 222], [333, 444], [555, 666]]
    assert worked.agrees


def test_one_input_changes_one_fragment():
    worked = example(settings=["2,5=601"])
    assert worked.inputs_changed == (Change(2, 5, 600, 601),)
    assert worked.changed == (Change(2, 1, 666, 667),)
    everywhere = example("all_reduce", settings=["2,5=601"])
    assert everywhere.changed == tuple(Change(rank, 5, 666, 667) for rank in range(3))


def test_a_gather_of_the_results_is_the_full_sum_and_what_an_all_reduce_gives():
    worked = example(then="all_gather", settings=["2,5=601"])
    assert lists(worked.gathered) == [[*FULL[:5], 667]] * 3
    assert worked.gathered_changed == tuple(Change(rank, 5, 666, 667) for rank in range(3))
    assert worked.against_all_reduce == ()
    assert lists(example("all_reduce").outputs) == [FULL] * 3


@pytest.mark.parametrize("ranks", [1, 3, 4])
@pytest.mark.parametrize("size", [0, 2])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_agrees_with_numpy_and_its_terms_explain_each_element(collective, size, ranks):
    for op in OPS if collective in REDUCING else (None,):
        worked = example(collective, ranks=ranks, size=size, op=op, dtype="float64")
        assert worked.agrees
        assert (worked.ranks, worked.size) == (ranks, size)
        for rank, y in enumerate(worked.outputs):
            for index, got in enumerate(y):
                terms = [worked.inputs[r][i] for r, i in worked.terms(rank, index)]
                want = terms[0] if op is None else OPS[op].reduce([np.array(term) for term in terms])
                np.testing.assert_allclose(got, want)
        for form in ("text", "markdown", "html"):
            assert worked_text(worked, form=form).endswith("\n")


def test_moving_collectives_say_from_whom():
    text = worked_text(example("all_to_all", settings=["0,2=7"]))
    assert "rank  from rank 0  from rank 1  from rank 2" in text
    assert "1     [7*, 4]      [30, 40]     [300, 400]" in text
    assert "Changed: rank 1's element [0] is 7*, and was 3.\nNothing else changes." in text
    assert "Rank 0 is the root: only its input is sent." in worked_text(example("broadcast"))


def test_an_input_that_loses_changes_no_result():
    text = worked_text(example(op="max", settings=["0,0=9"]))
    assert "No result changes." in text
    assert "max(9*, 10, 100) = 100" in text


def test_an_input_that_is_set_to_what_it_was_changes_nothing():
    worked = example(settings=["2,5=600"])
    assert (worked.inputs_changed, worked.changed) == ((), ())
    assert "Set: the inputs are what they were.\nNo result changes." in worked_text(worked)


def test_an_average_divides_and_says_so():
    assert lists(example(op="avg").outputs) == [[37.0, 74.0], [111.0, 148.0], [185.0, 222.0]]
    text = worked_text(example(op="avg"))
    assert "(1.0 + 10.0 + 100.0) / 3 = 37.0" in text
    assert "avg is the sum divided by 3, the number of ranks; the sum itself is --op sum." in text
    down = worked_text(example(op="avg", ranks=2, size=1, dtype="int32"))
    assert "(1 + 10) / 2 = 5" in down
    assert "rounded down to a whole number" in down


def test_integers_that_wrap_are_told():
    worked = example(op="prod", ranks=2, size=1, dtype="int8")
    assert worked.wrapped == ()
    assert "1 * 10 = 10" in worked_text(worked)
    worked = example(op="prod", ranks=2, size=2, dtype="int8")
    assert worked.wrapped == (Change(1, 1, 160, np.int8(-96)),)
    assert "Integers wrap: the exact result does not fit int8 everywhere.\nRank 1's element [1] would be 160." in (
        worked_text(worked)
    )


def spread():
    """Return numbers whose sum depends on the order."""
    return [np.full(4, number, np.float32) for number in (1e8, 1, -1e8, 0.5)]


def test_where_bits_differ_by_order_is_said():
    scattered = work("reduce_scatter", spread(), op=ReduceOp.Sum, then_gather=True)
    assert scattered.agrees
    assert scattered.order
    assert scattered.against_all_reduce
    text = worked_text(scattered)
    assert "So bits differ from the same reduction from rank 0 up:\nrank 2's element [0] is" in text
    assert "the same but for bits: there each rank has an order of its own.\nOn rank" in text
    reduced = work("all_reduce", spread(), op=ReduceOp.Sum)
    assert reduced.order
    text = worked_text(reduced)
    assert "So bits differ from rank 0's result:\n" in text
    assert "\n3     [0]" in text  # ranks have results of their own, so all are shown
    assert "no bit differs from rank 0's result" in worked_text(example("all_reduce", dtype="float32"))


def test_long_lists_are_cut():
    worked = example("all_reduce", size=4, settings=["0,1=5"], ranks=9)
    assert "... and 1 more." in worked_text(worked)


def test_what_numpy_does_not_confirm_is_said():
    worked = replace(example(then="all_gather"), agrees=False)
    assert "numpy gives something ELSE" in worked_text(worked)
    wrong = replace(worked, gathered=(*worked.gathered[:2], worked.gathered[2] + 1))
    assert "NOT those above" in worked_text(wrong)


# ---- what is refused


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"collective": "gossip"}, "no collective is called 'gossip'; there are reduce_scatter, "),
        ({"op": "xor"}, "--op xor: no such operator; there are sum, avg, prod, min, max"),
        ({"collective": "all_gather", "op": "sum"}, "all_gather reduces nothing"),
        ({"collective": "all_reduce", "then": "all_gather"}, "--then all_gather after all_reduce; it is"),
        ({"then": "broadcast"}, "it is all_gather, after a reduce_scatter"),
        ({"ranks": 0}, "give 1 to 64 ranks"),
        ({"ranks": 65}, "give 1 to 64 ranks"),
        ({"size": -1}, "a size >= 0"),
        ({"ranks": 25}, "go up to 50000000000000000000000000, which does not fit int64"),
        ({"ranks": 6, "dtype": "float16"}, "does not fit float16"),
        ({"settings": ["2;5=1"]}, "--set 2;5=1: write rank,element=number, such as 2,5=601"),
        ({"settings": ["3,0=1"]}, "there are the ranks 0 to 2"),
        ({"settings": ["2,6=1"]}, "rank 2 has the elements 0 to 5"),
        ({"settings": ["0,0=1"], "size": 0}, "the inputs are empty"),
        ({"settings": ["0,0=1.5"]}, "1.5 is no int64"),
        ({"settings": ["0,0=300"], "dtype": "int8", "ranks": 1}, "300 is no int8"),
        ({"settings": ["0,0=x"], "dtype": "float32"}, "x is no float32"),
    ],
)
def test_what_cannot_be_is_refused(asked, message):
    with pytest.raises(MisuseError) as caught:
        example(**asked)
    assert message in str(caught.value)


def test_an_operator_without_a_meaning_is_refused():
    with pytest.raises(RefusedError):
        work("all_reduce", [np.zeros(1)], op=ReduceOp.BAND)


# ---- formats

BLOCKS = [
    Heading("<b> & | *"),
    Sentences((("one ", Marked("<2>")), ("three",))),
    Table(("a|b", "<c>"), (((Marked("1"),), ("2", " & 3")),)),
    Heading("next"),
]


def test_plain_text_lines_up_and_marks_with_a_star():
    assert document_text(BLOCKS) == "<b> & | *\n\none <2>*\nthree\n\na|b  <c>\n---  -----\n1*   2 & 3\n\nnext\n"


def test_markdown_is_escaped():
    assert document_markdown(BLOCKS) == (
        "# \\<b\\> & \\| \\*\n\none **\\<2\\>**\nthree\n\n"
        "| a\\|b | \\<c\\> |\n| --- | --- |\n| **1** | 2 & 3 |\n\n## next\n"
    )


class Tags(HTMLParser):
    """What a browser reads: that tags close as they open, and the texts that are marked."""

    def __init__(self, page):
        """Read a page."""
        super().__init__()
        self.open = []
        self.marked = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        assert not {"src", "href"} & {name for name, _ in attributes}
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["mark"]:
            self.marked.append(data)


def test_html_is_escaped_closed_and_stands_alone():
    page = document_html(BLOCKS)
    tags = Tags(page)
    assert (tags.open, tags.marked) == ([], ["<2>", "1"])
    assert "<title>&lt;b&gt; &amp; | *</title>" in page
    assert "<h2>next</h2>" in page
    assert "<title></title>" in document_html([])


def test_the_changed_fragment_is_what_is_marked_in_html():
    assert Tags(worked_text(example(settings=["2,5=601"]), form="html")).marked == [
        "601", "601", "667", "667", "601", "667",
    ]  # fmt: skip
