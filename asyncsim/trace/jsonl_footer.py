"""Reading the footer of a trace: how the run ended, what stood at the gate, what was concluded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asyncsim.trace.event import ENDINGS, Collective, Event, Footer
from asyncsim.trace.jsonl_step import read_site
from asyncsim.trace.strict import BadFieldError, Fields, integer_in, list_in, text_in
from asyncsim.trace.values import hex_in

if TYPE_CHECKING:
    from asyncsim.trace.event import Header, Trace
    from asyncsim.trace.jsonl_step import Steps


def read_footer(fields: Fields, steps: Steps, trace: Trace) -> Footer:
    """Return the footer of a trace whose steps were all read.

    Args:
        fields: of the last line.
        steps: the reader of the steps, which has read them all.
        trace: the header and the steps.

    Raises:
        BadFieldError: something in it cannot be.

    """
    header = trace.header
    ending = fields.choice("ending", ENDINGS)
    count = fields.integer("steps", 0)
    if count != len(trace.events):
        raise BadFieldError(f"the footer counts {count} steps; the trace has {len(trace.events)}")
    outputs = [_outputs(row, header) for row in fields.items("outputs")]
    if outputs and len(outputs) != header.calls:
        raise BadFieldError(f"'outputs' of {len(outputs)} calls; the run makes {header.calls}")
    pending: list[Event] = [
        steps.read(Fields(item, "a pending operation"), None, pending=True) for item in fields.items("pending")
    ]
    verdict = fields.text("verdict", "") or None
    findings = fields.items("findings")
    for finding in findings:
        Fields(finding, "a finding").text("kind")
    collectives = [_collective(Fields(item, "a collective"), steps, header) for item in fields.items("collectives")]
    fields.end()
    return Footer(ending, outputs, pending, verdict, findings, collectives)


def _outputs(row: Any, header: Header) -> list[str | None]:  # noqa: ANN401 - any JSON value
    digests = [None if item is None else hex_in(item, "an output") for item in list_in(row, "'outputs'")]
    if len(digests) != header.world.ranks:
        raise BadFieldError(f"{len(digests)} outputs of a call; there are {header.world.ranks} ranks")
    return digests


def _collective(fields: Fields, steps: Steps, header: Header) -> Collective:
    actor = steps.task(fields.text("actor"))
    last = header.world.ranks - 1
    members = tuple(integer_in(rank, "a member", 0, last) for rank in fields.items("members"))
    if (rank := fields.integer("rank", 0)) != actor.rank or rank not in members:
        raise BadFieldError(
            f"actor {actor.name} is of rank {actor.rank}, and calls a collective as {rank} of {members}"
        )
    facts = Fields(fields.take("facts", {}), "'facts'")
    said = tuple((key, facts.text(key)) for key in facts.names())
    made = Collective(
        actor.name, rank, fields.text("group"), members, fields.integer("call", 0, header.calls - 1),
        fields.text("name"), tuple((text_in(key, "a fact"), value) for key, value in said), read_site(fields),
    )  # fmt: skip
    fields.end()
    return made
