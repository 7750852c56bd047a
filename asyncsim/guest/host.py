"""The host: a plain, blocking function runs as a kernel, on the machine as it is.

The function runs in a greenlet. Where it comes to an operation, the greenlet hands the operation's coroutine
to the coroutine that drives it (`hosted`) and stands still; that one awaits it, and hands back what came of it. So
lambdas, generators, classes, and calls out of a library may come to an operation like any other code, and nothing of
the author's is rewritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from greenlet import getcurrent, greenlet

from asyncsim.guest.author import is_the_authors
from asyncsim.machine.site import drivers

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import FrameType


class Guest(greenlet):
    """A function that is hosted.

    Attributes:
        own: what a front end keeps of it, for code of the author's that names no rank; None: nothing.

    """

    own: Any = None

    def frames(self) -> list[FrameType]:
        """Return the author's frames in it while it stands still, the outermost first."""
        found = []
        frame = self.gr_frame
        while frame is not None:
            if is_the_authors(frame.f_code):
                found.append(frame)
            frame = frame.f_back
        return found[::-1]


async def hosted(program: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the author's
    """Run a blocking function to its end, and return what it returns.

    What is thrown into this coroutine, such as a refusal or the end of the run, comes out of the operation that the
    function stands at: through the author's ``except`` and ``finally``.

    Args:
        program: calls operations by `blocking`.
        args: for it.
        kwargs: likewise.

    """
    guest = Guest(program)
    given = guest.switch(*args, **kwargs)
    while not guest.dead:
        try:
            outcome = await given
        except BaseException as error:  # noqa: BLE001 - the guest's to handle, whatever it is
            given = guest.throw(error)
        else:
            given = guest.switch(outcome)
    return given


drivers.add(hosted.__code__)


def is_hosted() -> bool:
    """Say whether the code that runs just now is in a hosted function, so that it may come to an operation."""
    return isinstance(getcurrent(), Guest)


def present() -> Any:  # noqa: ANN401 - whatever a front end keeps
    """Return what a front end keeps of the hosted function that runs; None where none does, or nothing is kept."""
    return getattr(getcurrent(), "own", None)


def keep(own: Any) -> None:  # noqa: ANN401 - as above
    """Keep something of the hosted function that runs."""
    current: Any = getcurrent()
    current.own = own


def blocking(operation: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what the operation gives
    """Let the driver of the hosted function that runs await a coroutine; return what it gives, or raise what it raises.

    Args:
        operation: of a `Rank`, or a composite of such.

    """
    return getcurrent().parent.switch(operation)  # type: ignore[union-attr]  # a guest has a parent
