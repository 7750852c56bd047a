"""A program as it was dispatched: judged as it ran, and as it would run on windows that are used again."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.record.replay import replay
from asyncsim.checking.verdict.check import check
from asyncsim.frontends.pypto.fresh import Fresh, with_golden
from asyncsim.frontends.pypto.launch import Live, Memory
from asyncsim.frontends.pypto.streams import streams_of
from asyncsim.frontends.pypto.values import OtherUseError
from asyncsim.machine.case import Case
from asyncsim.trace.errors import AsyncsimError, KernelError, MisuseError
from asyncsim.trace.finding import SURVIVED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.checking.record.replay import Replayed
    from asyncsim.checking.verdict.report import Report
    from asyncsim.frontends.pypto.host import Array
    from asyncsim.frontends.pypto.launch import Launch, Part, Uses
    from asyncsim.frontends.pypto.streams import Streams
    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.event import Trace
    from asyncsim.trace.token import Token


VARIANTS = 8
"""So many dispatches of one program are judged each for itself, if they do other operations with other inputs."""
OUTSIDE = (
    "the operations depend on state outside the program, such as a global that the script changes: run once more on "
    "the same inputs, it did other ones than when it was dispatched. Pass what it goes by as an argument"
)
SERIAL = (
    "the passes of pl.parallel were run one after the other in each rank, as those of pl.range; what they do to each "
    "other when they run at once is not judged"
)
_NO_NOTE = "what this kernel says of when things land"
"""Puts and fences are PyPTO's ordinary words: it has none that land late."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Of a script's runs: the scheduler, the memory model, the seed."""

    scheduler: str
    memory: str
    seed: int


@dataclass(slots=True, eq=False)
class Dispatched:
    """A program with the inputs of its first dispatch.

    Args:
        launch: what went to which rank.
        inputs: the tensors of each rank, as they were before.
        uses: what each window is used for, as far as it is known.
        run: makes the script's run: the scheduler, the memory model, the seed.
        name: in this script; a program that is dispatched with other shapes or numbers, or that then did other
            operations, is another one.
        times: how often the script dispatched it.
        unlike: how many of these dispatches did other operations, and are not judged: there were too many of them.
        streams: what the ranks did in the script's run.
        serial: passes of a loop that may run at once were run one by one.

    """

    launch: Launch
    inputs: list[tuple[Array, ...]]
    uses: Uses
    run: Settings
    _: KW_ONLY
    name: str = ""
    times: int = 1
    unlike: int = 0
    streams: Streams = ()
    serial: bool = False
    _repeats: bool | None = None

    @classmethod
    def of(cls, launch: Launch, uses: Uses, run: Settings) -> Dispatched:
        """Take the inputs, before a run changes them."""
        return cls(launch, [tuple(array.copy() for array in part.arrays) for part in launch.parts], uses, run)

    def note(self, dispatched: list[Dispatched]) -> None:
        """Put it on the list of what a script dispatched, or count it where it stands already."""
        alike = [known for known in dispatched if known.launch.key == self.launch.key]
        same = [known for known in alike if known.streams == self.streams]
        if same:
            same[0].times += 1
            return
        if len(alike) == VARIANTS:
            alike[0].times += 1
            alike[0].unlike += 1
            return
        count = sum(known.launch.name == self.launch.name for known in dispatched)
        self.name = self.launch.name if not count else f"{self.launch.name}#{count + 1}"
        dispatched.append(self)

    def learn(self, other: OtherUseError) -> None:
        """Take note of a use that the rehearsal has not seen."""
        self.uses.add((other.view, other.use))

    def restore(self) -> None:
        """Give the script's tensors the content that they had before."""
        for part, inputs in zip(self.launch.parts, self.inputs, strict=True):
            for array, before in zip(part.arrays, inputs, strict=True):
                array[...] = before

    def run_once(self) -> str:
        """Make the script's run, in the memory of its tensors; return how it ended."""
        while True:
            kernel = self.launch.kernel(
                Memory(self.launch, self.uses), lambda *_: [Live(part.arrays) for part in self.launch.parts]
            )
            try:
                self.streams = self._streams(kernel)
            except KernelError as error:
                raised = error.__cause__ or error
            else:
                return self.streams[0]
            if not isinstance(raised, OtherUseError):
                raise raised  # the author's own, with its traceback; out here, or it would be its own context
            self.learn(raised)
            self.restore()

    def repeats(self) -> bool:
        """Say whether the script's run, made again on the same inputs, does the same; it is made again once."""
        if self._repeats is None:
            try:
                self._repeats = self._streams(self.kernel) == self.streams
            except KernelError:  # it did not raise then
                self._repeats = False
        return self._repeats

    def _streams(self, kernel: Kernel) -> Streams:
        run = self.run
        case = Case(kernel, ranks=self.launch.ranks, calls=1, memory=run.memory, seed=run.seed)
        return streams_of(case, run.scheduler)

    @property
    def kernel(self) -> Kernel:
        """The kernel: call 0 has the inputs of the script, each further one others."""
        return self.launch.kernel(Memory(self.launch, self.uses), self._inputs, name=self.name)

    def judge(self, *, calls: int, memory: str = "sc", seed: int = 0, **options: Any) -> Report:  # noqa: ANN401 - as `asyncsim.check` takes them
        """Check it: ``calls=1`` as it was dispatched, more on windows that are used again.

        Nothing is proved of a program that does not do again what it did when it was dispatched.

        Args:
            calls: how many calls, back to back on the same windows.
            memory: the memory model by name.
            seed: of the inputs.
            options: the further arguments of `asyncsim.check`.

        Raises:
            KernelError: it raises with other inputs.
            MisuseError: it does not do again what it did, and raises.

        """
        repeats = self.repeats()  # now: to judge it may add uses, and so name its windows otherwise

        def use(kernel: Kernel) -> Report:
            measured, fresh = self._measured(kernel, calls, memory, seed)
            ranks = self.launch.ranks
            # The engines make the same runs; without trio a script need not wait for its import.
            report = check(measured, ranks=ranks, calls=calls, memory=memory, seed=seed, engine="direct", **options)
            report.schedules += fresh.made
            report.notes = [note for note in report.notes if not note.startswith(_NO_NOTE)]
            if calls == 1:
                report.later_calls = ""  # as it was dispatched, each call has windows of its own
            return report

        try:
            report: Report = self._learning(use)
        except AsyncsimError as error:
            if repeats:
                raise
            raise MisuseError(f"{self.name}: {OUTSIDE}; now it raises: {error}") from error
        if not repeats:
            _doubt(report, OUTSIDE, "what was judged is not what was dispatched")
        elif self.serial:
            _doubt(report, SERIAL, "passes that run at once were not judged")
        return report

    def again(self, recorded: Trace | Token, *, calls: int, memory: str, seed: int) -> Replayed:
        """Replay a recorded run of it, of so many calls under this memory model."""
        return self._learning(  # type: ignore[no-any-return]
            lambda kernel: replay(recorded, self._measured(kernel, calls, memory, seed)[0])
        )

    def _measured(self, kernel: Kernel, calls: int, memory: str, seed: int) -> tuple[Kernel, Fresh]:
        return with_golden(kernel, Case(kernel, ranks=self.launch.ranks, calls=calls, memory=memory, seed=seed))

    def _learning(self, use: Callable[[Kernel], Any]) -> Any:  # noqa: ANN401 - passed on
        while True:
            try:
                return use(self.kernel)
            except KernelError as error:
                if not isinstance(error.__cause__, OtherUseError):
                    raise
                self.learn(error.__cause__)

    def _inputs(self, _ranks: int, call: int, rng: np.random.Generator) -> Sequence[tuple[Array, ...]]:
        if call == 0:
            return self.inputs
        return [
            tuple(_another(array, part, number, rng) for number, array in enumerate(arrays))
            for part, arrays in zip(self.launch.parts, self.inputs, strict=True)
        ]


def _doubt(report: Report, note: str, scope: str) -> None:
    """Prove nothing, and say why."""
    report.later_calls, report.proof = "", None
    report.notes.append(note)
    if not report.refuted:
        report.verdict, report.scope = SURVIVED, scope


def _another(array: Array, part: Part, number: int, rng: np.random.Generator) -> Array:
    """Return other values of the same shape and dtype.

    What is only written, and each element that is read as a number, an index or a count, stays: other ones would
    not be another input, but perhaps none. Other integers are within the range of the script's.
    """
    if number in part.only_out:
        return array
    other = _drawn(array, rng)
    return np.where(part.control[number], array, other) if number in part.control else other


def _drawn(array: Array, rng: np.random.Generator) -> Array:
    kind = array.dtype.kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, array.shape), bool)
    if kind in "iu":
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        high = max(high, min(low + 100, int(np.iinfo(array.dtype).max)))
        return np.asarray(rng.integers(low, high, array.shape, dtype=array.dtype, endpoint=True))
    return np.asarray(rng.standard_normal(array.shape)).astype(array.dtype)
