"""Triton kernels as they are, on the machine: each program instance a stream, each memory access one operation.

    import asyncsim.frontends.triton as front    # before triton itself

    def step(host):
        box, flag = host.empty(64, name="box"), host.words(1, name="flag")
        exchange[(2,)](box, flag, host.bases, host.id, host.size)

    print(front.judge(step, ranks=2))

`exchange` is any function under ``@triton.jit``. It is run by Triton's own interpreter, on the CPU.
"""

from asyncsim.frontends.triton.host import Host
from asyncsim.frontends.triton.libraries import installed
from asyncsim.frontends.triton.program import judge, kernel_of

__all__ = ["Host", "installed", "judge", "kernel_of"]
