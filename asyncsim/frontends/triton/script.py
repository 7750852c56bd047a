"""A script that drives Triton kernels: every rank runs it whole, as its own process would.

It is run again for every schedule, so it should do little more than allocate, launch and compare; sizes that make two
tiles a block, and one, show what larger ones do. What it prints is shown once, of the first run that came to its end.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import MutableMapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncsim.checking.verdict.check import check
from asyncsim.frontends.triton import distributed, symm_mem
from asyncsim.frontends.triton.cuda import cuda_answers
from asyncsim.frontends.triton.iris import iris_modules
from asyncsim.frontends.triton.launch import install, present_host
from asyncsim.frontends.triton.libraries import torch
from asyncsim.frontends.triton.program import counted, kernel_of
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.stand_ins import attributes, modules
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType

    from asyncsim.checking.verdict.report import Report
    from asyncsim.frontends.triton.host import Host
    from asyncsim.machine.kernel import Kernel


class Environment(MutableMapping[str, str]):
    """``os.environ`` of several ranks that share a process: RANK and the like are each rank's own.

    Args:
        shared: what all have.

    """

    def __init__(self, shared: MutableMapping[str, str]) -> None:
        self._shared = shared

    def _own(self) -> dict[str, str]:
        host = present_host()
        if host is None:
            return {}
        rank, size = str(host.id), str(host.size)
        return {
            "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_ADDR": "localhost",
            "MASTER_PORT": "29500", **host.kept.setdefault("environ", {}),
        }  # fmt: skip

    def __getitem__(self, name: str) -> str:
        """Return a variable."""
        own = self._own()
        return own[name] if name in own else self._shared[name]

    def __setitem__(self, name: str, value: str) -> None:
        """Set a variable, for this rank."""
        host = present_host()
        (self._shared if host is None else host.kept.setdefault("environ", {}))[name] = value

    def __delitem__(self, name: str) -> None:
        """Take a variable away."""
        host = present_host()
        del (self._shared if host is None else host.kept.setdefault("environ", {}))[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter({**self._shared, **self._own()})

    def __len__(self) -> int:
        """Return how many there are."""
        return len({**self._shared, **self._own()})

    def copy(self) -> dict[str, str]:
        """Return what there is now."""
        return dict(self)


class TritonScript:
    """A script, and what it printed.

    Args:
        path: of it.
        arguments: what it finds in ``sys.argv`` behind its name.

    Raises:
        MisuseError: there is no such file, or it is not Python.

    """

    def __init__(self, path: str, arguments: Sequence[str] = ()) -> None:
        self.path, self.arguments, self.printed = path, arguments, ""
        try:
            self._code: CodeType = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
        except OSError as error:
            raise MisuseError(f"{path} is not a file that can be read ({error.strerror}); name a script") from None
        except (SyntaxError, ValueError) as error:
            raise MisuseError(f"the script is not Python: {path}: {error}") from error

    @contextmanager
    def answered(self) -> Iterator[None]:
        """Let what a script imports and asks of torch be ours while the block runs."""
        install()
        real = importlib.import_module("torch.distributed._symmetric_memory")
        argv, folders, environ = sys.argv, list(sys.path), os.environ
        known = set(sys.modules)
        with ExitStack() as stack:
            stack.enter_context(attributes(torch.distributed, distributed.names()))
            stack.enter_context(attributes(real, symm_mem.names(real)))
            stack.enter_context(attributes(torch.multiprocessing, {"spawn": _spawn}))
            stack.enter_context(modules(iris_modules()))
            stack.enter_context(cuda_answers(_who))
            sys.argv = [self.path, *self.arguments]
            folder = Path(self.path).resolve().parent
            sys.path.insert(0, str(folder))
            os.environ = Environment(environ)  # type: ignore[assignment] # noqa: B003 - each rank has its own
            try:
                yield
            finally:
                os.environ = environ  # noqa: B003 - as it was
                sys.argv, sys.path[:] = argv, folders
                for name in set(sys.modules) - known:
                    file = getattr(sys.modules[name], "__file__", None)
                    if file and Path(file).is_relative_to(folder):  # another script has other modules
                        del sys.modules[name]

    def kernel(self, ranks: int, *, memory: str, seed: int) -> Kernel:
        """Return it as a kernel, after the runs in which its memory is found.

        Args:
            ranks: P.
            memory: the memory model.
            seed: of the run.

        Raises:
            KernelError: it raised.

        """

        def script(_host: Host) -> None:
            torch.manual_seed(seed)
            names: dict[str, Any] = {"__name__": "__main__", "__file__": self.path, "__asyncsim_path__": self.path}
            try:
                exec(self._code, names)  # noqa: S102 - the script that the user named to be run
            except SystemExit as left:
                if left.code not in (None, 0):
                    raise refused(f"the script left with {left.code!r}") from left

        script.__code__ = script.__code__.replace(co_filename=self.path)
        script.author_globals = {"__name__": "__main__", "__asyncsim_path__": self.path}  # type: ignore[attr-defined]
        out = StringIO()

        def begin() -> None:
            out.seek(0)
            out.truncate()

        with redirect_stdout(out):
            try:
                kernel = kernel_of(
                    script,
                    ranks=ranks,
                    calls=1,
                    memory=memory,
                    seed=seed,
                    given_name=Path(self.path).stem,
                    before_run=begin,
                )
            finally:
                self.printed = out.getvalue()
        return kernel

    @staticmethod
    def judge(kernel: Kernel, ranks: int, *, races: str = "all", **options: Any) -> Report:
        """Judge what `kernel` returned.

        Args:
            kernel: the script, for so many ranks.
            ranks: P.
            races: as for `counted`.
            options: of `asyncsim.check`.

        """
        report = counted(check(kernel, ranks=ranks, calls=1, **options), races)
        report.later_calls = ""  # a script is run once
        return report


def _who() -> tuple[int, int]:
    host = present_host()
    return (0, 1) if host is None else (host.id, host.size)


def _spawn(function: Any, args: Any = (), nprocs: int = 1, **_: Any) -> None:
    """Run a function as the process that this rank is: P ranks run the script already."""
    host = distributed.this_host()
    if nprocs != host.size:
        raise refused(
            f"torch.multiprocessing.spawn of {nprocs} processes in a run of {host.size} ranks; give -P {nprocs}"
        )
    function(host.id, *args)
