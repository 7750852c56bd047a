"""Collectives as kernels of this field write them, each right, and broken by one choice.

The arguments `SEM` and `SCOPE` are those of the signal that says something is there; `HOW` names what is broken.
"""

import triton
import triton.language as tl


@triton.jit
def tell(p, value, SEM: tl.constexpr, SCOPE: tl.constexpr):
    tl.atomic_xchg(p, value, sem=SEM, scope=SCOPE)


@triton.jit
def await_at_least(p, value):
    while tl.atomic_add(p, 0, sem="acquire", scope="sys") < value:
        pass


@triton.jit
def await_equal(p, value):
    while tl.atomic_cas(p, value, value, sem="acquire", scope="sys") != value:
        pass


@triton.jit
def meet(
    flags, epoch, me: tl.constexpr, size: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr, SLOT: tl.constexpr
):
    for peer in tl.static_range(size):
        tell(flags[peer] + SLOT, epoch, SEM, SCOPE)
    for peer in tl.static_range(size):
        await_at_least(flags[me] + peer, epoch)


@triton.jit
def two_shot(
    x, flags, out, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, SEM: tl.constexpr,
    SCOPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """All-reduce: each rank reduces its part of all buffers, and stores it to all."""
    slot = 0 if HOW == "wrong slot" else me
    meet(flags, 2 * epoch - 1, me, size, SEM, SCOPE, slot)
    i = me * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for peer in tl.static_range(size):
        total += tl.load(x[peer] + i)
    for peer in tl.static_range(size):
        tl.store(x[peer] + i, total)
    if HOW != "no end":
        meet(flags, 2 * epoch, me, size, SEM, SCOPE, slot)
    for part in tl.static_range(size):
        i = part * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x[me] + i))


@triton.jit
def sense_meets(count, senses, sense, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr):
    """A barrier of ranks: the last one to come resets the counter, then turns everybody's sense."""
    arrived = tl.atomic_add(count[0], 1, sem="relaxed" if HOW == "relaxed" else "acq_rel", scope="sys")
    if arrived == size - 1:
        if HOW != "late reset":
            tl.atomic_xchg(count[0], 0, sem="relaxed", scope="sys")
        for peer in tl.static_range(size):
            tl.atomic_xchg(senses[peer], sense, sem="release", scope="sys")
        if HOW == "late reset":
            tl.atomic_xchg(count[0], 0, sem="relaxed", scope="sys")
    await_equal(senses[me], sense)


@triton.jit
def reduce_between_senses(
    x, count, senses, out, sense, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    sense_meets(count, senses, sense, me, size, HOW)
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for peer in tl.static_range(size):
        total += tl.load(x[peer] + i)
    tl.store(out + i, total)
    if HOW != "no end":
        sense_meets(count, senses, 1 - sense, me, size, HOW)


@triton.jit
def gathered_after_flags(
    x, flags, out, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """The host's copies bring the parts and then the flags; blocks wait, each for the part that it reads."""
    part = tl.program_id(0)
    if HOW == "one waits":
        if part == 0:
            for peer in tl.static_range(size):
                await_at_least(flags + peer, epoch)
    else:
        await_at_least(flags + part, epoch)
    i = part * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) * 2)


@triton.jit
def ring_reduce_scatter(
    x, box, ready, taken, out, call, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, SEM: tl.constexpr,
    SCOPE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Partial sums go round; a flag for each step, of the call, and an acknowledgement before the box is used again."""
    right: tl.constexpr = (me + 1) % size
    left: tl.constexpr = (me + size - 1) % size
    i = tl.arange(0, BLOCK)
    total = tl.load(x + ((me + size - 1) % size) * BLOCK + i)
    for step in tl.static_range(size - 1):
        if HOW != "no acknowledgement":
            await_at_least(taken[me] + step, call)
        tl.store(box[right] + step * BLOCK + i, total)
        tell(ready[right] + step, 1 if HOW == "always 1" else call + 1, SEM, SCOPE)
        await_at_least(ready[me] + step, 1 if HOW == "always 1" else call + 1)
        total = tl.load(box[me] + step * BLOCK + i) + tl.load(x + ((me + 2 * size - 2 - step) % size) * BLOCK + i)
        tell(taken[left] + step, call + 1, "release", "sys")
    tl.store(out + i, total)


@triton.jit
def queue(
    box, tail, head, out, call, me: tl.constexpr, HOW: tl.constexpr, SEM: tl.constexpr, MANY: tl.constexpr,
    DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Rank 0 sends to rank 1 through a few slots, by sequence numbers."""
    i = tl.arange(0, BLOCK)
    for n in tl.static_range(MANY):
        number = call * MANY + n
        slot = (number % DEPTH) * BLOCK
        if me == 0:
            if HOW != "no room asked for":
                await_at_least(head[0], number - DEPTH + 1)
            tl.store(box[1] + slot + i, i + 10 * number)
            tell(tail[1], number + 1, SEM, "sys")
        else:
            await_at_least(tail[1], number + 1)
            tl.store(out + n * BLOCK + i, tl.load(box[1] + slot + i))
            tell(head[0], number + 1, SEM, "sys")


@triton.jit
def product_by_counters(
    a, b, parts, counter, out, call, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, SCOPE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Each rank stores its product at rank 0; the counter there says when all have."""
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    product = tl.dot(tl.load(a + i * BLOCK + j), tl.load(b + i * BLOCK + j))
    for peer in tl.static_range(size):
        tl.store(parts[peer] + (me * BLOCK + i) * BLOCK + j, product)
        tl.atomic_add(counter[peer], 1, sem="relaxed" if HOW == "relaxed" else "release", scope=SCOPE)
    await_at_least(counter[me], size * (call + (0 if HOW == "stale epoch" else 1)))
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for peer in tl.static_range(size):
        total += tl.load(parts[me] + (peer * BLOCK + i) * BLOCK + j)
    tl.store(out + i * BLOCK + j, total)


@triton.jit
def product_by_lock(a, b, total, lock, me: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """Each rank adds its product to rank 0's total, under a lock."""
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    product = tl.dot(tl.load(a + i * BLOCK + j), tl.load(b + i * BLOCK + j))
    if HOW != "no lock":
        while tl.atomic_cas(lock[0], 0, 1, sem="acquire", scope="sys") != 0:
            pass
    at = total[0] + i * BLOCK + j
    tl.store(at, tl.load(at) + product)
    if HOW != "no lock":
        tl.atomic_xchg(lock[0], 0, sem="relaxed" if HOW == "relaxed" else "release", scope="sys")


@triton.jit
def product_by_atomics(
    a, b, total, flags, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """Each rank adds its product to everybody's total, atomically; all meet."""
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    product = tl.dot(tl.load(a + i * BLOCK + j), tl.load(b + i * BLOCK + j))
    for peer in tl.static_range(size):
        tl.atomic_add(total[peer] + i * BLOCK + j, product, sem="relaxed", scope="sys")
    if HOW != "no end":
        meet(flags, epoch, me, size, "release", "sys", me)


@triton.jit
def all_to_all(
    x, counts, box, many, flags, out, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Rows of different lengths: how many come is sent beside them, and a signal after both."""
    i = tl.arange(0, BLOCK)
    for peer in tl.static_range(size):
        n = tl.load(counts + peer)
        tl.store(box[peer] + me * BLOCK + i, tl.load(x + peer * BLOCK + i, mask=i < n), mask=i < n)
        if HOW == "count after":
            tell(flags[peer] + me, epoch, "release", "sys")
        tl.store(many[peer] + me, n)
        if HOW != "count after":
            tell(flags[peer] + me, epoch, "release", "sys")
    for peer in tl.static_range(size):
        await_equal(flags[me] + peer, epoch)
        n = tl.load(many[me] + peer)
        tl.store(out + peer * BLOCK + i, tl.load(box[me] + peer * BLOCK + i, mask=i < n, other=0))


@triton.jit
def low_latency_gather(
    x, packets, out, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, BLOCK: tl.constexpr
):
    """Each word of a packet has its flag beside it, so there is no signal: a reader looks until the flags are there."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i).to(tl.int64)
    for peer in tl.static_range(size):
        tl.store(packets[peer] + me * BLOCK + i, value | (epoch.to(tl.int64) << 32))
    for peer in tl.static_range(size):
        packet = tl.load(packets[me] + peer * BLOCK + i, volatile=True)
        if HOW == "any flag":
            while tl.min(packet >> 32, axis=0) == 0:
                packet = tl.load(packets[me] + peer * BLOCK + i, volatile=True)
        else:
            while tl.min(packet >> 32, axis=0) != epoch:
                packet = tl.load(packets[me] + peer * BLOCK + i, volatile=True)
        tl.store(out + peer * BLOCK + i, (packet & 0xFFFFFFFF).to(tl.int32))


@triton.jit
def two_nodes_meet(
    x, near, far, out, epoch, me: tl.constexpr, size: tl.constexpr, HOW: tl.constexpr, SCOPE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """A barrier of two nodes: all of a node come to its first rank, the first ranks meet, and let theirs go."""
    half: tl.constexpr = size // 2
    first: tl.constexpr = me // half * half
    other: tl.constexpr = (first + half) % size
    i = tl.arange(0, BLOCK)
    tl.store(x[(me + half) % size] + i, i + 10 * me + 100 * epoch)
    tl.atomic_add(near[first], 1, sem="release", scope=SCOPE)
    if me == first:
        await_at_least(near[first], half * epoch)
        if HOW != "nodes apart":
            tell(far[other], epoch, "release", SCOPE)
            await_at_least(far[first], epoch)
        for each in tl.static_range(half):
            tell(near[first + each] + 1, epoch, "release", SCOPE)
    await_at_least(near[me] + 1, epoch)
    tl.store(out + i, tl.load(x[me] + i))


@triton.jit
def grid_meets(x, bar, out, BLOCK: tl.constexpr):
    """Two blocks of a grid meet: what they add flips the top bit once both have come."""
    block = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    tl.store(x + block * BLOCK + i, i + block)
    old = tl.atomic_add(bar, tl.where(block == 0, 7, 1), sem="acq_rel", scope="gpu")
    while ((old ^ tl.atomic_add(bar, 0, sem="acquire", scope="gpu")) & 8) == 0:
        pass
    tl.store(out + block * BLOCK + i, tl.load(x + (1 - block) * BLOCK + i))


@triton.jit
def goes_on_for_ever(words):
    while (tl.atomic_add(words, 0, sem="acquire") + tl.atomic_add(words + 1, 0, sem="acquire")) != 2:
        pass


@triton.jit
def counts_for_ever(words):
    n = 0
    while n < 5:
        if n > 7:
            n = tl.load(words)
