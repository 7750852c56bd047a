"""What each operation of the dialect becomes on one rank, and that the results are right.

The sequences of composites are those of upstream's lowering: which primitives, in which order, with how many credits.
"""

import numpy as np
import pytest
from pypto_dialect import dialect, dispatched

from asyncsim.machine.case import Case
from asyncsim.machine.simulate import simulate
from asyncsim.schedulers.table import make

P = 3


def meet(generation, signal="signal"):
    """Return a barrier of rank 1 of three: everybody told, everybody heard of."""
    notified = [f"notify {signal}[1, 0]@{peer} += 1" for peer in (0, 2)]
    return notified + [f"wait {signal}[{peer}, 0]@1 >= {generation}" for peer in (0, 2)]


def settle(credits):  # noqa: A002 - the field's word
    """Return the epilogue of rank 1."""
    return [f"notify signal[{peer}, 0]@1 += {-credits}" for peer in (0, 2)]


def fold(columns="0:4", row="1"):
    """Return a reduction by rank 1: the own row first, then the peers' ascending."""
    where = f"data[{row}, {columns}]"
    return [f"load {where}@1", f"remote_load {where}@0", f"remote_load {where}@2"]


def steps(body, *, signal=None, data=None, size=4):
    """Run a kernel; return what rank 1 did, the inputs and the outputs."""
    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            body(d, x, y, data, signal)

        x = np.arange(P * P * size, dtype=np.float32).reshape(P, P, size)
        y = np.zeros_like(x)
        dispatched(
            d, kernel, x, y, ranks=P, signal=(signal or [P, 1], pl.INT32), data=(data or [P, size], pl.FP32)
        )  # fmt: skip
        case = Case(d.session.dispatched[0].kernel, ranks=P, calls=1)
        run = simulate(case, make("fifo"), record="fifo")
    return [shown(event.op) for event in run.trace.events if event.op.actor.name == "1"], x, y


def shown(op):
    """Write an operation as the tables here do."""
    if op.cell is not None:
        sign = {"AtomicAdd": "+=", "Set": ":=", "Ge": ">=", "Eq": "=="}[op.how]
        return f"{op.kind} {op.cell} {sign} {op.amount}"
    return " ".join([op.kind, *(str(access.region) for access in op.accesses)])


def test_barrier():
    def body(d, x, y, data, signal):
        pld = d.pld
        signal = pld.tensor.barrier(signal)

    done, _, _ = steps(body)
    assert done == meet(1) + settle(1)


def test_reduce_scatter():
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        data = pl.store(pl.load(x, [0, 0], [P, 4]), [0, 0], data)
        data = pld.tensor.reduce_scatter(data, signal)
        pl.store(pl.load(data, [pld.rank(pld.get_comm_ctx(data)), 0], [1, 4]), [0, 0], y)

    done, x, y = steps(body)
    assert done[1:-1] == [*meet(1), *fold(), *meet(2), "store data[1, 0:4]@1", *settle(2)]
    np.testing.assert_array_equal(y[:, 0], x.sum(0))


def test_allreduce_by_a_mesh_in_chunks_of_sixteen_kibibytes():
    size = 4096 + 8

    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        data = pl.store(pl.load(x, [0, 0], [1, size]), [0, 0], data)
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
        pl.store(pl.load(data, [0, 0], [1, size]), [0, 0], y)

    done, x, y = steps(body, data=[1, size], size=size)
    first = [*fold("0:4096", "0"), *meet(2), "store data[0, 0:4096]@1"]
    second = [*fold("4096:4104", "0"), *meet(3), "store data[0, 4096:4104]@1"]
    assert done[1:-1] == [*meet(1), *first, *second, *settle(3)]
    np.testing.assert_array_equal(y[:, 0], [x[:, 0].max(0)] * P)


def test_allreduce_by_a_ring():
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        data = pl.store(pl.load(x, [0, 0], [1, 3]), [0, 0], data)
        data = pld.tensor.allreduce(data, signal, mode="ring")
        pl.store(pl.load(data, [0, 0], [1, 3]), [0, 0], y)

    done, x, y = steps(body, signal=[2 * (P - 1), P], data=[1, 3], size=3)

    def meets(row, generation):
        told = [f"notify signal[{row}, 1]@{peer} += 1" for peer in (0, 2)]
        return told + [f"wait signal[{row}, {peer}]@1 >= {generation}" for peer in (0, 2)]

    rounds = []
    for row in range(2 * (P - 1)):
        at = f"data[0, {-row % P}]"  # one element a segment
        loads = [f"load {at}@1"] if row < P - 1 else []
        rounds += [*meets(row, 1), *loads, f"remote_load {at}@0", *meets(row, 2), f"store {at}@1"]
    credits_back = [f"notify signal[{row}, {peer}]@1 += -2" for row in range(4) for peer in (0, 2)]
    assert done[1:-1] == rounds + credits_back
    np.testing.assert_array_equal(y[:, 0], [x[:, 0].sum(0)] * P)


def test_broadcast_reads_the_root_also_at_the_root():
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        if pld.rank(pld.get_comm_ctx(data)) == 2:
            pl.store(pl.load(x, [0, 0], [P, 4]), [0, 0], data)
        data = pld.tensor.broadcast(data, signal, root=2)
        pl.store(pl.load(data, [0, 0], [P, 4]), [0, 0], y)

    done, x, y = steps(body)
    assert done[:-1] == [*meet(1), "get data[0:3, 0:4]@2 data[0:3, 0:4]@1", *settle(1)]
    np.testing.assert_array_equal(y, [x[2]] * P)


@pytest.mark.parametrize("flat", [False, True])
def test_allgather_puts_to_every_rank_itself_included(flat):
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        data = pld.tensor.allgather(x, data, signal)
        pl.store(pl.load(data, [0, 0], [P, 4]), [0, 0], y)

    with dialect() as d:
        pl = d.pl

        @pl.jit.incore
        def kernel(x, y, data, signal):
            body(d, x, y, data, signal)

        x = np.arange(P * 4, dtype=np.float32).reshape((P, 4) if flat else (P, 1, 4))
        y = np.zeros((P, P, 4), np.float32)
        dispatched(d, kernel, x, y, ranks=P)
        run = simulate(Case(d.session.dispatched[0].kernel, ranks=P, calls=1), make("fifo"), record="fifo")
    done = [shown(event.op) for event in run.trace.events if event.op.actor.name == "1"]
    assert done[:-1] == [*(f"put data[1, 0:4]@{peer}" for peer in range(P)), *meet(1), *settle(1)]
    np.testing.assert_array_equal(y, [x.reshape(P, 4)] * P)


def test_all_to_all_from_a_window_and_from_a_tensor():
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        data = pld.tensor.all_to_all(x, data, signal)
        pl.store(pl.load(data, [0, 0], [P, 4]), [0, 0], y)

    done, x, y = steps(body)
    assert done[:-1] == [*(f"put data[1, 0:4]@{peer}" for peer in range(P)), *meet(1), *settle(1)]
    np.testing.assert_array_equal(y, x.swapaxes(0, 1))


def test_composites_take_windows_as_inputs():
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, y, z, rows, row, one, other, signal):  # noqa: PLR0913, PLR0917 - two composites' operands
            rows = pl.store(pl.load(x, [0, 0], [P, 4]), [0, 0], rows)
            row = pl.store(pl.load(x, [0, 0], [1, 4]), [0, 0], row)
            one = pld.tensor.all_to_all(rows, one, signal)
            other = pld.tensor.allgather(row, other, signal)
            pl.store(pl.load(one, [0, 0], [P, 4]), [0, 0], y)
            pl.store(pl.load(other, [0, 0], [P, 4]), [0, 0], z)

        @pl.jit.host
        def host(x, y, z):
            sizes = [[P, 4], [1, 4], [P, 4], [P, 4]]
            bufs = [pld.alloc_window_buffer(size, dtype=pl.FP32) for size in sizes]
            signal = pld.alloc_window_buffer([P, 1], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                windows = [pld.window(buf, size, dtype=pl.FP32) for buf, size in zip(bufs, sizes, strict=True)]
                kernel(x[r], y[r], z[r], *windows, pld.window(signal, [P, 1], dtype=pl.INT32), device=r)

        x = np.arange(P * P * 4, dtype=np.float32).reshape(P, P, 4)
        y, z = np.zeros_like(x), np.zeros_like(x)
        host.compile(x, y, z, config=d.run(P))(x, y, z)
        assert d.session.dispatched[0].judge(calls=1).verdict == "PROVED"
    np.testing.assert_array_equal(y, x.swapaxes(0, 1))
    np.testing.assert_array_equal(z, [x[:, 0]] * P)


@pytest.mark.parametrize("listed", [True, False])
def test_all_to_all_v_takes_counts_of_rows_from_lists_and_tensors(listed):
    with dialect() as d:
        pl, pld = d.pl, d.pld

        @pl.jit.incore
        def kernel(x, counts, y, z, data, *cells):
            signal, recv = cells
            me = pld.rank(pld.get_comm_ctx(data))
            data = pld.tensor.all_to_all_v(x, data, signal, [me] * P if listed else counts, recv)
            pl.store(pl.load(data, [0, 0], [2 * P, 4]), [0, 0], y)
            pl.store(pl.load(recv, [0, 0], [P, 1]), [0, 0], z)

        @pl.jit.host
        def host(x, counts, y, z):
            data = pld.alloc_window_buffer([2 * P, 4], dtype=pl.FP32)
            signal, recv = (pld.alloc_window_buffer([P, 1], dtype=pl.INT32) for _ in range(2))
            for r in pl.range(pld.world_size()):
                cells = [pld.window(each, [P, 1], dtype=pl.INT32) for each in (signal, recv)]
                kernel(x[r], counts[r], y[r], z[r], pld.window(data, [2 * P, 4], dtype=pl.FP32), *cells, device=r)

        x = np.arange(1, 1 + P * 2 * P * 4, dtype=np.float32).reshape(P, 2 * P, 4)
        counts, y, z = np.full((P, P), 2, np.int32), np.zeros_like(x), np.zeros((P, P, 1), np.int32)
        host.compile(x, counts, y, z, config=d.run(P))(x, counts, y, z)
        assert d.session.dispatched[0].judge(calls=1).verdict == "PROVED"
    np.testing.assert_array_equal(y, x.reshape(P, P, 2, 4).swapaxes(0, 1).reshape(x.shape))
    assert z[1].reshape(-1).tolist() == ([0, 1, 2] if listed else [2, 2, 2])


def test_primitives():
    def body(d, x, y, data, signal):
        pl, pld = d.pl, d.pld
        me = pld.system.rank(pld.system.get_comm_ctx(data))
        right = (me + 1) % pld.nranks(pld.get_comm_ctx(data))
        tile = pl.load(x, [0, 0], [1, 4])
        data = pld.tile.remote_store(tile, data, right, [0, 0])
        data = pld.remote_store(tile, data, peer=right, offsets=[1, 0], atomic=pld.AtomicType.Add)
        data = pld.tensor.put(data, right, x, [2, 0], [0, 2], [1, 2])
        signal = pld.system.notify(signal, right, [0, 0], 3, op=pld.NotifyOp.Set)
        signal = pld.system.wait(signal, [0, 0], 3, cmp=pld.WaitCmp.Eq)
        y = pld.tensor.get(y, me, data)
        data = pld.tensor.get(data, right, data, [0, 0], [0, 0], [1, 1])
        data = pld.tensor.put(data, me, data)
        data = pl.write(data, [2, 3], pl.read(data, [2, 0]))
        one, two = pl.add(1, 2), pl.mul(pl.sub(2.0, 1), 2)
        pl.write(y, [2, 3], one + two + pl.cast(1.6, pl.INT32))

    done, x, y = steps(body)
    assert done == [
        "remote_store data[0, 0:4]@2",
        "remote_store data[1, 0:4]@2",
        "put data[2, 0:2]@2",
        "notify signal[0, 0]@2 := 3",
        "wait signal[0, 0]@1 == 3",
        "load data[0:3, 0:4]@1",
        "get data[0, 0]@2 data[0, 0]@1",
        "put data[0:3, 0:4]@1 data[0:3, 0:4]@1",
        "load data[2, 0]@1",
        "store data[2, 3]@1",
    ]
    for rank in range(P):
        left = x[(rank - 1) % P]
        np.testing.assert_array_equal(y[rank, :2], [left[0], left[0]])
        assert y[rank, 2].tolist() == [*left[0, 2:4], 0, 6]
