"""The inputs of a worked example: powers of ten, or a user's file; and single numbers set to others.

Whatever cannot be right is refused with its place: the line of a file, the rank and element of a number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.collectives.reduce import ReduceOp
from asyncsim.study.worked import COLLECTIVES, OPS, REDUCING, Worked, chunks_of, work
from asyncsim.trace.declare import dtype_of
from asyncsim.trace.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from asyncsim.collectives.reduce import Tile

DTYPES = ("int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
RANKS, SIZE = 3, 2
MOST_RANKS = 64
"""More than that is not readable."""
MOST_ELEMENTS = 100_000
"""Nor so many numbers."""
_SETTING = re.compile(r"\s*(\d{1,9})\s*,\s*(\d{1,9})\s*=\s*(\S+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a user asks for.

    Args:
        collective: one of `COLLECTIVES`.
        ranks, size: P, and the elements a rank; None: those of the file, else 3 and 2.
        op: one of `OPS`; None: the sum.
        settings: texts such as ``2,5=601``: rank, element, number.
        then: None, or "all_gather".
        file: a .npy or .csv file with one row a rank; None: powers of ten.
        dtype: one of `DTYPES`; None: that of the file, int64 for whole numbers, float64 for others.

    """

    collective: str
    ranks: int | None = None
    size: int | None = None
    op: str | None = None
    settings: Sequence[str] = ()
    then: str | None = None
    file: Path | None = None
    dtype: str | None = None


def worked_example(asked: Asked) -> Worked:
    """Make the inputs, run the collective, and return it with all its numbers.

    Raises:
        MisuseError: something asked for does not fit the rest, or the file is none that can be used.

    """
    op = _op_of(asked)
    original = _typed(_inputs(asked, op), asked, op)
    inputs = [x.copy() for x in original]
    for setting in asked.settings:
        _set(inputs, setting)
    then = asked.then is not None
    return work(asked.collective, inputs, op=op, original=original if asked.settings else None, then_gather=then)


def _op_of(asked: Asked) -> ReduceOp | None:
    if asked.collective not in COLLECTIVES:
        raise MisuseError(f"no collective is called {asked.collective!r}; there are {', '.join(COLLECTIVES)}")
    if asked.then not in (None, "all_gather") or (asked.then and asked.collective != "reduce_scatter"):
        raise MisuseError(f"--then {asked.then} after {asked.collective}; it is all_gather, after a reduce_scatter")
    if asked.collective not in REDUCING:
        if asked.op is not None:
            raise MisuseError(f"--op {asked.op}: {asked.collective} reduces nothing; leave it out")
        return None
    if asked.op is not None and asked.op not in OPS:
        raise MisuseError(f"--op {asked.op}: no such operator; there are {', '.join(OPS)}")
    return OPS[asked.op or "sum"]


def _inputs(asked: Asked, op: ReduceOp | None) -> list[Tile]:
    """Return one row a rank, as it is in the file or in powers of ten."""
    if asked.file is None:
        ranks, size = (RANKS if asked.ranks is None else asked.ranks), (SIZE if asked.size is None else asked.size)
        if not 1 <= ranks <= MOST_RANKS or size < 0:
            raise MisuseError(f"{ranks} ranks with {size} elements: give 1 to {MOST_RANKS} ranks, and a size >= 0")
        count = size * chunks_of(asked.collective, ranks)
        if ranks * count > MOST_ELEMENTS:
            raise MisuseError(
                f"--size {size}: these are {ranks * count} numbers on {ranks} ranks; give at most {MOST_ELEMENTS}"
            )
        return _powers_of_ten(ranks, count, _dtype_for(asked, op, "i"))
    table = read_table(asked.file)
    ranks = len(table)
    if asked.ranks not in (None, ranks):
        raise MisuseError(f"{asked.file} has {ranks} rows, one a rank; --ranks says {asked.ranks}")
    chunks = chunks_of(asked.collective, ranks)
    if table.shape[1] % chunks:
        raise MisuseError(
            f"{asked.file} has {table.shape[1]} numbers a rank, which cannot be cut into {chunks} equal chunks, "
            f"one a rank; give a multiple of {chunks}"
        )
    size = table.shape[1] // chunks
    if asked.size not in (None, size):
        raise MisuseError(
            f"{asked.file} has {table.shape[1]} numbers a rank; --size {asked.size} needs {chunks * asked.size}"
        )
    return list(table)


def _dtype_for(asked: Asked, op: ReduceOp | None, kind: str) -> np.dtype[Any]:
    """Return the dtype for numbers of a kind: as asked; else whole numbers in 64 bits, unless they are divided."""
    if asked.dtype is not None:
        return dtype_of(asked.dtype, "--dtype")
    return np.dtype(np.int64 if kind == "i" and op is not ReduceOp.Avg else np.float64)


def _typed(rows: list[Tile], asked: Asked, op: ReduceOp | None) -> list[Tile]:
    """Return the rows in the dtype in which they are to be reduced."""
    found = rows[0].dtype
    if asked.dtype is None and not (op is ReduceOp.Avg and found.kind in "iu"):
        return rows
    dtype = _dtype_for(asked, op, "f")
    with np.errstate(all="ignore"):
        made = [x.astype(dtype) for x in rows]
    if dtype.kind in "iu" and not all(np.array_equal(a, b) for a, b in zip(rows, made, strict=True)):
        raise MisuseError(f"{asked.file}: not all numbers are whole and fit {dtype}; give another --dtype")
    return made


def _powers_of_ten(ranks: int, count: int, dtype: np.dtype[Any]) -> list[Tile]:
    """Return 1, 2, 3, … for rank 0, 10, 20, 30, … for rank 1, and so on."""
    most = (count or 1) * 10 ** (ranks - 1)
    with np.errstate(all="ignore"):
        fits = most <= np.iinfo(dtype).max if dtype.kind in "iu" else np.isfinite(np.array(float(most)).astype(dtype))
    if not fits:
        raise MisuseError(
            f"the powers of ten of {ranks} ranks go up to {most}, which does not fit {dtype}; "
            "take fewer ranks, another --dtype, or numbers of your own: --input FILE"
        )
    return [np.array([k * 10**r for k in range(1, count + 1)], dtype) for r in range(ranks)]


def _set(inputs: list[Tile], setting: str) -> None:
    """Set one number: ``2,5=601`` is element 5 of rank 2."""
    parts = _SETTING.fullmatch(setting)
    if parts is None:
        raise MisuseError(f"--set {setting}: write rank,element=number, such as 2,5=601")
    rank, index = int(parts[1]), int(parts[2])
    if rank >= len(inputs):
        raise MisuseError(f"--set {setting}: there are the ranks 0 to {len(inputs) - 1}")
    x = inputs[rank]
    if index >= x.size:
        raise MisuseError(f"--set {setting}: rank {rank} has the elements 0 to {x.size - 1}" if x.size else
                          f"--set {setting}: the inputs are empty")  # fmt: skip
    number = _number(parts[3])
    whole = x.dtype.kind in "iu"
    if number is None or (whole and not (isinstance(number, int) and _in_range(number, x.dtype))):
        raise MisuseError(f"--set {setting}: {parts[3]} is no {x.dtype}")
    with np.errstate(all="ignore"):
        x[index] = np.array(number).astype(x.dtype)


def _in_range(number: int, dtype: np.dtype[Any]) -> bool:
    return bool(np.iinfo(dtype).min <= number <= np.iinfo(dtype).max)


def _number(text: str) -> int | float | None:
    """Return the number that a text means; None if it means none."""
    for meaning in (int, float) if text.isascii() else ():
        try:
            return meaning(text)
        except ValueError:
            continue
    return None


# Files.


def read_table(path: Path) -> Tile:
    """Return the numbers of a file: shape (P, N), one row a rank.

    Args:
        path: a .npy file with an array of two dimensions or more, or a .csv file with one line a rank.

    Raises:
        MisuseError: it is no such file.

    """
    if path.suffix == ".npy":
        return _read_npy(path)
    if path.suffix == ".csv":
        return _read_csv(path)
    raise MisuseError(f"{path}: give a .npy or a .csv file")


def _read_npy(path: Path) -> Tile:
    try:  # mapped: a header that promises more than the file holds is refused before any memory is taken
        with np.errstate(over="ignore"):  # the size of such an array may not even fit a number
            array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, TypeError, EOFError, OverflowError) as error:
        raise MisuseError(f"{path}: no array can be read from it: {error}") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iuf":
        raise MisuseError(f"{path} holds {getattr(array, 'dtype', 'no array')}; give integers or floats")
    if array.ndim < 2 or not len(array):  # noqa: PLR2004 - ranks and their elements
        raise MisuseError(f"{path} has shape {array.shape}; the first dimension is the ranks, the others their numbers")
    try:
        native = np.array(array, array.dtype.newbyteorder("="), order="C")
    except MemoryError:
        raise MisuseError(f"{path} has shape {array.shape}, which does not fit into memory") from None
    return native.reshape(len(array), int(np.prod(array.shape[1:])))


def _read_csv(path: Path) -> Tile:
    try:
        lines = path.read_text("utf-8-sig").splitlines()  # spreadsheets put a mark before the text
    except UnicodeDecodeError:
        raise MisuseError(f"{path} is not text in UTF-8") from None
    rows: list[list[int | float]] = []
    for at, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = [_number(field.strip()) for field in line.split(",")]
        if None in row:
            field = line.split(",")[row.index(None)].strip()
            raise MisuseError(f"{path}, line {at}: {field!r} is no number")
        rows.append([number for number in row if number is not None])
        if len(row) != len(rows[0]):
            raise MisuseError(f"{path}, line {at}: {len(row)} numbers; the first line has {len(rows[0])}")
    if not rows:
        raise MisuseError(f"{path} has no numbers; write one line a rank, its numbers separated by commas")
    whole = all(isinstance(number, int) for row in rows for number in row)
    try:
        return np.array(rows, np.int64 if whole else np.float64)
    except OverflowError:
        raise MisuseError(f"{path}: not all numbers fit int64; write them as floats, such as 1e30") from None
