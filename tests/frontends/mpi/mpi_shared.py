"""Rules of MPI 4.1 on windows that all ranks load and store, and a script; written as in `mpi_rules`."""

RACE = "race"
SHARED = {
    "shared memory is read after its rank met (12.2.3)": (
        """
shared = MPI.Win.Allocate_shared(16 if me == 0 else 0, 8, comm=comm)
buf, unit = shared.Shared_query(0)
x = np.ndarray(buffer=buf, dtype='d', shape=(2,))
x[me] = me + 1
shared.Sync()
comm.Barrier()  #!
print(x[1 - me])
shared.Free()
""",
        RACE,
    ),
    "parts of shared memory lie behind each other (12.2.3)": (
        """
shared = MPI.Win.Allocate_shared(8, 8, comm=comm)
buf, unit = shared.Shared_query(0)
x = np.ndarray(buffer=buf, dtype='d', shape=(1,))
own = np.frombuffer(shared.tomemory(), dtype='d')
own[0] = me  #! x[0] = me
comm.Barrier()
print(x[0])
shared.Free()
""",
        RACE,
    ),
    "stores to shared memory come before a later message (3.5)": (
        """
shared = MPI.Win.Allocate_shared(8, 8, comm=comm)
x = np.ndarray(buffer=shared.Shared_query(0)[0], dtype='d', shape=(1,))
if me == 1:
    x[0] = 7
    comm.send(1, 0)
else:
    comm.recv(source=1)  #!
    print(x[0])
shared.Free()
""",
        RACE,
    ),
    "a stencil in a shared-memory window": (
        """
node = comm.Split_type(MPI.COMM_TYPE_SHARED)
cells, steps = 2 * n + 2, 2
shared = MPI.Win.Allocate_shared(8 * 2 * cells if node.Get_rank() == 0 else 0, 8, comm=node)
grid = np.ndarray(buffer=shared.Shared_query(0)[0], dtype='d', shape=(2, cells))
if node.Get_rank() == 0:
    grid[:] = np.arange(2 * cells).reshape(2, cells)
node.Barrier()
first = 1 + 2 * me
for step in range(steps):
    old, new = grid[step % 2], grid[1 - step % 2]
    new[first:first + 2] = (old[first - 1:first + 1] + old[first + 1:first + 3]) / 2
    shared.Sync()
    node.Barrier()  #!
print(grid[steps % 2, first])
node.Barrier()
shared.Free()
""",
        RACE,
    ),
}
"""The text of both, and what the broken one gives."""
