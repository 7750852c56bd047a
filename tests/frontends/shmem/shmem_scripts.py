"""Complete scripts, after what scripts of shmem4py do; a line ``kept  #! broken`` makes the broken form of each."""

from shmem_rules import Rule

SCRIPTS = {
    "halo exchange": Rule(
        "",
        """
row = shmem.full(6, float(me))
for step in range(2):
    shmem.put(row[5:6], row[1:2], left)
    shmem.put(row[0:1], row[4:5], right)
    shmem.barrier_all()
    row[1:5] = (row[0:4] + row[2:6]) / 2
    shmem.barrier_all()  #!
shmem.free(row)
""",
        "race",
        3,
    ),
    "two-dimensional stencil": Rule(
        "",
        """
grid, rows = shmem.zeros((6, 4)), 4
grid[1:5, :] = np.arange(16.0).reshape(4, 4) + 16 * me
shmem.barrier_all()
for step in range(2):
    if me > 0:
        shmem.put(grid[rows + 1], grid[1], me - 1)
    if me < n - 1:
        shmem.put(grid[0], grid[rows], me + 1)
    shmem.barrier_all()  #! shmem.sync_all()
    new = (grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]) / 4
    shmem.barrier_all()
    grid[1:5, 1:-1] = new
    shmem.barrier_all()
shmem.free(grid)
""",
        "race",
    ),
    "hash table with compare-and-swap": Rule(
        "",
        """
SLOTS = 4
keys, values = shmem.full(SLOTS, -1, dtype='l'), shmem.zeros(SLOTS, dtype='l')
def insert(key, value):
    home, slot = key % n, (key // n) % SLOTS
    while True:
        held = shmem.atomic_compare_swap(keys[slot:slot + 1], -1, key, home)
        if held in (-1, key):  #! if held in (-1, key, 7):
            shmem.put(values[slot:slot + 1], np.array([value], dtype='l'), home)
            return
        slot = (slot + 1) % SLOTS
insert(7 if me == 0 else 15, me)
shmem.barrier_all()
assert me != 1 or sorted(values[keys[:] >= 0]) == [0, 1]  #!
""",
        "race",
    ),
    "work queue with fetch-add": Rule(
        "",
        """
TASKS = 2
head, done = shmem.zeros(1, dtype='l'), shmem.zeros(TASKS, dtype='l')
while True:
    task = shmem.atomic_fetch_add(head, 1, 0)
    if task >= TASKS:
        break
    shmem.put(done[task:task + 1], np.array([task + 1], dtype='l'), 0)  #! shmem.put(done[0:1], np.array([1]), 0)
shmem.barrier_all()
if me == 0:
    assert done.sum() == 3  #! print(done)
""",
        "race",
    ),
    "counter behind a lock": Rule(
        "",
        """
lock, count, mine = shmem.Lock(), shmem.zeros(1, dtype='i'), np.zeros(1, dtype='i')
with lock:  #! if True:
    shmem.get(mine, count, 0)
    mine[0] += 1
    shmem.put(count, mine, 0)
shmem.barrier_all()
if me == 0:
    print(count[0])
lock.destroy()
""",
        "race",
    ),
    "matrix product with gets": Rule(
        "",
        """
SIZE = 2
a, b = shmem.empty((SIZE, SIZE)), shmem.empty((SIZE, SIZE))
a[:], b[:] = me + 1.0, np.eye(SIZE) * (me + 1)
shmem.barrier_all()  #!
total, block = np.zeros((SIZE, SIZE)), np.empty((SIZE, SIZE))
for other in range(n):
    shmem.get(block, b, other)
    total += a[:] @ block
shmem.barrier_all()
a[:] = total
assert a[0, 0] == (me + 1) * n * (n + 1) / 2
""",
        "race",
    ),
    "all-reduce by recursive doubling": Rule(
        "",
        """
rounds = n.bit_length() - 1
total, came = np.array([me + 1.0]), shmem.zeros(rounds)
signals = [shmem.new_signal() for _ in range(rounds)]
for step in range(rounds):
    peer = me ^ (1 << step)
    shmem.put_signal(came[step:step + 1], total, peer, signals[step], 1, shmem.SIGNAL_SET)
    shmem.signal_wait_until(signals[step], shmem.CMP_EQ, 1)  #! shmem.quiet()
    total[0] += came[step]
assert total[0] in (n * (n + 1) / 2, me + 1.0)
""",
        "race",
        4,
    ),
    "histogram with atomics": Rule(
        "",
        """
BINS = 2
bins = shmem.zeros(BINS, dtype='l')
for value in [me, me + 1]:
    at = value % BINS
    shmem.atomic_inc(bins[at:at + 1], 0)  #! bins[at] += 1; shmem.put(bins[at:at + 1], bins[at:at + 1], 0)
shmem.barrier_all()
if me == 0:
    print(bins)
""",
        "race",
    ),
    "producer and consumer": Rule(
        "",
        """
buf, full, free = shmem.zeros(2), shmem.zeros(1, dtype='l'), shmem.zeros(1, dtype='l')
for item in range(2):
    if me == 0:
        shmem.wait_until(free, 'GE', item)  #!
        shmem.put(buf, np.full(2, item + 1.0), 1)
        shmem.fence()
        shmem.put(full, np.array([item + 1], dtype='l'), 1)
    elif me == 1:
        shmem.wait_until(full, 'GE', item + 1)
        print(buf[0])
        shmem.put(free, np.array([item + 1], dtype='l'), 0)
""",
        "race",
    ),
    "sums by gather and broadcast": Rule(
        "",
        """
mine, total = shmem.array([me + 1.0]), shmem.zeros(1)
parts = shmem.zeros(n)
shmem.put(parts[me:me + 1], mine, 0)
shmem.barrier_all()  #!
if me == 0:
    mine[0] = parts.sum()
shmem.broadcast(total, mine, 0)
assert me == 0 or total[0] > 0
""",
        "race",
        3,
    ),
}
"""By what they do."""
