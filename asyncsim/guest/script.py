"""A script as a kernel: every process runs it from its first line to its last, and memory comes as it makes it."""

from __future__ import annotations

import builtins
import importlib.abc
import importlib.util
import inspect
import random
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.checking.verdict.check import check
from asyncsim.checking.verdict.report import HARMFUL, count_benign_races
from asyncsim.guest.accesses import NAMES
from asyncsim.guest.host import hosted, keep
from asyncsim.guest.layout import Layout
from asyncsim.guest.rewrite import loops_of, rewritten
from asyncsim.machine.case import Case
from asyncsim.machine.direct import drive
from asyncsim.machine.kernel import Kernel
from asyncsim.schedulers.table import make
from asyncsim.trace.errors import KernelError, MisuseError
from asyncsim.trace.finding import ATOMIC, SUM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import CodeType

    from asyncsim.checking.verdict.report import Report
    from asyncsim.guest.memory import Memory
    from asyncsim.machine.rank import Rank

MOST_RUNS = 400
"""A script that makes memory again and again is followed so often."""


_FREE = (SUM, ATOMIC, "signal-race")
"""What atomics of two processes show where nothing orders them: in these interfaces each order is right."""


class ScriptFailedError(Exception):
    """A process of a script left with a status other than 0."""


@dataclass(slots=True)
class Script:
    """A script, and what is known of it.

    Args:
        path: as its user names it.
        arguments: what it finds behind its name in ``sys.argv``.
        interface: makes a process of a rank, the layout and the views of it; its ``finish`` is called when the script
            has come to its end.
        modules: what it imports of the interface, by name.
        layout: of its memory.
        printed: what it printed in its last run that was followed.
        compiled: its code, which is made once.

    """

    path: str
    arguments: Sequence[str]
    interface: Callable[..., Memory]
    modules: Mapping[str, ModuleType]
    layout: Layout = field(default_factory=Layout)
    printed: str = ""
    compiled: CodeType | None = None

    def code(self) -> CodeType:
        """Return it as code, rewritten.

        Raises:
            MisuseError: there is no such file, or it is no Python.

        """
        if self.compiled is not None:
            return self.compiled
        try:
            source = Path(self.path).read_bytes()
        except OSError as error:
            raise MisuseError(f"{self.path} is not a file that can be read ({error.strerror}); name a script") from None
        try:
            self.layout.loops = loops_of(source)
            self.compiled = compile(rewritten(source, self.path), self.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            place = self.path if error.lineno is None else f"{self.path}:{error.lineno}"
            raise MisuseError(f"the script is no Python: {place}: {error.msg}") from error
        except ValueError as error:  # null bytes
            raise MisuseError(f"the script is no Python: {self.path}: {error}") from error
        return self.compiled

    def kernel(self, *, result: int | None = None) -> Kernel:
        """Return it as a kernel, with the memory that is known.

        Args:
            result: what each process returns; None: nothing, and then what memory holds in the end is the result.

        """
        program = ScriptProgram(self, result)
        return Kernel(program, memory=self.layout.declarations(), given_name=Path(self.path).stem)

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Let imports find the interface, and modules beside the script, while the block runs."""
        before = {name: sys.modules.get(name) for name in self.modules}
        known, path, argv = set(sys.modules), list(sys.path), sys.argv
        folder = str(Path(self.path).resolve().parent)
        finder = _Beside(folder)
        sys.modules.update(self.modules)
        sys.meta_path.insert(0, finder)
        sys.path.insert(0, folder)
        sys.argv = [self.path, *self.arguments]
        try:
            yield
        finally:
            sys.meta_path.remove(finder)
            sys.path[:], sys.argv = path, argv
            for name in finder.found | (set(self.modules) - known):
                sys.modules.pop(name, None)
            sys.modules.update({name: module for name, module in before.items() if module is not None})

    def follow(self, ranks: int, *, memory: str, seed: int) -> None:
        """Run it under the fair schedule until all its memory is known.

        Args:
            ranks: P.
            memory: the memory model.
            seed: of the run.

        Raises:
            KernelError: the script raised in the run in which all was known.
            MisuseError: its memory never comes to an end.

        """
        for _ in range(MOST_RUNS):
            failed: KernelError | None = None
            out = StringIO()
            self.layout.notes.clear()
            with redirect_stdout(out), redirect_stderr(out):
                try:
                    drive(Case(self.kernel(), ranks, 1, memory, seed), make("fifo"), lines=False)
                except KernelError as error:
                    failed = error
            if self.layout.settle():
                continue
            self.printed = out.getvalue()
            if failed is not None:
                raise failed
            return
        raise MisuseError(f"{self.path} makes memory again and again; {MOST_RUNS} pieces are followed, no more")

    def judge(self, ranks: int, **options: Any) -> Report:  # noqa: ANN401 - as `check` takes them
        """Judge it, after `follow`; what it prints is printed no more.

        Args:
            ranks: P.
            options: of `check`.

        """
        races = options.pop("races", HARMFUL)
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            report = self._checked(ranks, None, **options)
            if report.refuted and all(each.kind in _FREE for each in report.findings if each.harmful):
                report = self._checked(ranks, 0, **options)  # then what memory holds in the end is no result
        free = [finding for finding in report.findings if finding.kind in _FREE and not finding.harmful]
        report.findings = [finding for finding in report.findings if finding not in free]
        report.notes += [f"atomics come in whatever order, which is allowed: {each.why}" for each in free]
        report = count_benign_races(report, races)
        report.later_calls = ""  # a script is run once
        report.notes += sorted(self.layout.notes.values())
        return report

    def _checked(self, ranks: int, result: int | None, **options: Any) -> Report:  # noqa: ANN401 - as above
        while True:
            report = check(self.kernel(result=result), ranks=ranks, calls=1, **options)
            if not self.layout.settle():  # else other schedules made other memory, and stood still there
                return report


class ScriptProgram:
    """What the kernel of a script has for its program.

    Args:
        script: is run.
        result: what each process returns.

    """

    def __init__(self, script: Script, result: int | None = None) -> None:
        self._script = script
        self._result = result
        self.__code__ = script.code()
        self.__globals__ = {"__name__": "__main__", "__asyncsim_path__": script.path}
        self.__name__ = Path(script.path).stem
        self.__doc__ = None
        self.__signature__ = inspect.Signature([
            inspect.Parameter("rank", inspect.Parameter.POSITIONAL_ONLY),
            inspect.Parameter("views", inspect.Parameter.VAR_POSITIONAL),
        ])  # fmt: skip

    async def __call__(self, rank: Rank, *views: Any) -> int | None:  # noqa: ANN401 - of windows and signals
        """Run the script as one process."""
        script = self._script
        await hosted(self._run, script.interface(rank, script.layout, views))
        return self._result

    def _run(self, process: Memory) -> None:
        keep(process)
        random.seed(process.me)  # each process draws numbers of its own, the same in every run
        np.random.seed(process.me)  # noqa: NPY002 - the global one, which scripts use
        main = ModuleType("__main__")
        vars(main).update(NAMES, __file__=self._script.path, __builtins__=builtins, __asyncsim_path__=self._script.path)
        try:
            exec(self.__code__, vars(main))  # noqa: S102 - the script that the user named to be run
        except SystemExit as left:
            if left.code not in (None, 0):
                raise ScriptFailedError(f"the script left with {left.code!r}") from left
        process.finish()


class _Beside(importlib.abc.MetaPathFinder):
    """Finds modules beside the script, and has them rewritten as the script is."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.found: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ANN401, ARG002 - the protocol's
        """Find a module that lies in the folder."""
        file = Path(self._folder, *name.split(".")).with_suffix(".py")
        if not file.is_file():
            return None
        self.found.add(name)
        return importlib.util.spec_from_loader(name, _Loader(str(file)), origin=str(file))


class _Loader(importlib.abc.Loader):
    def __init__(self, file: str) -> None:
        self._file = file

    def exec_module(self, module: ModuleType) -> None:
        """Run a module, rewritten."""
        vars(module).update(NAMES, __file__=self._file)
        source = Path(self._file).read_bytes()
        exec(compile(rewritten(source, self._file), self._file, "exec", dont_inherit=True), vars(module))  # noqa: S102
