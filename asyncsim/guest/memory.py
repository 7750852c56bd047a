"""One process of a script: its memory, what it has loaded and stored of it, and its operations on the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.guest.host import blocking, present
from asyncsim.guest.layout import Wanted
from asyncsim.guest.line import Line, at_line, present_line, present_lines
from asyncsim.guest.places import Array, Block, Places, runs_of, sliced
from asyncsim.trace.errors import MisuseError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Sequence

    from asyncsim.guest.layout import Layout
    from asyncsim.guest.places import Run
    from asyncsim.machine.rank import Rank
    from asyncsim.trace.region import Region

_PATIENCE = 20_000
"""After so many loads, one after the other, that find what was loaded before, it is loaded again."""
_SPINS = 20
"""After so many times of that the process is taken to spin."""


class Memory:
    """One process as its script's operations see it; a front end adds what its interface has.

    Args:
        rank: what it is on the machine.
        layout: what the script has made so far.
        views: of what is declared, in that order.

    Attributes:
        places: its memory by address.

    """

    def __init__(self, rank: Rank, layout: Layout, views: Sequence[Any]) -> None:
        self.rank = rank
        self.me: int = rank.id
        self.size: int = rank.size
        self.layout = layout
        self.places = Places()
        self.ended = False
        self._views = layout.by_key(views)
        self._lines: list[Line] = []
        self._numbers: dict[Line, int] = {}
        self._seen: set[Block] = set()
        self._stored: dict[Block, None] = {}
        self._hits = self._spins = 0
        self._tried: tuple[Any, ...] | None = None

    # ---- what is declared

    def wanted(self, key: Hashable, wanted: Wanted) -> Any:  # noqa: ANN401 - a view of a window, or of a signal
        """Return what is declared under a key; if nothing is, or too little, stand still for the rest of this run.

        Args:
            key: what sets it apart.
            wanted: what it should be.

        """
        known = self.layout.wanted.get(key)
        if known is None or known.count < wanted.count:
            self.layout.fresh.append((key, wanted))
            self._stand_still()
        return self._views[key]

    def marked(self, key: Hashable) -> None:
        """Let something be known of the script from the start of its run; if it is not yet, stand still likewise."""
        if key not in self.layout.marks:
            self.layout.fresh.append((key, None))
            self._stand_still()

    def _stand_still(self) -> None:
        blocking(self.rank.wait(self._views[None][0] >= 1))

    def make(self, key: Hashable, wanted: Wanted, *, flat: Array | None = None, private: bool = False) -> Block:
        """Return memory as a new block.

        Args:
            key: of its declaration.
            wanted: what it is.
            flat: the array that it is; None: a new one. What that holds is stored.
            private: nobody else reaches it.

        """
        view = self.wanted(key, wanted)
        given = flat is not None
        if flat is None:
            flat = np.zeros(wanted.count, wanted.dtype)
        block = Block(key, self.layout.wanted[key].name, flat, view, private=private)
        self.places.add(block)
        if given and flat.size:
            self.note_store(block, [(0, flat.size, 1)])
        return block

    def word(self, block: Block, offset: int, dtype: np.dtype[Any], owner: int) -> Any:  # noqa: ANN401 - a cell
        """Return an element of a block as a cell, at any process.

        Args:
            block: the own one.
            offset: in bytes.
            dtype: of the word: an integer.
            owner: the process whose it is.

        """
        view = block.view
        if dtype != block.flat.dtype:
            count = block.flat.nbytes // dtype.itemsize
            name = f"{block.name}_{dtype.name}"
            view = self.wanted((block.key, dtype.name), Wanted(name, count, dtype.name, over=block.key))
        return view.at(owner).word[offset // dtype.itemsize]

    # ---- operations

    def do(self, operation: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 - what the operation gives
        """Tell the machine what was stored, and do an operation; what is loaded after it is loaded anew."""
        if self.ended:
            operation.close()
            raise GeneratorExit  # the run is over: the script's ``finally`` and ``with`` do nothing more
        try:
            self.flush()
            given = blocking(operation)
        except Exception:
            operation.close()
            raise
        except BaseException:
            operation.close()
            self.ended = True
            raise
        self.forget()
        self._tried = None
        return given

    def tried(self, asked: Hashable, operation: Callable[[], Any], wait: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Do an operation that looks at a cell, and changes nothing where it fails.

        In a ``while`` loop that comes back to the same with nothing between, what it found before it would find
        again until somebody changes the cell; so it waits for that first.

        Args:
            asked: what it is, and of what.
            operation: does it.
            wait: waits until the cell holds something else than is handed to it.

        """
        asking = (asked, *where) if (where := self._loop_lines()) else None
        before = self._tried
        if asking is not None and before is not None and before[0] == asking:
            wait(before[1])
        found = operation()
        self._tried = (asking, found)
        return found

    def _loop_lines(self) -> list[Line]:
        """Return the author's lines that run, from the innermost that stands in a ``while`` on."""
        lines = present_lines()
        return lines if any(line.module == "__main__" and line.number in self.layout.loops for line in lines) else []

    def forget(self) -> None:
        """Take nothing for known that was loaded before."""
        for block in self._seen:
            block.fresh[:] = False
        self._seen.clear()
        self._hits = self._spins = 0

    def flush(self) -> None:
        """Tell the machine what was stored, each store from the line that it comes from."""
        for block in list(self._stored):
            for number in np.unique(block.dirty):
                if not number:
                    continue
                call = at_line(self._lines[number - 1])
                for run in runs_of(np.flatnonzero(block.dirty == number)):
                    where = sliced(run)
                    call(blocking, self.rank.store(block.view[where], block.flat[where].copy()))
            block.dirty[:] = 0
        self._stored.clear()

    # ---- loads and stores

    def load(self, block: Block, array: Array) -> None:
        """Bring what an array in a block shows here.

        Args:
            block: in which the array lies.
            array: any view of it.

        """
        self.check_alive(block)
        self.load_runs(block, block.runs(array))

    def load_runs(self, block: Block, runs: Sequence[Run]) -> None:
        """Bring elements of a block here, if they are not.

        Args:
            block: any.
            runs: which elements.

        Raises:
            RefusedError: the process spins on what it loads.

        """
        known = True
        for run in runs:
            where = sliced(run)
            fresh = block.fresh[where]
            if fresh.all():
                continue
            known = False
            offsets = np.arange(run[0], where.stop, run[2])[~fresh]
            for missing in runs_of(offsets):
                there = sliced(missing)
                block.flat[there] = blocking(self.rank.load(block.view[there]))
                block.fresh[there] = True
                self._seen.add(block)
        if not known:
            self._hits = 0
            return
        self._hits += 1
        if self._hits > _PATIENCE:
            self._look_again()

    def _look_again(self) -> None:
        self._hits, self._spins = 0, self._spins + 1
        if self._spins > _SPINS:
            raise RefusedError(
                "this loop reads memory in place, again and again, and comes to no operation: what a peer writes there "
                "meanwhile races with it, and it may spin for ever; wait with the interface's own wait, or test"
            )
        for block in self._seen:
            block.fresh[:] = block.dirty > 0

    def store(self, block: Block, array: Array) -> None:
        """Note that what an array in a block shows was stored, on the present line.

        Args:
            block: in which the array lies.
            array: any view of it.

        """
        self.check_alive(block)
        self.note_store(block, block.runs(array))

    def note_store(self, block: Block, runs: Sequence[Run]) -> None:
        """Note that elements of a block were stored, on the present line.

        Args:
            block: any.
            runs: which elements.

        """
        line = present_line()
        number = self._numbers.get(line)
        if number is None:
            self._lines.append(line)
            number = self._numbers[line] = len(self._lines)
        for run in runs:
            where = sliced(run)
            block.dirty[where] = number
            block.fresh[where] = True
        self._seen.add(block)
        self._stored[block] = None
        self._hits = self._spins = 0

    def finish(self) -> None:
        """Come to the end of the script."""
        self.flush()

    def check_alive(self, block: Block) -> None:
        """Refuse what was freed.

        Raises:
            MisuseError: it was.

        """
        if block.freed:
            raise MisuseError(f"{block.name} is used after it was freed, at {block.freed}")

    def note(self, about: str, text: str) -> None:
        """Remark something of the present line, once.

        Args:
            about: what it is about; of a line and this there is one remark.
            text: the remark.

        """
        line = present_line()
        self.layout.notes.setdefault(f"{line} {about}", f"{line}: {text}")

    def region(self, block: Block, run: Run, owner: int) -> Region:
        """Return elements of a block as a region, at any process.

        Args:
            block: the own one.
            run: which elements.
            owner: whose they are.

        """
        view = block.view if owner == self.me else block.view.at(owner)
        found: Region = view[sliced(run)]
        return found


def process() -> Any:  # noqa: ANN401 - a `Memory`, or what a front end made of it
    """Return the process that runs.

    Raises:
        MisuseError: none does.

    """
    own = present()
    if own is None:
        raise MisuseError("this belongs into a script that asyncsim runs, and was called outside of one")
    return own
