"""The independent checker of certificates. It shares no code with the analysis that it checks.

A certificate is a run and *holds*: an event y, and a *cut*, one position an actor. A cut is closed if y is
not in it, and whatever comes next in it is y, or needs an event that is not in it, or is a wait that is
false on it. That suffices for "nothing outside the cut happens before y": the first event to leave would
be a wait that is true on a part of the cut and false on all of it, and credits only grow. So a cut need
be neither reachable nor the greatest, and nothing is searched for here. The steps:

1. `events`, `streams`: spell out what lands late, and the edges that order it, from the memory model;
2. `proof`: replay the run: every event once, in order, each wait true where it stands;
3. `proof`: see that each cut is closed;
4. `conditions`: S1 to S5 from the cuts alone; an absent cut proves nothing;
5. `coverage`: see that each access comes after those before it in the run that it conflicts with.

If all hold, every schedule takes the same steps with the same values. It is the proof of the analysis read
backwards: the first step that a schedule takes differently would be a load that sees another write (5), a
wait that passes where it must not, or is missed (3, 4), or a test with another answer (4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asyncsim.certify.conditions import (
    answers_are_constant,
    cells_keep_to_their_range,
    kinds_are_ordered,
    sets_are_ordered,
    threats_are_ordered,
    waits_are_stable,
)
from asyncsim.certify.coverage import accesses_are_ordered
from asyncsim.certify.events import Program
from asyncsim.certify.proof import Proof, replay, take_cuts, take_epochs, take_ways
from asyncsim.certify.reading import RejectedError, UnreadableError, read
from asyncsim.certify.streams import check_ranks, link, order_within_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Certified", "RejectedError", "UnreadableError", "certify"]


@dataclass(frozen=True, slots=True)
class Certified:
    """What an accepted certificate is about: every schedule of the operations in it does the same.

    Args:
        kernel: its name.
        source: the digest of its source file.
        ranks: P.
        calls: back to back.
        memory: the memory model.
        seed: of the inputs.
        actors: how many; a cut is one integer for each.
        steps: of the run, landings included.
        holds: the events that are held.
        cuts: for them, one for all that share it.

    """

    kernel: str
    source: str
    ranks: int
    calls: int
    memory: str
    seed: int
    actors: int
    steps: int
    holds: int
    cuts: int


def certify(lines: Iterable[str]) -> Certified:
    """Check a certificate, line by line, and return what it certifies.

    Raises:
        RejectedError: it proves nothing; the message says why, and in which line.
        UnreadableError: it is not a certificate at all.

    """
    file = read(lines)
    streams = [stream for _, stream in file.streams]
    check_ranks(file.header, streams)
    proof = Proof(Program(file.header, streams))
    link(proof.program, streams)
    replay(proof, [(thread, count) for _, line in file.runs for thread, count in line["run"]])
    order_within_ranks(proof)
    take_epochs(proof, file.epochs)
    take_ways(proof, file.ways)
    take_cuts(proof, file.cuts)
    for check in CHECKS:
        check(proof)
    head = file.header
    return Certified(
        kernel=head["kernel"], source=head["source"], ranks=head["ranks"], calls=head["calls"],
        memory=head["memory"], seed=head["seed"], actors=proof.program.actors, steps=len(proof.run),
        holds=sum(map(len, proof.cuts.values())), cuts=len(file.cuts),
    )  # fmt: skip


CHECKS: tuple[Callable[[Proof], None], ...] = (
    sets_are_ordered,
    kinds_are_ordered,
    threats_are_ordered,
    waits_are_stable,
    answers_are_constant,
    cells_keep_to_their_range,
    accesses_are_ordered,
)
"""What is left to see once the run is replayed and the cuts are closed."""
