"""Rules of MPI 4.1 on windows, each as a program that keeps it, and the same with one line changed, that breaks it.

A line ``kept  #! broken`` is `kept` in the one and `broken` in the other; an empty side leaves the line out.
"""

HEAD = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
me, n = comm.Get_rank(), comm.Get_size()
right = (me + 1) % n
mem, one, out = np.zeros(4, dtype='i'), np.array([me + 1], dtype='i'), np.zeros(1, dtype='i')
win = MPI.Win.Create(mem, mem.itemsize, comm=comm)
"""
RACE = "race"

RULES = {
    "a fence completes puts (12.5.1)": (
        """
win.Fence()
win.Put(one, right, 0)
win.Fence()  #!
print(mem[0])
win.Fence()
""",
        RACE,
    ),
    "a barrier completes no put (12.5)": (
        """
win.Lock(right, MPI.LOCK_SHARED)
win.Put(one, right, 0)
win.Unlock(right)  #! comm.Barrier()
comm.Barrier()
print(mem[0])
comm.Barrier()  #! win.Unlock(right)
""",
        RACE,
    ),
    "the origin of a put is not touched before it is complete (12.3)": (
        """
win.Fence()
win.Put(one, right, 0)
win.Fence()  #!
one[0] = 9
win.Fence()
""",
        RACE,
    ),
    "what a get brings is there when it is complete (12.3.2)": (
        """
mem[0] = 7
win.Fence()
win.Get(out, right, 0)
win.Fence()  #!
assert out[0] in (0, 7)
win.Fence()
""",
        RACE,
    ),
    "a store and a put do not meet in one epoch (12.7)": (
        """
win.Fence()
win.Put(one, right, 0)
mem[1] = 3  #! mem[0] = 3
win.Fence()
""",
        RACE,
    ),
    "puts of two ranks go to two places (12.7)": (
        """
win.Fence()
win.Put(one, 0, me)  #! win.Put(one, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "accumulates with one operator do not race (12.3.4)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.SUM)  #! win.Put(one, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "an accumulate and a get race (12.7.1)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.SUM)
win.Fence()  #!
win.Get(out, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "accumulates of floats are atomic (12.3.4)": (
        """
x = np.zeros(2)
other = MPI.Win.Create(x, 8, comm=comm)
other.Fence()
other.Accumulate(np.ones(2), 0, 0, MPI.SUM)  #! other.Put(np.ones(2), 0, 0)
other.Fence()
other.Free()
""",
        RACE,
    ),
    "an exclusive lock excludes (12.5.3)": (
        """
win.Lock(0)  #! win.Lock(0, MPI.LOCK_SHARED)
win.Get(out, 0, 0)
win.Flush(0)
out[0] += 1
win.Put(out, 0, 0)
win.Unlock(0)
""",
        RACE,
    ),
    "fetch-and-op counts (12.3.4)": (
        """
win.Lock(0, MPI.LOCK_SHARED)
win.Fetch_and_op(one, out, 0, 0, MPI.SUM)  #! win.Put(one, 0, 0)
win.Unlock(0)
""",
        RACE,
    ),
    "a fetched value is there after a flush (12.3.4)": (
        """
win.Lock_all()
win.Fetch_and_op(one, out, 0, 0, MPI.SUM)
win.Flush(0)  #!
print(out[0])
win.Unlock_all()
""",
        "is read before a flush",
    ),
    "compare-and-swap has one winner (12.3.4)": (
        """
win.Lock(0, MPI.LOCK_SHARED)
win.Compare_and_swap(one, np.zeros(1, dtype='i'), out, 0, 0)
win.Flush(0)
if out[0] == 0:  #! if True:
    win.Put(one, 0, 1)
win.Unlock(0)
""",
        RACE,
    ),
    "post and start, complete and wait (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Put(one, 1, 0)
    win.Complete()
elif me == 1:
    win.Post(group.Incl([0]))
    win.Wait()  #!
    assert mem[0] in (0, 1)
    print("read")  #! win.Wait()
""",
        RACE,
    ),
    "a start needs a post (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Complete()
elif me == 1:
    win.Post(group.Incl([0]))  #! pass
    win.Wait()  #!
""",
        "deadlock",
    ),
    "an operation is in an epoch (12.5)": (
        """
win.Fence()  #!
win.Put(one, right, 0)
win.Fence()
""",
        "outside of an epoch",
    ),
    "a put goes to a rank of the start group (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Put(one, 1, 0)  #! win.Put(one, 0, 0)
    win.Complete()
elif me == 1:
    win.Post(group.Incl([0]))
    win.Wait()
""",
        "not in the group",
    ),
    "an unlock follows a lock (12.5.3)": (
        """
win.Lock(0)  #!
win.Unlock(0)
""",
        "has not locked",
    ),
    "a lock is unlocked (12.5.3)": (
        """
win.Lock(me)
win.Unlock(me)  #!
""",
        "was not ended",
    ),
    "a fence and a lock do not overlap (12.5)": (
        """
win.Fence()
win.Put(one, right, 0)
win.Fence()  #!
win.Lock(right)
win.Unlock(right)
""",
        "epoch with it is open",
    ),
    "a put fits its target (12.3.1)": (
        """
win.Fence()
win.Put(one, right, 3)  #! win.Put(one, right, 4)
win.Fence()
""",
        "out of range",
    ),
    "a target is a rank (12.3)": (
        """
win.Fence()
win.Put(one, right, 0)  #! win.Put(one, n, 0)
win.Fence()
""",
        "there is no rank 2",
    ),
    "NOPRECEDE is true (12.5.5)": (
        """
win.Fence()
win.Put(one, right, 0)
win.Fence()  #! win.Fence(MPI.MODE_NOPRECEDE)
""",
        "operations precede it",
    ),
    "a window is used before it is freed (12.2.5)": (
        """
win.Fence()
win.Put(one, right, 0)
win.Fence(MPI.MODE_NOSUCCEED)
win.Free()
comm.Barrier()  #! win.Fence()
""",
        "after it was freed",
    ),
    "a message orders stores (3.5)": (
        """
if me == 0:
    win.Lock(1)
    win.Put(one, 1, 0)
    win.Unlock(1)
    comm.send("ready", 1)
elif me == 1:
    comm.recv(source=0)  #!
    print(mem[0])
""",
        RACE,
    ),
    "a receive needs a send (3.2)": (
        """
if me == 0:
    comm.Send(one, 1, 5)
elif me == 1:
    comm.Recv(out, 0, 5)  #! comm.Recv(out, 0, 6)
""",
        "deadlock",
    ),
    "all ranks call the same collective (6.1)": (
        """
if me == 0:
    comm.Barrier()
else:
    comm.Barrier()  #! comm.allreduce(1)
""",
        "call-mismatch",
    ),
    "allocated memory is written before it is read (12.2.2)": (
        """
other = MPI.Win.Allocate(16, 4, comm=comm)
x = np.frombuffer(other, dtype='i')
x[:] = 1  #! x[0] = 1
print(x.sum())
other.Free()
""",
        "unwritten-read",
    ),
}
"""The text of both, and what the broken one gives: a kind of finding, or words of the message of a misuse."""


def program(text, *, broken):
    """Return one of the two programs of a rule."""
    lines = []
    for line in text.strip("\n").split("\n"):
        kept, mark, other = line.partition("#!")
        indent = " " * (len(kept) - len(kept.lstrip()))
        chosen = indent + other.strip() if mark and broken else kept
        if chosen.strip():
            lines.append(chosen.rstrip())
    return HEAD + "\n".join(lines) + "\n"
