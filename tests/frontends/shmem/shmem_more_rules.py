"""Further rules of OpenSHMEM 1.5: waits for any of several, teams, contexts, signals, atomics without a wait."""

from shmem_rules import DEADLOCK, RACE, Rule

FLAGS = """
x, flags = shmem.zeros(n, dtype='l'), shmem.zeros(n, dtype='l')
one = np.array([1], dtype='l')
if me:
    shmem.put(x[me:me + 1], one, 0)
    shmem.fence()
    shmem.put(flags[me:me + 1], one, 0)
"""
FURTHER = {
    "wait_until_any waits for one": Rule(
        "9.9.3",
        FLAGS
        + """
else:
    k = shmem.wait_until_any(flags, 'EQ', 1)
    print(x[k])  #! print(x[n - k])
""",
        RACE,
        3,
    ),
    "wait_until_some waits for those that it names": Rule(
        "9.9.4",
        FLAGS
        + """
else:
    for k in shmem.wait_until_some(flags, 'EQ', 1):  #! for k in (1, 2):
        print(x[k])
""",
        RACE,
        3,
    ),
    "wait_until_any leaves out what its status says": Rule(
        "9.9.3",
        FLAGS
        + """
else:
    status = np.array([1, 0, 1], dtype='i')
    k = shmem.wait_until_any(flags, 'EQ', 1, status)
    print(x[k])  #! print(x[2])
""",
        RACE,
        3,
    ),
    "test_all holds when all do": Rule(
        "9.9.8",
        FLAGS
        + """
else:
    while not shmem.test_all(flags[1:], 'EQ', 1):  #! while not shmem.test_any(flags[1:], 'EQ', 1) == 0:
        pass
    print(x.sum())
""",
        RACE,
        3,
    ),
    "a vector says what each holds": Rule(
        "9.9.5",
        """
flags = shmem.zeros(2, dtype='l')
if me == 0:
    shmem.atomic_set(flags[0:1], 1, 1)
    shmem.atomic_set(flags[1:2], 2, 1)
else:
    shmem.wait_until_all_vector(flags, 'EQ', [1, 2])  #! shmem.wait_until_all_vector(flags, 'EQ', [2, 2])
""",
        DEADLOCK,
    ),
    "a context of a team numbers PEs as the team": Rule(
        "9.4.1",
        """
x = shmem.zeros(2, dtype='l')
team = shmem.TEAM_WORLD.split_strided(1, 1, 2)
if me:
    with team.create_ctx() as ctx:
        place = team.my_pe()  #! place = 0
        shmem.put(x[place:place + 1], np.array([me], dtype='l'), 0, ctx=ctx)
shmem.barrier_all()
assert me != 1 or x[0] in (0, 1, 2)
""",
        RACE,
        3,
    ),
    "a fence orders one context": Rule(
        "9.11.1",
        """
x, flag = shmem.zeros(1, dtype='d'), shmem.zeros(1, dtype='l')
ctx = shmem.Ctx.create()
if me == 0:
    shmem.put(x, np.ones(1), 1, ctx=ctx)
    ctx.fence()  #! shmem.fence()
    shmem.atomic_set(flag, 1, 1, ctx)
else:
    shmem.wait_until(flag, 'EQ', 1)
    assert x[0] == 1
ctx.destroy()
""",
        RACE,
    ),
    "a barrier completes the default context only": Rule(
        "9.8.1",
        """
x = shmem.zeros(1, dtype='l')
ctx = shmem.Ctx.create()
shmem.put(x, np.array([me], dtype='l'), right, ctx=ctx)
ctx.quiet()  #!
shmem.barrier_all()
print(x[0])
ctx.destroy()
""",
        RACE,
    ),
    "signals are added up": Rule(
        "9.10.1",
        """
x, sig = shmem.zeros(n, dtype='l'), shmem.new_signal()
if me:
    shmem.put_signal(x[me:me + 1], np.array([me], dtype='l'), 0, sig, 1, shmem.SIGNAL_ADD)
else:
    shmem.signal_wait_until(sig, 'EQ', n - 1)  #! shmem.signal_wait_until(sig, 'GE', 1)
    print(x.sum())
""",
        RACE,
        3,
    ),
    "an atomic set goes with others": Rule(
        "9.7",
        """
x = shmem.zeros(1, dtype='l')
shmem.atomic_set(x, me + 1, 0)  #! shmem.put(x, np.array([me + 1], dtype='l'), 0)
shmem.barrier_all()
print(x[0])
""",
        RACE,
    ),
    "an atomic fetch reads beside atomics": Rule(
        "9.7",
        """
x, y = shmem.zeros(1, dtype='l'), np.zeros(1, dtype='l')
if me:
    shmem.atomic_add(x, 3, 0)
else:
    shmem.atomic_fetch(x, 0)  #! shmem.get(y, x, 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "bits of two PEs are set atomically": Rule(
        "9.7",
        """
x = shmem.zeros(1, dtype='L')
shmem.atomic_or(x, 1 << me, 0)
shmem.barrier_all()  #! shmem.sync_all()
assert me or x[0] == 3
""",
        RACE,
    ),
    "a get does not wait for a put of the same PE": Rule(
        "9.11.2",
        """
x, y = shmem.zeros(1, dtype='l'), np.zeros(1, dtype='l')
shmem.put(x, np.array([me + 5], dtype='l'), right)
shmem.quiet()  #!
shmem.get(y, x, right)
shmem.barrier_all()
""",
        RACE,
    ),
    "an array is deleted after its last use by all": Rule(
        "9.3.1",
        """
x = shmem.zeros(2)
view = x[1:]
shmem.put(view, np.ones(1), right)
shmem.barrier_all()  #! shmem.free(x)
view[0] += 1
""",
        "after it was freed",
    ),
    "a deleted lock is not taken": Rule(
        "9.12",
        """
lock = shmem.new_lock()
shmem.set_lock(lock)
shmem.clear_lock(lock)
shmem.barrier_all()  #! shmem.del_lock(lock)
if me == 0:
    shmem.set_lock(lock)
    shmem.clear_lock(lock)
""",
        "was deleted",
    ),
    "ufuncs in place are stores": Rule(
        "3.1",
        """
x = shmem.array([1.0, 2.0])
shmem.barrier_all()
np.multiply(x, 2, out=x)
shmem.barrier_all()  #!
y = np.zeros(2)
shmem.get(y, x, right)
shmem.barrier_all()
""",
        RACE,
    ),
}
"""By what they say."""
