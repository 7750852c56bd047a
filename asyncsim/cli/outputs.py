"""Files that a command writes: never over what it reads, over the source of a kernel, or over each other."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from asyncsim.machine.kernel import Kernel


def check_outputs(
    outputs: Mapping[str, Path | None], *, reads: Iterable[Path | str | None] = (), kernels: Iterable[Kernel] = ()
) -> None:
    """Refuse to write over something that is needed, before anything is run or written.

    Args:
        outputs: what is written, by what the user calls it: ``{"--html": path}``; None: it is not asked for.
        reads: the files that the command reads.
        kernels: those that it runs; they stand in files, too.

    Raises:
        MisuseError: an output is one of the others under this or another name, or it is ``-``.

    """
    known = [(Path(path), f"{path}, which it reads") for path in reads if path]
    known += [(path, f"{path}, the file of {kernel.ref}") for kernel in kernels for path in _files_of(kernel)]
    for name, path in outputs.items():
        if path is None:
            continue
        if str(path) == "-":
            raise MisuseError(f"{name} -: it is written to a file, and not to standard output; name one")
        for other, what in known:
            if _same(path, other):
                raise MisuseError(f"{name} {path}: that would write over {what}; name another file")
        known.append((path, f"{path}, which {name} writes"))


def _files_of(kernel: Kernel) -> list[Path]:
    """Return the file of the program, and of the module that the kernel stands in."""
    files = [kernel.program.__code__.co_filename, getattr(sys.modules.get(kernel.module), "__file__", None)]
    return list(dict.fromkeys(map(Path, filter(None, files))))


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to one file, which need not exist yet."""
    if os.path.exists(one) and os.path.exists(other):  # noqa: PTH110 - Path.exists raises if a name is too long
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)
