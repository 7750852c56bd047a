"""A PyPTO script whose kernel copies a row, with what a kernel may call; a body of the kernel is filled in."""

SCRIPT = """\
import functools
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig

SIZE = 4


def own(f):
    @functools.wraps(f)
    def called(*args, **kwargs):
        return f(*args, **kwargs)

    return called


def is_one(n):
    return n == 1


def row(x, at=(0, 0)):
    return pl.load(x, list(at), [1, SIZE])


class Loads:
    def __call__(self, x):
        return pl.load(x, [0, 0], [1, SIZE])

    def method(self, x):
        return pl.load(x, [0, 0], [1, SIZE])


LOADS = Loads()
METHOD = LOADS.method
PARTIAL = functools.partial(pl.load, offsets=[0, 0])


class Base:
    def __private(self, x):
        return None


@pl.program
class Copy(Base):
    __HIDDEN = 1

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x, y, data, signal):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
{body}
        return pl.store(tile, [0, 0], y)

    def __private(self, x):
        return pl.load(x, [0, 0], [1, SIZE])

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, xs, ys):
        data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
            {host}
        return ys


compiled = ir.compile(Copy, distributed_config=DistributedConfig(device_ids=[0, 1]))
xs = np.arange(2 * SIZE, dtype=np.float32).reshape(2, 1, SIZE)
ys = np.zeros_like(xs)
compiled(xs, ys)
print("OK" if np.array_equal(xs, ys) else f"FAILED {{ys}}")
"""
HOST = "self.kernel(xs[r], ys[r], data, signal, device=r)"
LOAD = "tile = pl.load(data, [0, 0], [1, SIZE])"
