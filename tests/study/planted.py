"""Kernels with one mistake each in their synchronisation, for which a repair is looked for."""

from __future__ import annotations

import numpy as np

from asyncsim import Signal, Window, barrier, kernel

CHUNKS, SLOTS = 2, 2

stage = Window("stage", (SLOTS, 3), np.float32)  # what the left neighbour sends
full = Signal("full", (SLOTS,), self_cleaning=True)
free = Signal("free", (SLOTS,), start=1)
box = Window("box", (2,), np.float32)
cell = Signal("cell", (1,), self_cleaning=True)
read = Signal("read", (1,), start=1)
rows = Window("rows", ("P", 2), np.float32)
arrived = Signal("arrived", ("P",), self_cleaning=True)


def chunks(P, call, rng):
    return rng.standard_normal((P, CHUNKS, 3)).astype(np.float32)


def everything(xs):
    return [np.stack(xs)] * len(xs)


def pairs(P, call, rng):
    return rng.standard_normal((P, 2)).astype(np.float32)


def sums(xs):
    return [np.sum(xs, axis=0)] * len(xs)


def from_the_left(xs):
    return [xs[rank - 1] for rank in range(len(xs))]


def doubled(xs):
    return [2 * x for x in xs]


@kernel(memory=[stage, full, free], inputs=chunks, golden=everything)
async def wrong_neighbour(rank, x, stage, full, free):
    """The credit of a slot goes to the next reader, not back to its writer."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    out = np.zeros((rank.size, CHUNKS, 3), np.float32)
    out[rank.id] = x
    for step in range(rank.size - 1):
        for c in range(CHUNKS):
            await rank.wait(free[c] >= 1, consume=True)
            await rank.put_signal(stage.at(right)[c], out[(rank.id - step) % rank.size, c], full.at(right)[c])
            await rank.wait(full[c] >= 1, consume=True)
            out[(left - step) % rank.size, c] = await rank.load(stage[c])
            await rank.notify(free.at(right)[c], 1)
    return out


@kernel(memory=[stage, full, free], inputs=chunks, golden=everything)
async def no_credit(rank, x, stage, full, free):
    """Credits come back, and nobody waits for them."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    out = np.zeros((rank.size, CHUNKS, 3), np.float32)
    out[rank.id] = x
    for step in range(rank.size - 1):
        for c in range(CHUNKS):
            with rank.phase("send"):
                await rank.put_signal(stage.at(right)[c], out[(rank.id - step) % rank.size, c], full.at(right)[c])
            await rank.wait(full[c] >= 1, consume=True)
            out[(left - step) % rank.size, c] = await rank.load(stage[c])
            await rank.notify(free.at(left)[c], 1)
    return out


@kernel(memory=[box, cell, read], inputs=pairs, golden=from_the_left)
async def early(rank, x, box, cell, read):
    """The credit goes back before the box was read."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    await rank.put_signal(box.at(right)[:], x, cell.at(right)[0])
    await rank.wait(cell[0] >= 1, consume=True)
    await rank.notify(read.at(left)[0], 1)
    return await rank.load(box[:])


@kernel(memory=[box, cell, read], inputs=pairs, golden=from_the_left)
async def early_by_a_line(rank, x, box, cell, read):
    """The same, with a line for each thing that happens."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    await rank.put_signal(box.at(right)[:], x, cell.at(right)[0])
    await rank.wait(cell[0] >= 1, consume=True)
    await rank.notify(  # the credit
        read.at(left)[0], 1
    )
    out = await rank.load(box[:])  # the box
    return 1 * out


@kernel(memory=[box], inputs=pairs, golden=sums)
async def bare(rank, x, box):
    """Nothing is ordered, and the reads stand in a loop."""
    await rank.store(box[:], x)
    out = x.copy()
    for peer in rank.peers:
        out += await rank.load(box.at(peer)[:])
    return out


@kernel(memory=[rows, arrived], inputs=pairs, golden=sums)
async def one_too_few(rank, x, rows, arrived):
    """Waits for all peers but one."""
    await rank.store(rows[rank.call % 2], x)
    for peer in rank.peers:
        await rank.notify(arrived.at(peer)[0], 1)
    await rank.wait(arrived[0] >= rank.size - 2)
    await rank.notify(arrived[0], -(rank.size - 1))
    out = x.copy()
    for peer in rank.peers:
        out += await rank.load(rows.at(peer)[rank.call % 2])
    return out


@kernel(memory=[box, cell, read], inputs=pairs, golden=from_the_left)
async def two_puts(rank, x, box, cell, read):
    """The signal of the second put says nothing of the first."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    await rank.put(box.at(right)[:1], x[:1])
    await rank.put_signal(box.at(right)[1:], x[1:], cell.at(right)[0])
    await rank.wait(cell[0] >= 1, consume=True)
    out = await rank.load(box[:])
    await rank.notify(read.at(left)[0], 1)
    return out


@kernel(memory=[rows, cell, read, Window("source", (1,), np.float32)], inputs=pairs, golden=from_the_left)
async def source_reused(rank, x, rows, cell, read, source):  # noqa: PLR0913, PLR0917 - its memory
    """The source of a non-blocking put is overwritten at once."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    for n, number in enumerate(x):
        await rank.store(source[0], number)
        await rank.put_signal(rows.at(right)[0, n : n + 1], source[:], cell.at(right)[0], nbi=True)
    await rank.wait(cell[0] >= 2, consume=True)
    out = await rank.load(rows[0])
    await rank.notify(read.at(left)[0], 1)
    return out


@kernel(memory=[box, cell, read], inputs=pairs, golden=from_the_left)
async def relaxed(rank, x, box, cell, read):
    """The flag may come before the data."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    await rank.store(box.at(right)[:], x)
    await rank.notify(cell.at(right)[0], 1, order="relaxed")
    await rank.wait(cell[0] >= 1, consume=True)
    out = await rank.load(box[:])
    await rank.notify(read.at(left)[0], 1)
    return out


async def writer(rank, x, box):
    await rank.store(box[:], x)


async def reader(rank, box):
    return 2 * await rank.load(box[:])


@kernel(memory=[box], inputs=pairs, golden=doubled)
async def streams(rank, x, box):
    """One stream writes what another reads; nothing orders them."""
    one = await rank.start(writer, x, box)
    other = await rank.start(reader, box)
    await rank.join(one)
    return await rank.join(other)


@kernel(memory=[box, cell])
async def without_golden(rank, box, cell):
    """Nothing says what it is for, so nothing but order may be added."""
    right = (rank.id + 1) % rank.size
    await rank.notify(cell.at(right)[0], 1)
    await rank.store(box.at(right)[0], 1.0)
    await rank.wait(cell[0] >= 1, consume=True)
    return await rank.load(box[0])


async def half(rank, x, rows):
    """Is called by two kernels."""
    for peer in rank.peers:
        await rank.store(rows.at(peer)[rank.id], x)


@kernel(memory=[rows], inputs=pairs, golden=everything)
async def by_helper(rank, x, rows):
    """The writes stand in a function that another kernel calls too."""
    await rank.store(rows[rank.id], x)
    await half(rank, x, rows)
    return await rank.load(rows[:])


@kernel(memory=(rows, Signal("met", ("P", 1))), inputs=pairs, golden=everything)
async def by_helper_with_a_barrier(rank, x, rows, met):
    """Meets once; the next call may push too early."""
    await rank.store(rows[rank.id], x)
    await half(rank, x, rows)
    await barrier(rank, met, generation=rank.call + 1)
    return await rank.load(rows[:])


@kernel(memory=[box, cell, read], inputs=pairs, golden=from_the_left)
async def all_to_one(rank, x, box, cell, read):
    """Everybody's flag goes to rank 0, and the others wait for ever."""
    right, left = (rank.id + 1) % rank.size, (rank.id - 1) % rank.size
    await rank.wait(read[0] >= 1, consume=True)
    await rank.store(box.at(right)[:], x)
    await rank.notify(cell.at(0)[0], 1)
    await rank.wait(cell[0] >= 1, consume=True)
    out = await rank.load(box[:])
    await rank.notify(read.at(left)[0], 1)
    return out


MEMORY = [box]


@kernel(memory=MEMORY, inputs=pairs, golden=sums)
async def memory_elsewhere(rank, x, box):
    await rank.store(box[:], x)
    out = x.copy()
    for peer in rank.peers:
        out += await rank.load(box.at(peer)[:])
    return out


@kernel(memory=[box], inputs=pairs, golden=sums)
async def wrong_anyhow(rank, x, box):
    """Wrong in every schedule."""
    return x


async def writes_and_waits(rank, x, box, cell):
    await rank.store(box[:], x)
    await rank.wait(cell[0] >= 1, consume=True)


async def reads_and_notifies(rank, box, cell):
    out = await rank.load(box[:])
    await rank.notify(cell[0], 1)
    return 2 * out


@kernel(memory=[box, cell], inputs=pairs, golden=doubled)
async def streams_in_a_loop(rank, x, box, cell):
    """The writer waits for the reader, so that neither can be joined before the other starts; and that twice."""
    for _ in range(2):
        one = await rank.start(writes_and_waits, x, box, cell)
        other = await rank.start(reads_and_notifies, box, cell)
        await rank.join(one)
        out = await rank.join(other)
    return out


def made_inside():
    """Return a kernel that no module has by name."""

    @kernel(memory=[box], inputs=pairs, golden=sums)
    async def inner(rank, x, box):
        await rank.store(box[:], x)
        return await rank.load(box.at((rank.id + 1) % rank.size)[:])

    return inner
