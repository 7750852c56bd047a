"""Damaged traces: the error says what is wrong, and in which line."""

from __future__ import annotations

import json

import pytest
from everything import LINES, PLAIN, TEXT, TRACE, everything, read, written
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncsim import ATOMIC_ADD, TraceError, Window
from asyncsim.trace import jsonl_read, jsonl_step
from asyncsim.trace.event import Event, Footer, Header, Trace
from asyncsim.trace.op import Op
from asyncsim.trace.strict import parse_json
from asyncsim.trace.world import World


@given(st.integers(0, len(TEXT) - 2), st.characters(codec="utf-8"))
@settings(max_examples=200)
def test_one_changed_character_is_found_in_its_line(at, sign):
    changed = TEXT[:at] + sign + TEXT[at + 1 :]
    if changed == TEXT:
        return
    with pytest.raises(TraceError) as caught:
        read(changed)
    assert caught.value.line in (TEXT[:at].count("\n") + 1, TEXT[:at].count("\n") + 2)


@given(st.data())
def test_lost_and_moved_lines_are_found(data):
    at = data.draw(st.integers(0, len(LINES) - 2))
    with pytest.raises(TraceError) as caught:
        read("".join(LINES[:at] + LINES[at + 1 :]))
    assert caught.value.line == at + 1
    to = data.draw(st.integers(0, len(LINES) - 1).filter(lambda to: to != at))
    lines = LINES[:at] + LINES[at + 1 :]
    lines.insert(to, LINES[at])
    with pytest.raises(TraceError) as caught:
        read("".join(lines))
    assert caught.value.line == min(at, to) + 1


leaves = st.none() | st.booleans() | st.integers(-3, 300) | st.floats() | st.text(max_size=3) | st.just(1 << 70)


@given(st.data())
@settings(max_examples=300)
def test_without_sums_a_changed_line_is_refused_or_gives_a_trace(data):
    at = data.draw(st.integers(0, len(PLAIN) - 1))
    line = json.loads(PLAIN[at])
    holder, key = line, None
    while isinstance(holder, dict | list) and holder:
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    if data.draw(st.booleans()):
        holder[key] = data.draw(leaves | st.lists(leaves, max_size=3))
    else:
        del holder[key]
    text = "".join([*PLAIN[:at], json.dumps(line) + "\n", *PLAIN[at + 1 :]])
    try:
        again = read(text)
    except TraceError as error:
        assert error.line is not None  # noqa: PT017 - either way out is right
        assert error.line >= at + 1  # noqa: PT017 - as above
    else:
        assert written(read(written(again))) == written(again)


def changed(number, old, new, lines=PLAIN):
    assert old in lines[number - 1], lines[number - 1]
    return "".join([*lines[: number - 1], lines[number - 1].replace(old, new, 1), *lines[number:]])


def line_of(part):
    return next(number for number, line in enumerate(PLAIN, 1) if part in line)


HEADER_FAULTS = [
    ('"format": 1', '"format": 2', "format 2; this asyncsim reads format 1"),
    ('"format": 1', '"format": true', "format True"),
    ('"header"', '"step"', "a line of the kind 'step', where a header belongs"),
    ('"ranks": 2', '"ranks": 3', "2 actors for 3 ranks"),
    ('"ranks": 2', '"ranks": 1e99', "'ranks' is 1e+99"),
    ('"actor": "1"', '"actor": "x"', "the actor of rank 1 is called '1'"),
    ('"calls": 1', '"calls": 1000000', "1 to 65536"),
    ('"groups": []', '"groups": [1]', "a group is 1; it must be an object"),
    ('"edits": []', '"edits": [7]', "an edit is 7; it must be a text"),
    ('"edits": []', '"edits": 7', "'edits' is 7; it must be a list"),
    ('"memory": "sc"', '"memory": "\\ud800"', "half a character"),
    ('"seed": 0', '"seed": 0, "hour": 3', "a field 'hour' that does not belong there"),
    ('"seed": 0', '"seed": 0, "seed": 3', "the key 'seed' stands twice"),
    ('"seed": 0', '"seed": NaN', "NaN is no JSON"),
    ('"seed": 0', '"seed": 1e999', "too large"),
    ('"seed": 0', f'"seed": {"9" * 5000}', "a number of 5000 digits"),
    ('"seed": 0', f'"seed": {"[" * 5000}', "nested deeper than 32"),
    ('"seed": 0, ', "", "has no 'seed'"),
    ('"float32"', '"object"', "'dtype' is 'object'"),
    ('"dtype": "int8", "start"', '"dtype": "float32", "start"', "a signal is one of int8"),
    ('"window": "one"', '"window": "data"', "two declarations are called 'data'"),
    ('"window": "one"', '"door": "one"', "a declaration has no 'signal'"),
    ('"initialised": true', '"initialised": 1', "must be true or false"),
    ('"dirty": 0', '"dirty": "clean"', "'dirty' is 'clean'; it must be a number"),
    ("[2, 3, 20]", "[2, 3, 99999999999999]", "bytes; at most"),
    ('"shape": [2, 1]', '"shape": [2, 99999999999999]', "cells; at most"),
    (json.dumps(everything.source), '"0123"', "16 hex digits"),
]


@pytest.mark.parametrize(("old", "new", "reason"), HEADER_FAULTS)
def test_a_header_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(1, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == 1


STEP_FAULTS = [
    (2, '"step": 0', '"step": 1', "step 1, where step 0 belongs"),
    (2, '"actor": "0"', '"actor": "9"', "the header knows no actor '9'"),
    (2, '"rank": 0', '"rank": 1', "actor 0 is of rank 0, not 1"),
    (2, '"call": 0', '"call": 1', "'call' is 1; it must be an integer, 0 to 0"),
    (2, '"op": "store"', '"op": "fly"', "'op' is 'fly'"),
    (2, '"op": "store"', '"op": "wait"', "has no 'how'"),
    (2, '"op": "store"', '"op": "load"', "the mode write does not fit"),
    (2, '"op": "store"', '"op": "remote_store"', "is not where this kind goes"),
    (2, '"op": "store"', '"op": "get"', "1 accesses; it has a source and a target"),
    (2, '"window": "data"', '"window": "flag"', "the header declares no window 'flag'"),
    (2, '"owner": 0', '"owner": 2', "'owner' is 2"),
    (2, "[0, 2, 1]", "[0, 4, 1]", "a stop is 4; it must be an integer, 0 to 3"),
    (2, "[0, 2, 1]", "[0, 2]", "[0, 2] is no [start, stop, step]"),
    (2, "[0, 2, 1]", "[0, 2, 0]", "a step is 0"),
    (2, "[0, [0, 2, 1]", "[2, [0, 2, 1]", "an offset is 2; it must be an integer, 0 to 1"),
    (2, "[0, [0, 2, 1]", "[[0, 2, 1]", "'region' has 2 offsets"),
    (2, '"write"', '"read it"', "'mode' is 'read it'"),
    (2, '"at": [', '"at": ["a:1", "b:2", ', "'at' has 3 entries; it must have 0 to 2"),
    (2, '"at": [', '"at": ["no line", ', "a line of 'at' is 'no line'; it must be a source line, as file:number"),
    (2, '"at": [', '"at": [3, ', "a line of 'at' is 3"),
    (2, '"accesses": [', '"accesses": [3, ', "'accesses' has 2 entries; it must have 1"),
    (2, '"phase": ', '"unknown": 1, "phase": ', "a field 'unknown' that does not belong there"),
    (2, "1.0,", "", "'value' has 3 elements"),
    (2, '"event": "step"', '"event": "leap"', "a line of the kind 'leap', where a step or footer belongs"),
    (2, "{", "", "no JSON: "),
    (2, "{", "[{", "no JSON: "),
]


@pytest.mark.parametrize(("number", "old", "new", "reason"), STEP_FAULTS)
def test_a_step_that_cannot_be_is_refused(number, old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(number, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == number


ROW = '"region": [1, 0, [0, 20, 1]]'
FAULTS_BY_LINE = [
    ('"op": "wait"', '"need": 1', '"need": 1, "order": "sc"', "'order' is 'sc'"),
    ('"op": "wait"', '"need": 1', '"need": 1, "order": "acquire"', "'order' is 'acquire'"),
    ('"op": "wait"', '"need": 1', '"need": 1, "scope": "world"', "'scope' is 'world'"),
    ('"op": "wait"', '"need": 1', '"need": 1, "update": "Set"', "'operand' is None"),
    ('"op": "wait"', '"need": 1', '"need": 1, "operand": 1', "there is an 'operand', and no 'update'"),
    ('"op": "wait"', '"need": 1', '"need": 1, "update": "Eq", "operand": 0', "'update' is 'Eq'"),
    ('"op": "wait"', '"how": "Eq"', '"how": "Set"', "'how' is 'Set'"),
    ('"op": "wait"', '"need": 1', '"need": 200', "'need' is 200"),
    ('"op": "wait"', '"have": 1', '"have": null', "'have' is None"),
    ('"op": "wait"', '"index": [0, 0]', '"index": [0]', "'index' has 1 offsets"),
    ('"op": "wait"', '"index": [0, 0]', '"index": [0, 1]', "an offset is 1"),
    ('"op": "wait"', '"signal": "flag"', '"signal": "data"', "data has shape"),
    ('"op": "notify"', '"value": 3', '"value": 128', "'value' is 128"),
    ('"op": "notify"', '"value": 3', '"value": 3, "consume": true', "a field 'consume'"),
    ('"op": "notify"', ATOMIC_ADD, "Ge", "'how' is 'Ge'"),
    ('"op": "get"', '"mode": "read"', '"mode": "write"', "the source, is not a read"),
    ('"op": "get"', '"mode": "write"', '"mode": "read"', "a copy reads its target exactly when it is the source"),
    ('"op": "get"', "[1, 0, [0, 20, 1]]", "[1, 0, [0, 19, 1]]", "differ in shape or dtype"),
    ('"op": "get"', f'0, {ROW}, "mode": "write"', f'1, {ROW}, "mode": "write"', "is a peer's"),
    ('"op": "put"', '"owner": 0', '"owner": 1', "the source data[1, 0, 0:20]@1 is a peer's"),
    ('"op": "put", "accesses": [{"window": "one"', '"mode": "add"', '"mode": "read"', "it writes nothing"),
    ('"op": "remote_load"', '"accesses": [', '"accesses": [], "x": [', "'accesses' has 0 entries; it must have 1"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "old", "new", "reason"), FAULTS_BY_LINE)
def test_an_operation_that_its_kind_does_not_allow_is_refused(part, old, new, reason):
    number = line_of(part)
    with pytest.raises(TraceError) as caught:
        read(changed(number, old, new))
    assert reason in caught.value.reason
    assert caught.value.line == number


FOOTER_FAULTS = [
    ('"deadlock"', '"bored"', "'ending' is 'bored'"),
    (f'"steps": {len(TRACE.events)}', '"steps": 3', f"counts 3 steps; the trace has {len(TRACE.events)}"),
    ('"outputs": [', '"outputs": [[null, null], ', "'outputs' of 2 calls; the run makes 1"),
    ('"outputs": [[', '"outputs": [[null, ', "3 outputs of a call; there are 2 ranks"),
    ('"outputs": [[', '"outputs": [["x", ', "an output is 'x'"),
    ('"pending": [', '"pending": [4, ', "a pending operation is 4"),
    ('"pending": [{', '"pending": [{"step": 1, ', "a field 'step'"),
    ('"ending"', '"findings": [{}], "ending"', "a finding has no 'kind'"),
    ('"ending"', '"verdict": 4, "ending"', "'verdict' is 4"),
]


@pytest.mark.parametrize(("old", "new", "reason"), FOOTER_FAULTS)
def test_a_footer_that_cannot_be_is_refused(old, new, reason):
    with pytest.raises(TraceError) as caught:
        read(changed(len(PLAIN), old, new))
    assert reason in caught.value.reason
    assert caught.value.line == len(PLAIN)


def test_booleans_cannot_be_added():
    world = World(1, [Window("mask", (1,), bool)])
    op = Op(world.actors[0], "store", world.views(0)[0][0].adds)
    text = written(Trace(Header("k:k", "", world, 1, "sc", 0, ""), [Event(0, op, 0, "", ())], Footer("complete", [])))
    with pytest.raises(TraceError, match="line 2: rank 0, store: booleans cannot be added"):
        read(text)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "empty"),
        ("\n", 1, "no JSON"),
        ("[]\n", 1, "the line is []; it must be an object"),
        (TEXT + LINES[1], len(LINES) + 1, "the crc does not fit"),
        ("".join(PLAIN) + PLAIN[1], len(LINES) + 1, "content after the footer"),
        (LINES[0] + PLAIN[1], 2, "no crc, though the lines before have one"),
        (PLAIN[0] + LINES[1], 2, "a crc, though the lines before have none"),
        (PLAIN[0] + '"\ud800"\n', 2, "no UTF-8"),
        (PLAIN[0] + PLAIN[0], 2, "of the kind 'header', where a step or footer belongs"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(text, line, reason):
    with pytest.raises(TraceError) as caught:
        read(text)
    assert reason in caught.value.reason
    assert caught.value.line == line


def test_a_line_without_end_is_not_held_in_memory(monkeypatch):
    monkeypatch.setattr(jsonl_read, "MAX_LINE", 5000)
    with pytest.raises(TraceError, match="line 2: the line is longer than 5000 characters"):
        read(PLAIN[0] + " " * 6000)


def test_a_region_of_very_many_pieces_is_not_made(monkeypatch):
    monkeypatch.setattr(jsonl_step, "MAX_SPANS", 3)
    with pytest.raises(TraceError, match="line 2: the regions so far are more than 3 pieces of memory"):
        read(TEXT)


def test_brackets_inside_a_text_are_no_nesting():
    assert parse_json(json.dumps(["[" * 100 + '"{\\'])) == ["[" * 100 + '"{\\']
