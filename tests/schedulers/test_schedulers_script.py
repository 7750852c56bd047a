"""Scripts: which operations their rules hold and let go, and how they are written."""

from __future__ import annotations

import pytest
from scheduled import RULE, choices, copies, free, read_peer

from asyncsim import Case, MisuseError, simulate
from asyncsim.schedulers.hold import Hold, Step, parse_rules
from asyncsim.schedulers.script import Script
from asyncsim.schedulers.table import make


def test_a_script_holds_an_operation_until_another_one_was_done():
    assert choices(read_peer, make("fifo"), ranks=2) == "011"
    assert choices(read_peer, Script(RULE), ranks=2) == "101"
    later = Script("hold rank 0 before its remote_load until rank 1 has done its 2nd store")
    assert choices(read_peer, later, ranks=2) == "110"


def test_a_script_counts_operations_and_calls():
    second = "hold rank 1 before its 2nd store of data@1 until rank 0 has loaded in call 0"
    assert choices(read_peer, Script(second, make("eager")), ranks=2, calls=2) == "001111"
    assert choices(read_peer, Script(second, make("starve:rank=0")), ranks=2, calls=2) == "101110"
    later = "hold rank 0 before its remote_load of data in call 1 until rank 1 has stored to data in call 1"
    assert choices(read_peer, Script(later), ranks=2, calls=2) == "011101"


def test_a_rule_on_an_nth_operation_ends_with_it():
    rules = "hold rank 0 before its 1st store until rank 1 has done its 9th store"
    script = Script(rules, make("eager"))
    assert choices(free, script) == "111222000"
    assert len(script.released) == 1


def test_where_all_are_held_the_oldest_rule_is_let_go():
    rules = "hold rank 1 before its store until rank 0 has stored; hold rank 0 before its store until rank 1 has stored"
    script = Script(rules)
    assert choices(free, script, ranks=2) == "101010"
    (released,) = script.released
    assert released == (0, Hold.parse(rules.split(";", maxsplit=1)[0]))
    choices(free, script, ranks=2)
    assert script.released == [released]


def test_a_rule_that_began_to_hold_first_is_let_go_first():
    rules = parse_rules(
        "hold rank 1 before its 2nd store until rank 0 has done its 9th store\n"
        "hold rank 0 before its 1st store until rank 1 has done its 9th store"
    )
    script = Script(rules)
    assert choices(free, script, ranks=2) == "100011"
    assert script.released == [(1, rules[1]), (4, rules[0])]


@pytest.mark.parametrize(
    "text",
    [
        RULE,
        "hold rank 3 before its 11th wait on flag@3 in call 2\nuntil rank 1 has done its 22nd notify in call 0",
        "hold rank 0 before its test until rank 1 has tested",
        "hold rank 0 before its get from data until rank 1 has put of data in call 1",
        "hold rank 0 before its 3rd put until rank 1 has got",
        "hold rank 0 before its load until rank 1 has done its remote_store",
        "hold   rank 0 before its 1st\tstore until rank 1 has waited",
        "hold rank 0 before its notify until rank 1 has notified on flag",
    ],
)
def test_a_rule_reads_what_it_writes(text):
    rule = Hold.parse(text)
    assert Hold.parse(str(rule)) == rule


def test_a_rule_says_which_operations_it_means():
    step = Hold.parse("hold rank 0 before its put to data@1 until rank 1 has got").before
    assert step == Step(0, ("put",), place="data", owner=1)
    run = simulate(Case(copies, 2, 1), make("fifo"), record="fifo")
    assert [step.matches(event.op) for event in run.trace.events] == [True, False, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "hold rank 0",
        RULE.replace("remote_load", "fly"),
        RULE.replace("has stored", "has done its 0th store"),
        RULE + " soon",
        RULE.replace("stored to data", "stored to data@x"),
    ],
)
def test_a_sentence_that_is_no_rule_is_refused(text):
    with pytest.raises(MisuseError, match="script: "):
        Hold.parse(text)


def test_a_script_takes_its_base_with_all_its_arguments():
    text = f"script:rules={RULE},base=pct:depth=2,seed=4,steps=30"
    assert str(make(text)) == text
    assert str(make(f"script:rules={RULE},base=random", seed=6)).endswith("base=random:seed=6")
