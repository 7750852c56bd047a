"""The world of a run: P ranks, their actors, and every declaration with its size settled.

A world is a description. It holds no values, so many runs share one, and a reader rebuilds it
from the header of a trace.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from asyncsim.trace.declare import WORLD, Declaration, Group, Signal, Window
from asyncsim.trace.errors import MisuseError
from asyncsim.trace.layout import SignalLayout, WindowLayout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asyncsim.trace.region import Cell, Region, Word

WIRES = 1 << 80
"""The order of wires begins here: they come after all actors that are tasks."""
MOST_RANKS = 1 << 16
STREAM_BITS = 12
"""A task may start so many streams (2 ** 12) ..."""
STREAM_DEPTH = 4
"""... which may start streams in turn, so deep."""


@dataclass(frozen=True, slots=True, eq=False)
class Actor:
    """Who can be scheduled: a task of a rank, or a wire that carries one landing.

    `order` is its place in every list of actors: ranks ascending, each with its streams, then wires.
    `block` is the thread block that a stream was started in, by its name; see `in_block`.
    """

    name: str
    rank: int
    order: int
    depth: int = 0
    wire: bool = False
    block: str = ""

    @property
    def title(self) -> str:
        """Name it in a sentence: ``rank 2``, ``stream 2.1``; a wire is named by the task whose operation lands."""
        task = self.name.partition(">")[0]
        return f"rank {task}" if task == str(self.rank) else f"stream {task}"

    @property
    def in_block(self) -> tuple[int, str]:
        """The rank and the name of the thread block that it belongs to: each actor is one of its own by default."""
        return (self.rank, self.block or self.name)

    @property
    def lasts(self) -> bool:
        """Whether it is a stream with a name, or of one, which goes on from call to call; a wire is as its task."""
        return not self.name.partition(">")[0].replace(".", "").isdecimal()

    def stream(self, number: int, block: str = "", name: str = "") -> Actor:
        """Return the `number`-th stream (from 1) that this actor starts: ``2.1`` of rank 2.

        Args:
            number: how many it has started, with this one.
            block: the thread block that it belongs to; empty: one of its own.
            name: what it is called in every call, ``2.proxy``; empty: by its number.

        Raises:
            MisuseError: it has started as many as there can be.

        """
        if self.depth == STREAM_DEPTH or number >= 1 << STREAM_BITS:
            limits = f"{STREAM_DEPTH} deep and {(1 << STREAM_BITS) - 1} an actor"
            raise MisuseError(f"actor {self.name}: too many streams; they go {limits}")
        shift = STREAM_BITS * (STREAM_DEPTH - self.depth - 1)
        return Actor(
            f"{self.name}.{name or number}", self.rank, self.order + (number << shift), self.depth + 1, block=block
        )


class World:
    """P ranks and the memory they share.

    Args:
        ranks: P, at least 1.
        memory: the declarations, in the order in which a kernel takes them.

    """

    def __init__(self, ranks: int, memory: Sequence[Declaration]) -> None:
        """Settle every shape for this P and number every window and cell."""
        if isinstance(ranks, int) and ranks > MOST_RANKS:
            raise MisuseError(f"ranks={ranks}; at most {MOST_RANKS} are simulated")
        if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
            raise MisuseError(f"ranks={ranks!r}; a world has at least one rank")
        self.ranks = ranks
        self.memory = tuple(memory)
        self.actors = tuple(Actor(str(rank), rank, rank << STREAM_BITS * STREAM_DEPTH) for rank in range(ranks))
        self.windows: list[WindowLayout] = []
        self.signals: list[SignalLayout] = []
        self.layouts: dict[str, WindowLayout | SignalLayout] = {}
        self.groups: dict[str, tuple[int, ...]] = {WORLD: tuple(range(ranks))}
        cells = size = 0
        for declared in self.memory:
            name = getattr(declared, "name", None)
            if name in self.layouts:
                raise MisuseError(f"two declarations are called {name!r}; give each a name of its own")
            if isinstance(declared, Window):
                members = self._members(declared.group)
                over = self._over(declared)
                slot = len(self.windows) * ranks if over is None else over.first_slot
                members = members if over is None else over.members
                window = WindowLayout(declared, members, first_slot=slot, world=self, over=over)
                if over is None:
                    self.windows.append(window)
                    window.first_byte = size
                    size += math.prod(window.shape) * window.dtype.itemsize * ranks
                self.layouts[declared.name] = window
            elif isinstance(declared, Signal):
                signal = SignalLayout(declared, self._members(declared.group), first_slot=cells, world=self)
                cells += signal.cells_a_rank * ranks
                self.signals.append(signal)
                self.layouts[declared.name] = signal
            else:
                raise MisuseError(f"memory holds {declared!r}; declare Window(...) and Signal(...)")
        self.cells = cells
        windows = (layout for layout in self.layouts.values() if isinstance(layout, WindowLayout))
        self.mixed = frozenset(window.name for window in windows if window.mixed)
        """The windows whose memory is shared by one of another dtype."""

    def members(self, group: Group, holder: int) -> tuple[int, ...]:
        """Return the members of a group that rank `holder` is one of.

        Args:
            group: declared in the kernel's memory.
            holder: a rank, from 0.

        Raises:
            MisuseError: the rank is not in the group.

        """
        members = self._members(group)
        if holder not in members:
            raise MisuseError(f"rank {holder} is no member of group {group.name!r}; its members are {members}")
        return members

    def views(self, rank: int) -> tuple[WindowView | SignalView | OutsideView, ...]:
        """Return the memory as `rank` sees it: what a kernel gets, in the order of declaration."""
        return tuple(_view(layout, rank) for layout in self.layouts.values())

    def start_of(self, cell: Cell) -> int:
        """Return what a cell holds at the start; of a word with random content, as of one with none, 0.

        Args:
            cell: of this world.

        """
        layout = self.layouts[cell.signal]
        if isinstance(layout, SignalLayout):
            return layout.start
        memory = self.layouts[self.memory_of(layout.name)]
        dirty = memory.dirty if isinstance(memory, WindowLayout) else None
        if not isinstance(dirty, int | float) or cell.region is None:
            return 0
        whole = np.full(1, dirty, layout.dtype) if layout is memory else np.full(memory.shape, dirty, memory.dtype)
        low, high = (0, whole.itemsize) if layout is memory else cell.region.spans[0]
        return int(whole.reshape(-1).view(np.int8)[low:high].view(layout.dtype)[0])

    def memory_of(self, window: str) -> str:
        """Return the name of the window whose memory a window is: of a view, that which it is over."""
        layout = self.layouts[window]
        over = layout.over if isinstance(layout, WindowLayout) else None
        return window if over is None else over.name

    def _over(self, declared: Window) -> WindowLayout | None:
        """Return the window whose memory a declared one shares."""
        if not declared.over:
            return None
        found = self.layouts.get(declared.over)
        if not isinstance(found, WindowLayout):
            raise MisuseError(
                f"window {declared.name!r} is over {declared.over!r}, which is no window that is declared before it"
            )
        return found

    def _members(self, group: Group | None) -> tuple[int, ...]:
        if group is None:
            return self.groups[WORLD]
        if not isinstance(group, Group):
            raise MisuseError(f"{group!r} is no group; declare one: Group('pair', (0, 2))")
        members = group.members(self.ranks)
        if self.groups.setdefault(group.name, members) != members:
            raise MisuseError(f"two groups are called {group.name!r}; give each a name of its own")
        return members


def _view(layout: WindowLayout | SignalLayout, rank: int) -> WindowView | SignalView | OutsideView:
    if rank not in layout.members:
        return OutsideView(layout, rank)
    return WindowView(layout, rank, rank) if isinstance(layout, WindowLayout) else SignalView(layout, rank, rank)


def _peer(peer: object, members: tuple[int, ...], what: str, holder: int) -> int:
    """Return the rank in the world that `peer` means among these members."""
    if peer.__class__ is not int:
        if isinstance(peer, bool) or not hasattr(peer, "__index__"):
            raise MisuseError(f"rank {holder}: {what}.at({peer!r}); a peer is a rank, 0 to {len(members) - 1}")
        peer = operator.index(peer)
    assert isinstance(peer, int)  # noqa: S101 - for the type checker; both branches above ensure it
    if not 0 <= peer < len(members):
        raise MisuseError(f"rank {holder}: {what}.at({peer}); peers are the ranks 0 to {len(members) - 1}")
    return members[peer]


_KEPT_PEERS = 64
"""Among so many ranks a view keeps those of its peers: they are asked for again and again, and P² of them are few."""


class OutsideView:
    """A group's memory, given to a rank that is no member of it: it has a name and a shape, and cannot be touched."""

    __slots__ = ("_holder", "_layout")

    def __init__(self, layout: WindowLayout | SignalLayout, holder: int) -> None:
        """Refuse it to rank `holder`."""
        self._layout = layout
        self._holder = holder

    def at(self, peer: object) -> NoReturn:
        """Refuse: a group's memory is reached by its members."""
        self._refuse(f".at({peer!r})")

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("[...]")

    @property
    def name(self) -> str:
        """The declared name."""
        return self._layout.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in numbers."""
        return self._layout.shape

    def _refuse(self, what: str) -> NoReturn:
        layout = self._layout
        raise MisuseError(
            f"rank {self._holder}: {layout.name}{what} belongs to group {layout.group!r}, "
            f"whose members are the ranks {', '.join(map(str, layout.members))}; only they may touch it"
        )


class WindowView:
    """One rank's window, seen from a rank. Indexing it as numpy gives a region; ``at`` turns to a peer.

    Offsets count from 0 and stay inside the shape: nothing is clipped, nothing counts from the end.
    """

    __slots__ = ("_known", "_layout", "_peers", "holder", "owner")

    def __init__(self, layout: WindowLayout, owner: int, holder: int) -> None:
        """View the window of rank `owner` on behalf of rank `holder`."""
        self._layout = layout
        self._known = layout.known(owner)
        self._peers: dict[int, WindowView] = {}
        self.owner = owner
        self.holder = holder

    def at(self, peer: int) -> WindowView:
        """Return the same window of rank `peer`, a number of the group whose it is."""
        if peer.__class__ is int and (known := self._peers.get(peer)) is not None:
            return known
        layout = self._layout
        view = WindowView(layout, _peer(peer, layout.members, layout.name, self.holder), self.holder)
        if len(layout.members) <= _KEPT_PEERS:
            self._peers[int(peer)] = view
        return view

    def __getitem__(self, key: Any) -> Region:  # noqa: ANN401 - whatever numpy's basic indexing takes
        """Return a region: integers and slices, one a dimension, missing ones mean all."""
        if key.__class__ is int and (known := self._known.get(key)) is not None:
            return known
        return self._layout.region(self.owner, key, self.holder)

    @property
    def name(self) -> str:
        """The declared name."""
        return self._layout.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in numbers."""
        return self._layout.shape

    @property
    def word(self) -> WordsView:
        """Its elements as cells, ``window.word[0]``: to wait for, to notify, and to change atomically."""
        return WordsView(self._layout, self.owner, self.holder)

    @property
    def dtype(self) -> Any:  # noqa: ANN401 - numpy's dtype is generic in what it holds
        """The numpy dtype."""
        return self._layout.dtype


class WordsView:
    """The elements of one rank's integer window, seen from a rank as cells. Indexing it gives a word."""

    __slots__ = ("_layout", "holder", "owner")

    def __init__(self, layout: WindowLayout, owner: int, holder: int) -> None:
        self._layout = layout
        self.owner = owner
        self.holder = holder

    @property
    def name(self) -> str:
        """The declared name."""
        return f"{self._layout.name}.word"

    def __getitem__(self, key: Any) -> Word:  # noqa: ANN401 - whatever numpy's basic indexing takes
        """Return one word, an offset a dimension."""
        return self._layout.word(self.owner, key, self.holder)


class SignalView:
    """One rank's signal, seen from a rank. Indexing it gives a cell; ``at`` turns to a peer."""

    __slots__ = ("_known", "_layout", "_peers", "holder", "owner")

    def __init__(self, layout: SignalLayout, owner: int, holder: int) -> None:
        """View the signal of rank `owner` on behalf of rank `holder`."""
        self._layout = layout
        self._known = layout.known(owner)
        self._peers: dict[int, SignalView] = {}
        self.owner = owner
        self.holder = holder

    def at(self, peer: int) -> SignalView:
        """Return the same signal of rank `peer`, a number of the group whose it is."""
        if peer.__class__ is int and (known := self._peers.get(peer)) is not None:
            return known
        layout = self._layout
        view = SignalView(layout, _peer(peer, layout.members, layout.name, self.holder), self.holder)
        if len(layout.members) <= _KEPT_PEERS:
            self._peers[int(peer)] = view
        return view

    def __getitem__(self, key: Any) -> Cell:  # noqa: ANN401 - whatever numpy's basic indexing takes
        """Return one cell; trailing dimensions of extent 1 may be left out."""
        if key.__class__ is int and (known := self._known.get(key)) is not None:
            return known
        return self._layout.cell(self.owner, key, self.holder)

    @property
    def name(self) -> str:
        """The declared name."""
        return self._layout.name

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in numbers."""
        return self._layout.shape
