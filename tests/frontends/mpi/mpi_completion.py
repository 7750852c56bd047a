"""Rules of MPI 4.1 on completion, requests and assertions; written as in `mpi_rules`."""

RACE = "race"
COMPLETION = {
    "a flush completes its own target (12.5.4)": (
        """
win.Lock_all()
if me == 0:
    win.Put(one, 1, 0)
    win.Put(one, 0, 1)
    win.Flush(1)  #! win.Flush(0)
    comm.send(1, 1)
else:
    comm.recv(source=0)
    assert mem[0] == 1
win.Unlock_all()
""",
        RACE,
    ),
    "a flush completes its own window (12.5.4)": (
        """
x = np.zeros(2, dtype='i')
other = MPI.Win.Create(x, 4, comm=comm)
win.Lock_all()
other.Lock_all()
if me == 0:
    win.Put(one, 1, 0)
    other.Put(one, 1, 0)
    win.Flush(1)  #! other.Flush(1)
    comm.send(1, 1)
else:
    comm.recv(source=0)
    assert mem[0] == 1
other.Unlock_all()
win.Unlock_all()
other.Free()
""",
        RACE,
    ),
    "a flush of all completes every target (12.5.4)": (
        """
win.Lock_all()
win.Put(one, right, 0)
win.Flush_all()  #! win.Flush(me)
comm.Barrier()
print(mem[0])
comm.Barrier()
win.Unlock_all()
""",
        RACE,
    ),
    "a local flush gives the origin back (12.5.4)": (
        """
win.Lock_all()
win.Put(one, right, 0)
win.Flush_local(right)  #!
one[0] = 9
win.Flush_local_all()
win.Unlock_all()
""",
        RACE,
    ),
    "a local flush completes no target (12.5.4)": (
        """
win.Lock_all()
win.Put(one, right, 0)
win.Flush(right)  #! win.Flush_local(right)
comm.Barrier()
print(mem[0])
comm.Barrier()
win.Unlock_all()
""",
        RACE,
    ),
    "a get is there after a local flush (12.5.4)": (
        """
win.Lock_all()
win.Get(out, right, 0)
win.Flush_local(right)  #!
print(out[0])
win.Flush_local(right)
win.Unlock_all()
""",
        RACE,
    ),
    "a request of a put gives the origin back (12.3.5)": (
        """
win.Lock_all()
request = win.Rput(one, right, 0)
request.Wait()  #!
one[0] = 9
request.Wait()
win.Unlock_all()
""",
        RACE,
    ),
    "a request of a put completes no target (12.3.5)": (
        """
win.Lock_all()
win.Rput(one, right, 0).Wait()
win.Flush(right)  #!
comm.Barrier()
print(mem[0])
comm.Barrier()
win.Unlock_all()
""",
        RACE,
    ),
    "a request of a get brings its elements (12.3.5)": (
        """
win.Lock_all()
request = win.Rget(out, right, 0)
request.Wait()  #!
print(out[0])
MPI.Request.Waitall([request])
win.Unlock_all()
""",
        RACE,
    ),
    "a request of a fetch brings its result (12.3.5)": (
        """
win.Lock_all()
request = win.Rget_accumulate(one, out, right, 0, MPI.SUM)
request.wait()  #!
print(out[0])
win.Unlock_all()
""",
        "is read before a flush",
    ),
    "a get and a put meet at two places (12.7)": (
        """
win.Fence()
win.Get(out, 0, 1)
if me == 1:
    win.Put(one, 0, 0)  #! win.Put(one, 0, 1)
win.Fence()
""",
        RACE,
    ),
    "gets of two ranks do not race (12.7)": (
        """
win.Fence()
win.Get(out, 0, 0)  #! win.Put(out, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "a get and a store meet at two places (12.7)": (
        """
win.Fence()
win.Get(out, right, 0)
mem[1] = 3  #! mem[0] = 3
win.Fence()
""",
        RACE,
    ),
    "a get and a load do not race (12.7)": (
        """
win.Fence()
win.Get(out, right, 0)
print(mem[0])  #! mem[0] += 1
win.Fence()
""",
        RACE,
    ),
    "an unlock completes (12.5.3)": (
        """
if me == 0:
    win.Lock(1, MPI.LOCK_SHARED)
    win.Put(one, 1, 0)
    win.Unlock(1)  #! comm.send(1, 1)
    comm.send(1, 1)  #! win.Unlock(1)
else:
    comm.recv(source=0)
    print(mem[0])
""",
        RACE,
    ),
    "lock types exclude unless both are shared (12.5.3)": (
        """
win.Lock(0, MPI.LOCK_EXCLUSIVE if me else MPI.LOCK_SHARED)  #! win.Lock(0, MPI.LOCK_SHARED)
if me:
    win.Put(one, 0, 0)
else:
    win.Get(out, 0, 0)
win.Unlock(0)
""",
        RACE,
    ),
    "an exclusive lock of oneself guards own memory (12.5.3)": (
        """
if me == 0:
    win.Lock(0)  #!
    mem[0] += 1
    win.Unlock(0)  #!
else:
    win.Lock(0)
    win.Put(one, 0, 0)
    win.Unlock(0)
""",
        RACE,
    ),
    "NOCHECK takes no lock (12.5.5)": (
        """
win.Lock(0)  #! win.Lock(0, MPI.LOCK_EXCLUSIVE, MPI.MODE_NOCHECK)
win.Put(one, 0, 0)
win.Unlock(0)
""",
        RACE,
    ),
    "a fence that precedes nothing meets none (12.5.5)": (
        """
win.Fence()
win.Fence()  #! win.Fence(MPI.MODE_NOPRECEDE)
x = np.zeros(1, dtype='i')
other = MPI.Win.Create(x, 4, comm=comm)
other.Lock_all()
win.Fence(MPI.MODE_NOSUCCEED)
if me == 0:
    other.Put(one, 1, 0)
    other.Flush(1)
win.Fence()  #! win.Fence(MPI.MODE_NOPRECEDE)
if me == 1:
    print(x[0])
other.Unlock_all()
other.Free()
""",
        RACE,
    ),
    "what comes after a fence that precedes nothing sees stores before it (12.5.1)": (
        """
mem[0] = 5 + me  #!
win.Fence(MPI.MODE_NOPRECEDE)
win.Get(out, right, 0)
mem[1] = 5 + me  #! mem[0] = 5 + me
win.Fence(MPI.MODE_NOSUCCEED)
""",
        RACE,
    ),
    "all ranks assert the same of a fence (12.5.5)": (
        """
win.Fence(MPI.MODE_NOPRECEDE)  #! win.Fence(MPI.MODE_NOPRECEDE if me else 0)
win.Fence(MPI.MODE_NOSUCCEED)
""",
        "call-mismatch",
    ),
    "NOSUCCEED begins no epoch (12.5.5)": (
        """
win.Fence()  #! win.Fence(MPI.MODE_NOSUCCEED)
win.Put(one, right, 0)
win.Fence()
""",
        "outside of an epoch",
    ),
    "NOSTORE is true (12.5.5)": (
        """
win.Fence()
print(mem[0])  #! mem[0] = 1
win.Fence(MPI.MODE_NOSTORE)
""",
        "MODE_NOSTORE on win",
    ),
    "NOPUT is true (12.5.5)": (
        """
win.Fence(MPI.MODE_NOPUT)
win.Get(out, right, 0)  #! win.Put(one, right, 0)
win.Fence()
""",
        "MODE_NOPUT",
    ),
    "NOPUT of a post is true (12.5.5)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Get(out, 1, 0)  #! win.Accumulate(one, 1, 0)
    win.Complete()
else:
    win.Post(group.Incl([0]), MPI.MODE_NOPUT)
    win.Wait()
""",
        "MODE_NOPUT",
    ),
    "a test of an exposure epoch that holds ends it (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Put(one, 1, 0)
    win.Complete()
else:
    win.Post(group.Incl([0]))
    while not win.Test():  #! done = win.Test()
        pass  #!
    print(mem[0])
    if False:  #! if not done:
        win.Wait()
""",
        RACE,
    ),
    "a complete completes what its epoch issued (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Put(one, 1, 0)
    win.Complete()  #!
    one[0] = 5
    print("sent")  #! win.Complete()
else:
    win.Post(group.Incl([0]))
    win.Wait()
""",
        RACE,
    ),
    "exposed memory is not stored to before the wait (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Put(one, 1, 0)
    win.Complete()
else:
    win.Post(group.Incl([0]))
    win.Wait()  #!
    mem[0] = 4
    print(mem[0])  #! win.Wait()
""",
        RACE,
    ),
    "a complete follows a start (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))  #!
    win.Complete()
else:
    win.Post(group.Incl([0]))
    win.Wait()
""",
        "without Start",
    ),
    "a wait follows a post (12.5.2)": (
        """
group = comm.Get_group()
if me == 0:
    win.Start(group.Incl([1]))
    win.Complete()
else:
    win.Post(group.Incl([0]))  #!
    win.Wait()
""",
        "without Post",
    ),
    "a flush is in an epoch of a lock (12.5.4)": (
        """
win.Lock_all()  #! win.Fence()
win.Put(one, right, 0)
win.Flush(right)
win.Unlock_all()
""",
        "outside of an epoch that Lock",
    ),
    "a lock of all is unlocked by its own (12.5.3)": (
        """
win.Lock_all()
win.Put(one, right, 0)
win.Unlock_all()  #! win.Unlock(right)
""",
        "has not locked",
    ),
}
"""The text of both, and what the broken one gives."""
