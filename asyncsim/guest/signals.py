"""``signal.signal`` for ranks: Python lets only the main thread set handlers, and ranks are threads.

Each rank is told what it set; no handler is ever called, since no signal comes to one rank alone.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from asyncsim.guest.lane import lane

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def handlers_by_rank() -> Iterator[None]:
    """Let each rank set and ask handlers of its own while the block runs."""
    module: Any = signal
    set_handler, get_handler = module.signal, module.getsignal

    def own_get(signalnum: int, /) -> Any:  # noqa: ANN401 - a handler
        """Return the handler that this rank has set, or that of the process."""
        ours = get_handler(signalnum)  # refuses what is no signal
        own = lane()
        return ours if own is None else own.handlers.get(int(signalnum), ours)

    def own_set(signalnum: int, handler: Any, /) -> Any:  # noqa: ANN401 - as above
        """Note a handler of this rank; return the one before."""
        own = lane()
        if own is None:
            return set_handler(signalnum, handler)
        before = own_get(signalnum)
        if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
            raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
        own.handlers[int(signalnum)] = handler
        return before

    module.signal, module.getsignal = own_set, own_get
    try:
        yield
    finally:
        module.signal, module.getsignal = set_handler, get_handler
