"""Rules of MPI 4.1 on accumulates and other atomics; written as in `mpi_rules`."""

RACE = "race"
ACCUMULATES = {
    "an accumulate and a store race (12.7.1)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.SUM)
mem[1] = 3  #! mem[0] = 3
win.Fence()
""",
        RACE,
    ),
    "an accumulate and a load race (12.7.1)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.SUM)
print(mem[1])  #! print(mem[0])
win.Fence()
""",
        RACE,
    ),
    "an accumulate is complete after its epoch (12.3.4)": (
        """
win.Fence()
win.Accumulate(one, right, 0, MPI.SUM)
win.Fence()  #! comm.Barrier()
print(mem[0])
win.Fence()
""",
        RACE,
    ),
    "the origin of an accumulate is not written before (12.3.4)": (
        """
win.Fence()
win.Accumulate(one, right, 0, MPI.SUM)
win.Fence()  #!
one[0] = 7
win.Fence()
""",
        "reads was written before",
    ),
    "two operators on one element race (12.2.1, same_op_no_op)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.SUM)  #! win.Accumulate(one, 0, 0, MPI.MAX if me else MPI.SUM)
win.Fence()
""",
        RACE,
    ),
    "two operators meet at two places (12.2.1)": (
        """
win.Fence()
op, place = (MPI.MAX, 1) if me else (MPI.SUM, 0)  #! op, place = (MPI.MAX, 0) if me else (MPI.SUM, 0)
win.Accumulate(one, 0, place, op)
win.Fence()
""",
        RACE,
    ),
    "NO_OP goes with every operator (12.2.1)": (
        """
win.Fence()
op = MPI.NO_OP  #! op = MPI.MIN
win.Get_accumulate(one, out, 0, 0, op if me else MPI.SUM)
win.Fence()
""",
        RACE,
    ),
    "an atomic read goes with accumulates, a get does not (12.3.4)": (
        """
win.Fence()
if me:
    win.Accumulate(one, 0, 0, MPI.SUM)
else:
    win.Get_accumulate(one, out, 0, 0, MPI.NO_OP)  #! win.Get(out, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "REPLACE is an atomic put (12.3.4)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.REPLACE)  #! win.Put(one, 0, 0)
win.Fence()
""",
        RACE,
    ),
    "products are atomic (12.3.4)": (
        """
mem[0] = 1
win.Fence()
win.Accumulate(one, 0, 0, MPI.PROD)
win.Fence()  #! comm.Barrier()
assert me or mem[0] == 2
win.Fence()
""",
        RACE,
    ),
    "bits are combined (12.3.4)": (
        """
win.Fence()
win.Accumulate(one, 0, 0, MPI.BOR)
win.Fence()
assert me or mem[0] == 3  #! assert me or mem[0] == 1
""",
        "AssertionError",
    ),
    "logical operators give 0 or 1 (12.3.4)": (
        """
win.Fence()
if me:
    win.Accumulate(np.array([8], dtype='i'), 0, 0, MPI.LOR)
win.Fence()
assert me or mem[0] == 1  #! assert me or mem[0] == 8
""",
        "AssertionError",
    ),
    "maxima of floats are atomic (12.3.4)": (
        """
x = np.zeros(1)
other = MPI.Win.Create(x, 8, comm=comm)
other.Fence()
other.Accumulate(np.array([me - 0.5]), 0, 0, MPI.MAX)
other.Fence()
assert me or x[0] == 0.5  #! assert me or x[0] == 0
other.Free()
""",
        "AssertionError",
    ),
    "sums of floats are fetched in one step (12.3.4)": (
        """
x, held = np.zeros(1), np.zeros(1)
other = MPI.Win.Create(x, 8, comm=comm)
other.Fence()
other.Fetch_and_op(np.array([1.5]), held, 0, 0, MPI.SUM)  #! other.Put(np.array([1.5]), 0, 0)
other.Fence()
print(x[0])
other.Free()
""",
        RACE,
    ),
    "floats are read atomically beside sums (12.3.4)": (
        """
x, held = np.zeros(1), np.zeros(1)
other = MPI.Win.Create(x, 8, comm=comm)
other.Fence()
if me:
    other.Accumulate(np.array([1.5]), 0, 0, MPI.SUM)
else:
    other.Fetch_and_op(None, held, 0, 0, MPI.NO_OP)  #! other.Get(held, 0, 0)
other.Fence()
other.Free()
""",
        RACE,
    ),
    "accumulates of two types on common bytes race (12.7.1)": (
        """
x = np.zeros(2, dtype='l')
other = MPI.Win.Create(x, 8, comm=comm)
other.Fence()
if me:
    place = 1  #! place = 0
    other.Accumulate(np.array([1], dtype='l'), 0, place, MPI.SUM)
else:
    other.Accumulate(np.array([1], dtype='i'), 0, 0, MPI.SUM)
other.Fence()
other.Free()
""",
        "share bytes",
    ),
    "accumulates of one rank on one target are in order (12.7.2)": (
        """
win.Fence()
if me == 1:
    win.Accumulate(one, 0, 0, MPI.REPLACE)
    win.Accumulate(one, 0, 0, MPI.SUM)
win.Fence()
assert me or mem[0] == 4  #! assert me or mem[0] == 2
""",
        "AssertionError",
    ),
    "a put and an accumulate of one rank are not in order (12.7.2)": (
        """
win.Lock_all()
if me == 1:
    win.Put(one, 0, 0)
    win.Flush(0)  #!
    win.Accumulate(one, 0, 0, MPI.SUM)
win.Unlock_all()
""",
        RACE,
    ),
    "a get-accumulate is one step (12.3.4)": (
        """
win.Lock_all()
win.Get_accumulate(one, out, 0, 0, MPI.SUM)
win.Unlock_all()
comm.Barrier()
assert me or mem[0] == 3  #! assert me or out[0] == 0
""",
        "wrong-result",
    ),
    "a result is not written by its rank before it is there (12.3.4)": (
        """
win.Lock_all()
win.Get_accumulate(one, out, 0, 0, MPI.SUM)
win.Flush(0)  #!
out[0] = 3
win.Unlock_all()
""",
        "is on is written before",
    ),
    "a compare-and-swap is of integers (12.3.4)": (
        """
x = np.zeros(1, dtype='i')  #! x = np.zeros(1)
win.Fence()
win.Compare_and_swap(x, x, x.copy(), right, 0)
win.Fence()
""",
        "use one integer type",
    ),
    "a compare-and-swap and a put race (12.3.4)": (
        """
win.Lock_all()
if me:
    win.Compare_and_swap(one, np.zeros(1, dtype='i'), out, 0, 0)
else:
    win.Compare_and_swap(one, np.zeros(1, dtype='i'), out, 0, 0)  #! win.Put(one, 0, 0)
win.Unlock_all()
""",
        RACE,
    ),
}
"""The text of both, and what the broken one gives."""
