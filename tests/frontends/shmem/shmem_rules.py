"""Rules of OpenSHMEM 1.5, each as a small program that keeps it, and the same with one line changed, that breaks it.

A line ``kept  #! broken`` is `kept` in the one and `broken` in the other; an empty side leaves the line out. Every
program begins with `HEAD`. What the broken one gives: a kind of finding, or words of the message of a misuse.
"""

from dataclasses import dataclass

HEAD = """\
import numpy as np
from shmem4py import shmem
me, n = shmem.my_pe(), shmem.n_pes()
right, left = (me + 1) % n, (me - 1) % n
"""


@dataclass(frozen=True)
class Rule:
    """A rule: its section of OpenSHMEM 1.5, the two programs, and what the broken one gives."""

    section: str
    text: str
    gives: str
    ranks: int = 2

    def program(self, *, broken: bool) -> str:
        """Return one of the two programs."""
        lines = []
        for line in self.text.strip("\n").split("\n"):
            kept, mark, other = line.partition("#!")
            indent = " " * (len(kept) - len(kept.lstrip()))
            chosen = indent + other.strip() if mark and broken else kept
            if chosen.strip():
                lines.append(chosen.rstrip())
        return HEAD + "\n".join(lines) + "\n"


RACE, DEADLOCK, UNWRITTEN, MISMATCH = "race", "deadlock", "unwritten-read", "call-mismatch"
WRONG = "wrong-result"

RULES = {
    "a put is complete after a barrier": Rule(
        "9.5.1, 9.8.1",
        """
x = shmem.zeros(1, dtype='i')
shmem.put(x, np.array([me], dtype='i'), right)
shmem.barrier_all()  #!
assert x[0] == left
""",
        RACE,
    ),
    "a sync completes no put": Rule(
        "9.8.3",
        """
x = shmem.zeros(1, dtype='i')
shmem.put(x, np.array([me], dtype='i'), right)
shmem.barrier_all()  #! shmem.sync_all()
assert x[0] == left
""",
        RACE,
    ),
    "a quiet completes the puts before a sync": Rule(
        "9.11.2",
        """
x = shmem.zeros(1, dtype='i')
shmem.put(x, np.array([me], dtype='i'), right)
shmem.quiet()  #! shmem.fence()
shmem.sync_all()
assert x[0] == left
""",
        RACE,
    ),
    "a sync shows own stores": Rule(
        "9.8.3",
        """
x = shmem.zeros(1, dtype='i')
x[0] = me + 1
shmem.sync_all()  #!
y = np.zeros(1, dtype='i')
shmem.get(y, x, right)
assert y[0] == right + 1
""",
        RACE,
    ),
    "the source of a put may be reused on its return": Rule(
        "9.5.1",
        """
x, s = shmem.zeros(1, dtype='i'), shmem.zeros(1, dtype='i')
s[0] = me
shmem.put(x, s, right)  #! shmem.put_nbi(x, s, right)
s[0] = 7
shmem.barrier_all()
""",
        RACE,
    ),
    "the private source of a non-blocking put waits for a quiet": Rule(
        "9.5.3",
        """
x = shmem.zeros(4, dtype='i')
s = np.full(4, me, dtype='i')
shmem.put_nbi(x, s, right)
shmem.quiet()  #!
s[2] = 9
shmem.barrier_all()
assert x[2] == left or n == 1
""",
        RACE,
    ),
    "the target of a non-blocking get waits for a quiet": Rule(
        "9.5.4",
        """
x = shmem.array([me], dtype='i')
y = np.zeros(1, dtype='i')
shmem.get_nbi(y, x, right)
shmem.quiet()  #!
assert y[0] == right
shmem.barrier_all()
""",
        RACE,
    ),
    "a get reads what nobody writes": Rule(
        "9.5.2",
        """
x = shmem.array([me], dtype='i')
y = np.zeros(1, dtype='i')
shmem.get(y, x, right)
shmem.barrier_all()  #!
x[0] = 5
shmem.barrier_all()
""",
        RACE,
    ),
    "puts of two PEs go to two places": Rule(
        "9.5.1",
        """
x = shmem.zeros(n, dtype='i')
shmem.put(x[me:me + 1], np.array([me], dtype='i'), 0)  #! shmem.put(x[0:1], np.array([me], dtype='i'), 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "two puts to one place need a fence": Rule(
        "9.11.1",
        """
x = shmem.zeros(1, dtype='i')
if me == 0:
    shmem.put(x, np.array([1], dtype='i'), 1)
    shmem.fence()  #!
    shmem.put(x, np.array([2], dtype='i'), 1)
shmem.barrier_all()
""",
        RACE,
    ),
    "a flag is put after its data by a fence": Rule(
        "9.11.1, 9.9",
        """
x, flag = shmem.zeros(4, dtype='i'), shmem.zeros(1, dtype='i')
if me == 0:
    shmem.put(x, np.arange(4, dtype='i'), 1)
    shmem.fence()  #!
    shmem.put(flag, np.array([1], dtype='i'), 1)
elif me == 1:
    shmem.wait_until(flag, shmem.CMP.EQ, 1)
    assert x.sum() == 6
""",
        RACE,
    ),
    "a fence orders to one PE, a quiet to all": Rule(
        "9.11.1, 9.11.2",
        """
x, a, b = shmem.zeros(1, dtype='i'), shmem.zeros(1, dtype='i'), shmem.zeros(1, dtype='i')
if me == 0:
    shmem.put(x, np.array([3], dtype='i'), 2)
    shmem.quiet()  #! shmem.fence()
    shmem.put(a, np.array([1], dtype='i'), 1)
elif me == 1:
    shmem.wait_until(a, 'EQ', 1)
    shmem.put(b, np.array([1], dtype='i'), 2)
else:
    shmem.wait_until(b, 'EQ', 1)
    assert x[0] == 3
""",
        RACE,
        3,
    ),
    "a signal comes after its own data": Rule(
        "9.10.1",
        """
x, sig = shmem.zeros(4, dtype='i'), shmem.new_signal()
if me == 0:
    shmem.put_signal(x, np.arange(4, dtype='i'), 1, sig, 1, shmem.SIGNAL.SET)
elif me == 1:
    shmem.signal_wait_until(sig, shmem.CMP.EQ, 1)  #!
    assert x.sum() == 6
""",
        RACE,
    ),
    "a signal tells nothing of other puts": Rule(
        "9.10.1",
        """
x, y, sig = shmem.zeros(4, dtype='i'), shmem.zeros(1, dtype='i'), shmem.new_signal()
if me == 0:
    shmem.put(x, np.arange(4, dtype='i'), 1)
    shmem.fence()  #!
    shmem.put_signal(y, np.array([1], dtype='i'), 1, sig, 1, shmem.SIGNAL_ADD)
elif me == 1:
    shmem.signal_wait_until(sig, '>=', 1)
    assert x.sum() == 6
""",
        RACE,
    ),
    "the source of put_signal_nbi waits for a quiet": Rule(
        "9.10.2",
        """
x, s, sig = shmem.zeros(1, dtype='i'), shmem.array([me], dtype='i'), shmem.new_signal()
shmem.put_signal_nbi(x, s, right, sig, 1, shmem.SIGNAL_SET)
shmem.quiet()  #!
s[0] = 8
shmem.signal_wait_until(sig, 'EQ', 1)
""",
        RACE,
    ),
    "a wait needs somebody who ends it": Rule(
        "9.9.1",
        """
flag = shmem.zeros(1, dtype='i')
if me == 0:
    shmem.put(flag, np.array([1], dtype='i'), 1)  #! shmem.put(flag, np.array([2], dtype='i'), 1)
elif me == 1:
    shmem.wait_until(flag, 'EQ', 1)
""",
        DEADLOCK,
    ),
    "wait_until_all waits for all": Rule(
        "9.9.2",
        """
x, flags = shmem.zeros(n, dtype='l'), shmem.zeros(n, dtype='l')
one = np.array([1], dtype='l')
if me:
    shmem.put(x[me:me + 1], one, 0)
    shmem.fence()
    shmem.put(flags[me:me + 1], one, 0)
else:
    shmem.wait_until_all(flags[1:], 'EQ', 1)  #! shmem.wait_until(flags[1:2], 'EQ', 1)
    assert x.sum() == n - 1
""",
        RACE,
        3,
    ),
    "an iput writes its places": Rule(
        "9.5.1",
        """
x = shmem.zeros(8, dtype='i')
if me == 0:
    shmem.iput(x, np.ones(4, dtype='i'), 1, 2, 1)
    shmem.iput(x[1:], np.ones(4, dtype='i'), 1, 2, 1)  #! shmem.iput(x, np.ones(4, dtype='i'), 1, 2, 1)
shmem.barrier_all()
""",
        RACE,
    ),
    "an iget reads its places": Rule(
        "9.5.2",
        """
x = shmem.zeros(8, dtype='i')
y = np.zeros(4, dtype='i')
x[1] = 1  #! x[2] = 1
shmem.iget(y, x, right, 1, 2)
shmem.barrier_all()
""",
        RACE,
    ),
    "what nobody wrote is not read": Rule(
        "9.3.1",
        """
x = shmem.empty(2, dtype='d')
x[:] = 1  #! x[0] = 1
print(x.sum())
""",
        UNWRITTEN,
    ),
    "a target is symmetric": Rule(
        "9.5.1",
        """
x = shmem.zeros(2, dtype='d')  #! x = np.zeros(2, dtype='d')
shmem.put(x, np.ones(2), right)
shmem.barrier_all()
""",
        "target is not symmetric",
    ),
    "an array is used before it is freed": Rule(
        "9.3.1",
        """
x = shmem.zeros(2, dtype='d')
y = np.ones(2)
shmem.barrier_all()  #! shmem.free(x)
shmem.put(x, y, right)
""",
        "used after it was freed",
    ),
    "a put fits its target": Rule(
        "9.5.1",
        """
x = shmem.zeros(2, dtype='d')
shmem.put(x, np.ones(4), right, size=2)  #! shmem.put(x, np.ones(4), right, size=4)
""",
        "out of range",
    ),
    "a PE is one that is there": Rule(
        "4.1",
        """
x = shmem.zeros(2, dtype='d')
shmem.put(x, np.ones(2), right)  #! shmem.put(x, np.ones(2), n)
""",
        "there is no PE 2",
    ),
    "target and source are of one type": Rule(
        "9.5.1",
        """
x = shmem.zeros(2, dtype='d')
shmem.put(x, np.ones(2, dtype='d'), right)  #! shmem.put(x, np.ones(2, dtype='f'), right)
""",
        "they must be the same",
    ),
    "what was allocated is freed as a whole": Rule(
        "9.3.1",
        """
x = shmem.zeros(4, dtype='d')
shmem.free(x)  #! shmem.free(x[1:])
""",
        "free what was allocated, as a whole",
    ),
    "it is freed once": Rule(
        "9.3.1",
        """
x = shmem.zeros(4, dtype='d')
shmem.free(x)
shmem.barrier_all()  #! shmem.free(x)
""",
        "used after it was freed",
    ),
    "all PEs come to a barrier": Rule(
        "9.8.1",
        """
if me == 0:
    shmem.barrier_all()
else:
    shmem.barrier_all()  #! pass
""",
        MISMATCH,
    ),
    "all PEs call the same collective": Rule(
        "9.8",
        """
if me == 0:
    shmem.barrier_all()
else:
    shmem.barrier_all()  #! shmem.sync_all()
""",
        MISMATCH,
    ),
    "atomics of two PEs do not race": Rule(
        "9.6",
        """
x = shmem.zeros(1, dtype='l')
shmem.atomic_add(x, me + 1, 0)  #! shmem.put(x, np.array([me + 1], dtype='l'), 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "an atomic and a store race": Rule(
        "9.6, 3.1",
        """
x = shmem.zeros(1, dtype='l')
shmem.atomic_inc(x, 0)
shmem.barrier_all()  #!
if me == 0:
    x[0] += 5
""",
        RACE,
    ),
    "an atomic is not complete before a quiet": Rule(
        "9.6",
        """
x = shmem.zeros(1, dtype='l')
shmem.atomic_add(x, 1, right)
shmem.barrier_all()  #! shmem.sync_all()
assert x[0] == 1
""",
        RACE,
    ),
    "a compare-and-swap has one winner": Rule(
        "9.6",
        """
x = shmem.array([-1], dtype='l')
wins = shmem.zeros(n, dtype='l')
won = shmem.atomic_compare_swap(x, -1, me, 0) == -1
if won:  #! if True:
    shmem.put(wins[0:1], np.array([me], dtype='l'), 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "fetch-add hands out places": Rule(
        "9.6",
        """
x, places = shmem.zeros(1, dtype='l'), shmem.zeros(n, dtype='l')
at = shmem.atomic_fetch_add(x, 1, 0)  #! at = shmem.atomic_fetch(x, 0)
shmem.put(places[at:at + 1], np.array([me + 1], dtype='l'), 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "a non-blocking fetch is there after a quiet": Rule(
        "9.6.2",
        """
x = shmem.array([5], dtype='l')
y = np.zeros(1, dtype='l')
shmem.atomic_fetch_nbi(y, x, right)
shmem.quiet()  #!
assert y[0] == 5
shmem.barrier_all()
""",
        "before a quiet completes it",
    ),
    "an atomic flag comes after its data by a fence": Rule(
        "9.11.1",
        """
x, flag = shmem.zeros(2, dtype='d'), shmem.zeros(1, dtype='l')
if me == 0:
    shmem.put(x, np.ones(2), 1)
    shmem.fence()  #!
    shmem.atomic_set(flag, 1, 1)
elif me == 1:
    shmem.wait_until(flag, 'EQ', 1)
    assert x.sum() == 2
""",
        RACE,
    ),
    "a test that holds is a wait": Rule(
        "9.9.7",
        """
x, flag = shmem.zeros(1, dtype='d'), shmem.zeros(1, dtype='l')
if me == 0:
    shmem.put(x, np.ones(1), 1)
    shmem.fence()
    shmem.atomic_set(flag, 1, 1)
elif me == 1:
    while not shmem.test(flag, 'EQ', 1):  #! shmem.test(flag, 'EQ', 1)
        pass  #!
    assert x[0] == 1
""",
        RACE,
    ),
    "a lock excludes": Rule(
        "9.12",
        """
lock, count, mine = shmem.new_lock(), shmem.zeros(1, dtype='i'), np.zeros(1, dtype='i')
shmem.set_lock(lock)  #!
shmem.get(mine, count, 0)
mine[0] += 1
shmem.put(count, mine, 0)
shmem.clear_lock(lock)  #!
""",
        RACE,
    ),
    "a lock is let go": Rule(
        "9.12",
        """
lock = shmem.new_lock()
shmem.set_lock(lock)
shmem.clear_lock(lock)  #!
shmem.barrier_all()
""",
        DEADLOCK,
    ),
    "a lock is let go by who took it": Rule(
        "9.12",
        """
lock = shmem.new_lock()
shmem.set_lock(lock)  #!
shmem.clear_lock(lock)
""",
        "does not hold the lock",
    ),
    "a lock that is tried may be taken": Rule(
        "9.12",
        """
lock, count, mine = shmem.Lock(), shmem.zeros(1, dtype='i'), np.zeros(1, dtype='i')
if lock.acquire(blocking=False):
    shmem.get(mine, count, 0)
    mine[0] += 1
    shmem.put(count, mine, 0)
    lock.release()
else:
    print("taken")  #! shmem.put(count, mine, 0)
""",
        RACE,
    ),
    "a context completes its own": Rule(
        "9.5, 9.11.2",
        """
x = shmem.zeros(1, dtype='i')
ctx = shmem.Ctx.create()
shmem.put(x, np.array([me], dtype='i'), right, ctx=ctx)
ctx.quiet()  #! shmem.quiet()
shmem.barrier_all()
assert x[0] == left
ctx.destroy()
""",
        RACE,
    ),
    "a context orders its own": Rule(
        "9.11.1",
        """
x, flag = shmem.zeros(1, dtype='d'), shmem.zeros(1, dtype='l')
with shmem.Ctx.create() as ctx:
    if me == 0:
        shmem.put(x, np.ones(1), 1, ctx=ctx)
        ctx.fence()
        shmem.atomic_set(flag, 1, 1, ctx)  #! shmem.atomic_set(flag, 1, 1)
    elif me == 1:
        shmem.wait_until(flag, 'EQ', 1)
        assert x[0] == 1
""",
        RACE,
    ),
    "a team's sync is among its members": Rule(
        "9.8.4",
        """
x = shmem.zeros(1, dtype='i')
team = shmem.TEAM_WORLD.split_strided(0, 2)
x[0] = me
if me in (0, 2):
    team.sync()  #!
    y = np.zeros(1, dtype='i')
    shmem.get(y, x, 2 - me)
    assert y[0] == 2 - me
shmem.barrier_all()
""",
        RACE,
        3,
    ),
    "a broadcast's target is ready": Rule(
        "9.8.6",
        """
x, y = shmem.zeros(2, dtype='d'), shmem.zeros(2, dtype='d')
x[:] = me + 1
shmem.broadcast(y, x, 0)
assert y[1] == 1
shmem.barrier_all()  #!
y[:] = 5
shmem.barrier_all()
shmem.broadcast(y, x, 1)
""",
        "none",
    ),
    "a broadcast's target is not touched before": Rule(
        "9.8.6",
        """
x, y = shmem.zeros(2, dtype='d'), shmem.zeros(2, dtype='d')
y[:] = 5
shmem.barrier_all()  #!
shmem.broadcast(y, x, 0)
""",
        RACE,
    ),
    "a reduction is of all": Rule(
        "9.8.10",
        """
x, y = shmem.zeros(2, dtype='d'), shmem.zeros(2, dtype='d')
x[:] = me + 1
shmem.sum_reduce(y, x)
assert y[0] == 3
""",
        "none",
    ),
    "a reduction completes no put": Rule(
        "9.8.10",
        """
x, y, z = shmem.zeros(1, dtype='d'), shmem.zeros(1, dtype='d'), shmem.zeros(1, dtype='d')
shmem.put(z, np.ones(1), right)
shmem.quiet()  #!
shmem.sum_reduce(y, x)
assert z[0] == 1
""",
        RACE,
    ),
    "an fcollect's target is not touched before": Rule(
        "9.8.7",
        """
x, y = shmem.zeros(1, dtype='d'), shmem.full(n, 3.0)
y[:] = me
shmem.barrier_all()  #!
shmem.fcollect(y, x)
""",
        RACE,
    ),
    "a collect's target is not touched before": Rule(
        "9.8.7",
        """
x, y = shmem.zeros(2, dtype='d'), shmem.full(3, 3.0)
y[:] = me
shmem.barrier_all()  #!
shmem.collect(y, x, me + 1)
assert y[2] == 0
""",
        "none",
    ),
    "an alltoall's target is not touched before": Rule(
        "9.8.8",
        """
x, y = shmem.zeros(n, dtype='d'), shmem.zeros(n, dtype='d')
x[:] = me
y[:] = 5
shmem.barrier_all()  #!
shmem.alltoall(y, x)
assert list(y) == [0, 1]
""",
        RACE,
    ),
    "a root is in the team": Rule(
        "9.8.6",
        """
x, y = shmem.zeros(2, dtype='d'), shmem.zeros(2, dtype='d')
shmem.broadcast(y, x, 0)  #! shmem.broadcast(y, x, 2)
""",
        "there is no PE 2",
    ),
    "a wait is on a symmetric element": Rule(
        "9.9.1",
        """
x = shmem.zeros(1, dtype='i')  #! x = np.zeros(1, dtype='i')
shmem.atomic_add(shmem.zeros(1, dtype='i'), 1, 0)
shmem.wait_until(x, 'EQ', 0)
""",
        "ivar is not symmetric",
    ),
    "an atomic is on a type that has it": Rule(
        "9.6",
        """
x = shmem.zeros(1, dtype='l')  #! x = shmem.zeros(1, dtype='h')
shmem.atomic_inc(x, 0)
""",
        "it is for integers",
    ),
    "a swap of floats is atomic": Rule(
        "9.6",
        """
x = shmem.zeros(1, dtype='d')
shmem.atomic_swap(x, me + 0.5, 0)  #! shmem.put(x, np.array([me + 0.5]), 0)
shmem.barrier_all()
""",
        RACE,
    ),
    "a local pointer is memory": Rule(
        "9.4.1",
        """
x = shmem.zeros(2, dtype='i')
shmem.put(x, np.array([1, 2], dtype='i'), right)
shmem.barrier_all()  #!
view = shmem.ptr(x, me)
assert view[1] == 2
""",
        RACE,
    ),
}
"""By what they say."""
