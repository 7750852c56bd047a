"""What the tests of the PyPTO dialect share: a session whose modules are imported, and a program around one kernel."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from asyncsim.frontends.pypto.hook import answering
from asyncsim.frontends.pypto.session import Session

SIZE = 4


@contextmanager
def dialect(**options):
    """Import the dialect for a block: pl, pld, ir, config(P), run(P), and the session."""
    session = Session("test.py", **options)
    with answering(session):
        import pypto.language as pl  # noqa: PLC0415
        import pypto.language.distributed as pld  # noqa: PLC0415
        from pypto import ir  # noqa: PLC0415
        from pypto.ir.distributed_compiled_program import DistributedConfig  # noqa: PLC0415
        from pypto.runtime import RunConfig  # noqa: PLC0415

        def config(ranks):
            return DistributedConfig(device_ids=list(range(ranks)), num_sub_workers=0)

        def run(ranks):
            return RunConfig(platform="a2a3sim", distributed_config=config(ranks))

        yield SimpleNamespace(pl=pl, pld=pld, ir=ir, config=config, run=run, session=session)


def dispatched(  # noqa: PLR0913 - a program has so many parts
    d, kernel, x, y, *, ranks=2, data=None, signal=None
):
    """Run a kernel of (x, y, data, signal) on every rank; `data` and `signal` are (shape, dtype) of the windows."""
    pl, pld = d.pl, d.pld
    data = data or ([ranks, SIZE], pl.FP32)
    signal = signal or ([ranks, 1], pl.INT32)

    @pl.jit.host
    def host(x, y):
        data_buf = pld.alloc_window_buffer(data[0], dtype=data[1])
        signal_buf = pld.alloc_window_buffer(signal[0], dtype=signal[1])
        for r in pl.range(pld.world_size()):
            kernel(x[r], y[r], pld.window(data_buf, data[0], dtype=data[1]), pld.window(signal_buf, *signal), device=r)
        return y

    return host.compile(x, y, config=d.run(ranks))(x, y)


def arrays(ranks=2, size=SIZE):
    """Return the inputs and outputs of that many ranks: one row each."""
    x = np.arange(ranks * size, dtype=np.float32).reshape(ranks, 1, size)
    return x, np.zeros_like(x)
