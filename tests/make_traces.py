"""Makes ``traces/``: one shrunk witness a known bug, with the finding it shows in its footer.

    python tests/make_traces.py

The same sources give the same bytes. A trace names source lines and the hash of its kernel's file, so after
a change of a kernel, of a collective or of what a finding says, run this again and look at the difference.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from asyncsim.checking.verdict.check import check
from asyncsim.machine.kernel import kernels_of
from kernels import all_reduce, in_place, reduce_scatter, zero
from kernels.field import CASES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from asyncsim.machine.kernel import Kernel
    from asyncsim.trace.finding import Expected

FOLDER = Path(__file__).resolve().parent.parent / "traces"
EXHIBITS = (reduce_scatter, all_reduce, in_place, zero)
"""The exhibits whose findings about order are kept, beside the field corpus."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A known bug, and the finding whose witness is kept.

    Args:
        kernel: the known-bad one.
        ranks, calls, memory: as few as show it.
        expected: the finding.

    """

    kernel: Kernel
    ranks: int
    calls: int
    memory: str
    expected: Expected

    @property
    def name(self) -> str:
        """Name the file: ``f05_set_zero_erases_next_credit-signal-race.jsonl``."""
        module, _, name = self.kernel.ref.rpartition(":")
        stem = module.rpartition(".")[2] + ("" if name == "buggy" else f"-{name}")
        return f"{re.sub(r'[^A-Za-z0-9_]+', '-', f'{stem}-{self.expected}')}.jsonl"


def wanted() -> Iterator[Wanted]:
    """Yield every bug of the field corpus, and every finding about order that an exhibit declares."""
    for case in CASES:
        yield Wanted(case.buggy, case.ranks, case.calls, case.memory, case.expected)
    for module in EXHIBITS:
        for name, kernel in kernels_of(module.__name__).items():
            # Of two ranks there is one peer, and a barrier that forgets one peer forgets to wait at all.
            ranks = 3 if name == "post_barrier_off_by_one" else 2
            yield from (Wanted(kernel, ranks, 2, "sc", expected) for expected in kernel.finds if expected.hazard)


def witness_of(bug: Wanted) -> bytes:
    """Judge the kernel, and return the trace of the first harmful witness of the finding that is wanted.

    Raises:
        LookupError: the kernel does not give that finding.

    """
    with TemporaryDirectory() as folder:
        report = check(bug.kernel, ranks=bug.ranks, calls=bug.calls, memory=bug.memory, save=Path(folder))
        for finding in report.findings:
            if bug.expected.matches(finding, bug.ranks) and finding.harmful and finding.trace:
                return Path(finding.trace).read_bytes()
    raise LookupError(f"{bug.kernel.ref} gives no harmful {bug.expected} with {bug.ranks} ranks")


def main() -> None:
    """Write every file, and remove traces of bugs that there are no more."""
    made = {bug.name: witness_of(bug) for bug in wanted()}
    FOLDER.mkdir(exist_ok=True)
    for stale in {path.name for path in FOLDER.glob("*.jsonl")} - made.keys():
        (FOLDER / stale).unlink()
    for name, content in made.items():
        (FOLDER / name).write_bytes(content)
    sys.stdout.write(f"{len(made)} traces, {sum(map(len, made.values())) // 1000} kB in {FOLDER.name}/\n")


if __name__ == "__main__":
    main()
