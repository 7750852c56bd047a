"""Any number of calls, where calls synchronise by words, steps of a wait and an update, and results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sync_programs import PROTOCOLS, program_number
from sync_runs import in_calls, played_call_by_call
from sync_toy import parse

from asyncsim.analysis.analyse import analyse
from asyncsim.analysis.repeat import beyond

if TYPE_CHECKING:
    from collections.abc import Callable

ORDINARY, THOROUGH = 60, 2_000
MOST = 5
"""So many calls a claim is held against."""


@pytest.mark.law
def test_no_claim_is_wrong(programs_of: Callable[[int, int], int]) -> None:
    each = programs_of(ORDINARY, THOROUGH)
    told: Counter[str] = Counter()
    wrong = []
    for family in PROTOCOLS:
        for number in range(each):
            program = program_number(family, number)
            for calls in (2, 3):
                some = in_calls(program, calls)
                trace = None if some is None else played_call_by_call(some, calls, number)
                if trace is None or not analyse(trace).clean:
                    continue
                told["clean"] += 1
                claim = beyond(trace)
                told["claimed", family] += claim is not None
                if claim is None:
                    continue
                told["claimed"] += 1
                many = in_calls(program, MOST)
                assert many is not None
                longer = played_call_by_call(many, MOST, number)
                if longer is None or not analyse(longer).clean:
                    wrong.append(f"{calls} calls of {program}")
    assert not wrong, "\n".join(wrong[:5])
    assert told["claimed"] >= 0.3 * told["clean"], told
    assert sum(told["claimed", family] > 0 for family in PROTOCOLS) >= 5, told


@pytest.mark.parametrize("call", [
    "st x; wait c == 0 c := 1; wait d == 1 d := 0 || wait c == 1 c := 0; ld x; wait d == 0 d := 1",
    "st x; c := 1; wait d == 1 || wait c == 1; ld x; d := 1",
    "st x; c max 1; wait d >= 1 || wait c >= 1; ld x; d max 1",
    "st x; get c += 1; wait d >= 1 || wait c >= 1; ld x; get d += 1",
])  # fmt: skip
def test_a_handshake_is_proved_for_any_number_of_calls(call: str) -> None:
    some = in_calls(parse(call), 3)
    assert some is not None
    trace = played_call_by_call(some, 3, 0)
    assert trace is not None
    assert analyse(trace).clean
    assert beyond(trace) is not None


def test_bits_that_pile_up_do_not_repeat() -> None:
    program = parse("c |= 1; d += 1; wait e >= 1 || wait d >= 1; read c; e += 1")
    some = in_calls(program, 3)
    assert some is not None
    # The first call finds 0, the later ones 1; what a bit adds later calls would only seem to repeat.
    some = replace(some, actors=tuple(tuple(replace(op, operand=1) if op.update == "|=" else op for op in ops)
                                      for ops in some.actors))  # fmt: skip
    trace = played_call_by_call(some, 3, 0)
    assert trace is not None
    claim = beyond(trace)
    assert claim is None or claim.period.first >= 1
