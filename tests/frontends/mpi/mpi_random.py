"""Random programs on windows, each without a race and with one result; under ``mpiexec`` this runs them on a real MPI.

mpiexec -n 3 python tests/frontends/mpi/mpi_random.py FOLDER
"""

import random
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

RANKS, SLOTS, PROGRAMS = 3, 5, 100
HEAD = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
me, n = comm.Get_rank(), comm.Get_size()
"""


def programs():
    """Return the texts of all programs."""
    return [HEAD + "\n".join(_program(random.Random(seed))) + "\n" for seed in range(PROGRAMS)]  # noqa: S311


def _program(drawn):
    kind = drawn.choice("ild")
    lines = [
        f"mem = np.arange({SLOTS}, dtype={kind!r}) + 10 * me",
        f"src, got = np.arange({SLOTS}, dtype={kind!r}) * 3 + me + 1, np.zeros({RANKS * SLOTS}, dtype={kind!r})",
        "win = MPI.Win.Create(mem, mem.itemsize, comm=comm)",
    ]
    for _ in range(drawn.randint(1, 2)):
        lines += drawn.choice((_fenced, _locked, _all_locked, _posted))(drawn, kind)
        lines += ["comm.Barrier()", "print(me, mem.tolist(), got.tolist())", "comm.Barrier()"]
    return [*lines, "win.Free()"]


def _access(drawn, kind, target):
    """Return statements, each with the rank that does it, that do not race with each other."""
    for slot in range(SLOTS):
        at, one = f"{target}, {slot}", drawn.randrange(RANKS)
        mine, into = f"src[{slot}:{slot + 1}]", f"got[{target * SLOTS + slot}:{target * SLOTS + slot + 1}]"
        which = drawn.choice(["", "put", "get", "sum", "max", "fetch", "read", "replace", *(["swap"] * (kind != "d"))])
        everybody = [f"win.Get({into}, {at})", f"win.Accumulate({mine}, {at}, MPI.SUM)"]
        if which == "put":
            yield one, f"win.{drawn.choice(('Put', 'Rput'))}({mine}, {at})"
        elif which == "replace":
            yield one, f"win.Accumulate({mine}, {at}, MPI.REPLACE)"
        elif which == "fetch":
            op = drawn.choice(("SUM", "REPLACE") if kind == "d" else ("SUM", "MIN", "BXOR", "REPLACE"))
            yield one, f"win.Fetch_and_op({mine}, {into}, {at}, MPI.{op})"
        elif which == "swap":
            yield one, f"win.Compare_and_swap({mine}, np.array([{slot}], dtype={kind!r}), {into}, {at})"
        elif which == "max":
            yield one, f"win.Accumulate({mine}, {at}, MPI.MAX)"
        elif which == "read":
            yield one, f"win.Get_accumulate({mine}, {into}, {at}, MPI.NO_OP)"
        elif which:
            for rank in range(RANKS):
                yield rank, everybody[which == "sum"]


def _of(drawn, kind, target, before, after):
    done = [(rank, text) for rank, text in _access(drawn, kind, target)]
    for rank in sorted({rank for rank, _ in done}):
        texts = [text for other, text in done if other == rank]
        requests = [f"request = {text}" if "Rput" in text else text for text in texts]
        waits = ["request.Wait()"] * any("Rput" in text for text in texts[-1:])
        yield rank, [*before, *requests, *waits, *after]


def _written(statements):
    return [f"if me == {rank}:\n    " + "\n    ".join(body) for rank, body in statements]


def _fenced(drawn, kind):
    target = drawn.randrange(RANKS)
    plain = [(rank, text.replace("Rput", "Put")) for rank, text in _access(drawn, kind, target)]
    return ["win.Fence()", *_written((rank, [text]) for rank, text in plain), "win.Fence(MPI.MODE_NOSUCCEED)"]


def _locked(drawn, kind):
    target, how = drawn.randrange(RANKS), drawn.choice(("MPI.LOCK_SHARED", "MPI.LOCK_EXCLUSIVE"))
    return _written(_of(drawn, kind, target, [f"win.Lock({target}, {how})"], [f"win.Unlock({target})"]))


def _all_locked(drawn, kind):
    target = drawn.randrange(RANKS)
    flush = drawn.choice((f"win.Flush({target})", "win.Flush_all()", f"win.Flush_local({target})"))
    return ["win.Lock_all()", *_written(_of(drawn, kind, target, [], [flush])), "win.Unlock_all()"]


def _posted(drawn, kind):
    target = drawn.randrange(RANKS)
    group = "group = comm.Get_group()"
    body = list(_of(drawn, kind, target, [], []))
    opened = {rank: body for rank, body in body if rank != target}
    others = sorted(opened)
    if not others:
        return []
    lines = [group, f"if me == {target}:\n    win.Post(group.Incl({others}))"]
    for rank in others:
        texts = [f"win.Start(group.Incl([{target}]))", *opened[rank], "win.Complete()"]
        lines.append(f"if me == {rank}:\n    " + "\n    ".join(texts))
    return [*lines, f"if me == {target}:\n    win.Wait()"]


def main(folder):
    """Run all programs; write what this rank prints to a file."""
    from mpi4py import MPI  # noqa: PLC0415 - the test that imports this page has no MPI

    printed = []
    for text in programs():
        out = StringIO()
        with redirect_stdout(out):
            exec(text, {})  # noqa: S102 - written above
        printed.append(out.getvalue())
    Path(folder, f"{MPI.COMM_WORLD.Get_rank()}.txt").write_text("--\n".join(printed), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
