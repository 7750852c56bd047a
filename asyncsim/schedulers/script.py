"""A script: rules that hold a rank back before an operation until somebody has done another one.

For a test that needs one certain interleaving and no other detail of the schedule::

    hold rank 0 before its remote_load of data until rank 1 has stored to data in call 1

Several rules are separated by ``;`` or new lines. See `Hold.parse` for all that a rule can say.
Source: IMUnit (Jagannath et al., ECOOP 2011), where a test names the events it wants in an order.

How this differs: a rule never hangs a run. Where all ready operations are held, the rule that has
stood longest is let go, and `Script.released` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asyncsim.schedulers.fifo import Fifo
from asyncsim.schedulers.hold import Hold, parse_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.machine.pick import Scheduler
    from asyncsim.trace.op import Op
    from asyncsim.trace.world import Actor


class Script:
    """The choices of another scheduler, among the operations that no rule holds.

    Args:
        rules: as text, or as data.
        base: who chooses; round robin by default.

    Attributes:
        released: the rules that had to be let go in this run, each with the step.

    """

    __slots__ = ("_base", "_done", "_rules", "_since", "_standing", "_step", "released")

    def __init__(self, rules: str | Sequence[Hold], base: Scheduler | None = None) -> None:
        self._rules = tuple(parse_rules(rules) if isinstance(rules, str) else rules)
        self._base: Scheduler = Fifo() if base is None else base
        self.released: list[tuple[int, Hold]] = []
        self._forget()

    def __str__(self) -> str:
        return f"script:rules={'; '.join(map(str, self._rules))},base={self._base}"

    def begin(self, actors: Sequence[Actor]) -> None:
        """Start a run: every rule stands again."""
        self.released = []
        self._forget()
        self._base.begin(actors)

    def choose(self, ready: Sequence[Op]) -> Op:
        """Return what the base scheduler chooses among those not held."""
        op = self._base.choose(self._free(ready) if self._standing else ready)
        for number in tuple(self._standing):
            self._note(number, op)
        self._step += 1
        return op

    def _forget(self) -> None:
        self._step = 0
        self._standing = dict(enumerate(self._rules))
        self._since: dict[int, int] = {}  # the step at which a rule first held somebody back
        self._done = [[0, 0] for _ in self._rules]  # how often: what is held, what it waits for

    def _free(self, ready: Sequence[Op]) -> Sequence[Op]:
        while True:
            free = [op for op in ready if not self._is_held(op)]
            if free:
                return free
            longest = min(self._since, key=lambda number: (self._since[number], number))
            self.released.append((self._step, self._rules[longest]))
            self._drop(longest)

    def _is_held(self, op: Op) -> bool:
        held = False
        for number, rule in self._standing.items():
            if rule.before.matches(op) and rule.before.nth in (None, self._done[number][0] + 1):
                self._since.setdefault(number, self._step)
                held = True
        return held

    def _note(self, number: int, op: Op) -> None:
        """Count an executed operation for a rule; drop the rule when it has got what it waited for."""
        rule = self._standing[number]
        counts = self._done[number]
        counts[0] += rule.before.matches(op)
        counts[1] += rule.until.matches(op)
        if counts[1] >= (rule.until.nth or 1) or (rule.before.nth is not None and counts[0] >= rule.before.nth):
            self._drop(number)

    def _drop(self, number: int) -> None:
        del self._standing[number]
        self._since.pop(number, None)
