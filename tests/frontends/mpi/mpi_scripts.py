"""Complete scripts, after what scripts of mpi4py with windows do; a line ``kept  #! broken`` makes the broken form."""

SCRIPTS = {
    "halo exchange with fences": (
        """
x = np.full(6, float(me))
win2 = MPI.Win.Create(x, 8, comm=comm)
for step in range(2):
    win2.Fence()
    win2.Put(x[1:2], (me - 1) % n, 5)
    win2.Put(x[4:5], right, 0)
    win2.Fence()  #!
    x[1:5] = (x[0:4] + x[2:6]) / 2
win2.Fence()
win2.Free()
""",
        "race",
    ),
    "counter with fetch-and-op": (
        """
win.Lock(0, MPI.LOCK_SHARED)
win.Fetch_and_op(np.array([1], dtype='i'), out, 0, 0, MPI.SUM)
win.Flush(0)
ticket = int(out[0])
win.Put(one, 0, 1 + ticket)  #! win.Put(one, 0, 1)
win.Unlock(0)
comm.Barrier()
""",
        "race",
    ),
    "counter behind an exclusive lock": (
        """
win.Lock(0, MPI.LOCK_EXCLUSIVE)  #! win.Lock(0, MPI.LOCK_SHARED)
win.Get(out, 0, 0)
win.Flush(0)
out[0] += 1
win.Put(out, 0, 0)
win.Unlock(0)
comm.Barrier()
""",
        "race",
    ),
    "matrix product with gets": (
        """
a, b = np.full((2, 2), me + 1.0), np.eye(2) * (me + 1)
win2 = MPI.Win.Create(b, 8, comm=comm)
total, block = np.zeros((2, 2)), np.zeros((2, 2))
for other in range(n):
    win2.Lock(other, MPI.LOCK_SHARED)
    win2.Get(block, other)
    win2.Unlock(other)
    total += a @ block
comm.Barrier()  #!
b[:] = total
comm.Barrier()
win2.Free()
""",
        "race",
    ),
    "histogram with accumulates": (
        """
win.Fence()
for value in (me, me + 1):
    win.Accumulate(np.array([1], dtype='i'), 0, value % 2, MPI.SUM)  #! win.Put(np.array([1], dtype='i'), 0, value % 2)
win.Fence()
if me == 0:
    print(mem)
win.Fence()
""",
        "race",
    ),
    "producer and consumer, passive target": (
        """
if me == 0:
    win.Lock(1)
    win.Put(np.arange(4, dtype='i'), 1, 0)
    win.Unlock(1)
    comm.Send(one, 1, 3)
elif me == 1:
    comm.Recv(out, 0, 3)  #!
    win.Lock(1)  #!
    print(mem.sum())
    win.Unlock(1)  #!
comm.Barrier()
""",
        "race",
    ),
    "a ring by post and start": (
        """
group = comm.Get_group()
win.Post(group.Incl([(me - 1) % n]))
win.Start(group.Incl([right]))
win.Put(one, right, 0)
win.Complete()
win.Wait()  #!
print(mem[0])
comm.Barrier()  #! win.Wait()
""",
        "race",
    ),
    "who is first, with compare-and-swap": (
        """
win.Lock_all()
win.Compare_and_swap(one, np.zeros(1, dtype='i'), out, 0, 0)
win.Flush(0)
first = out[0] == 0
if first:  #! if True:
    win.Put(one, 0, 3)
win.Unlock_all()
comm.Barrier()
""",
        "race",
    ),
    "all-gather by puts": (
        """
win.Fence()
for other in range(n):
    win.Put(one, other, me)  #! win.Put(one, other, 0)
win.Fence(MPI.MODE_NOSUCCEED)
assert mem[0] > 0
total = comm.allreduce(int(mem[1]))
""",
        "race",
    ),
    "a table that all read": (
        """
if me == 0:
    mem[:] = [3, 1, 4, 1]
win.Fence()
win.Get(out, 0, 2)
win.Fence()  #!
print(out[0])
win.Fence()
""",
        "race",
    ),
}
"""The text of both, and what the broken one gives."""
