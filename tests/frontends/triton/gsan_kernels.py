"""What GSan's documentation names: programs of a few blocks that race, and that do not."""

import triton
import triton.language as tl


@triton.jit
def pass_on(p, c, out, SEM: tl.constexpr, SEES: tl.constexpr, SCOPE: tl.constexpr, KIND: tl.constexpr):
    """Block 0 has an access, then adds; block 1 polls, then has one."""
    if tl.program_id(0) == 0:
        if KIND == "WAR":
            tl.store(out, tl.load(p))
        else:
            tl.store(p, 1)
        tl.atomic_add(c, 1, sem=SEM, scope=SCOPE)
    else:
        while tl.atomic_add(c, 0, sem=SEES, scope=SCOPE) < 1:
            pass
        if KIND == "RAW":
            tl.store(out, tl.load(p))
        else:
            tl.store(p, 2)


@triton.jit
def hand_on(p, c, out):
    """Through two flags, from block to block."""
    block = tl.program_id(0)
    if block == 0:
        tl.store(p, 7)
    else:
        tl.atomic_poll(c + block - 1, 1, sem="acquire", scope="gpu")
    if block == 2:
        tl.store(out, tl.load(p))
    else:
        tl.atomic_xchg(c + block, 1, sem="release", scope="gpu")


@triton.jit
def several_write(p, c, out):
    """Three writers, and one that waits for all."""
    block = tl.program_id(0)
    if block < 3:
        tl.store(p + block, block)
        tl.atomic_add(c, 1, sem="release", scope="gpu")
    else:
        tl.atomic_poll(c, 3, sem="acquire", scope="gpu")
        tl.store(out, tl.load(p) + tl.load(p + 1) + tl.load(p + 2))


@triton.jit
def neighbours(p, q, SHIFT: tl.constexpr):
    """Each block copies what another block's place has; a launch comes after the one before."""
    block = tl.program_id(0)
    tl.store(q + block, tl.load(p + (block + SHIFT) % 2))


@triton.jit
def two_gpus(box, counter, out, me: tl.constexpr, ORDERED: tl.constexpr):
    tl.store(box[me], me + 1)
    if ORDERED:
        tl.atomic_add(counter[0], 1, sem="acq_rel", scope="sys")
        tl.atomic_poll(counter[0], 2, sem="acquire", scope="sys")
    tl.store(out, tl.load(box[1 - me]))
