"""Inline PTX: what a kernel writes as text is done as what it means, once for each element that it is given.

Known are the instructions of communication kernels: ld, st, atom, red with their orders and scopes, membar and fence,
barriers of a block, moves, integer arithmetic, comparisons, predicates and branches. A branch back to a label is a spin
loop, and becomes a wait where what ends it is a comparison. Thread 0 stands for the threads of a block.

Source: PTX ISA 8.5, sections 9.7.9 to 9.7.13.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from asyncsim.frontends.triton import builder as memory
from asyncsim.frontends.triton.libraries import interpreter, tl
from asyncsim.frontends.triton.lines import result_is_used
from asyncsim.frontends.triton.ptx_text import ORDERS, SCOPES, Instruction, parse
from asyncsim.frontends.triton.space import refused
from asyncsim.frontends.triton.spins import spin
from asyncsim.frontends.triton.trial import present_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from asyncsim.frontends.triton.block import Block
    from asyncsim.trace.errors import RefusedError

Registers = dict[str, int]

_HOW = {
    "add": "ADD", "exch": "XCHG", "and": "AND", "or": "OR", "xor": "XOR", "min": "MIN", "max": "MAX",
}  # fmt: skip
_SPECIAL = {"%laneid": 0, "%warpid": 0, "%globaltimer": 0, "%clock": 0, "%clock64": 0}
_COMPARES: dict[str, Callable[[int, int], bool]] = {
    "eq": int.__eq__, "ne": int.__ne__, "lt": int.__lt__, "le": int.__le__, "gt": int.__gt__, "ge": int.__ge__,
    "lo": int.__lt__, "ls": int.__le__, "hi": int.__gt__, "hs": int.__ge__,
}  # fmt: skip
_COMPUTES: dict[str, Callable[..., int]] = {
    "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "and": int.__and__, "or": int.__or__,
    "xor": int.__xor__, "shl": int.__lshift__, "shr": int.__rshift__, "min": min, "max": max,
    "mad": lambda one, other, more: one * other + more, "not": int.__invert__, "neg": int.__neg__,
    "mov": lambda value: value, "cvt": lambda value: value, "cvta": lambda value: value,
}  # fmt: skip
_NOTHING = frozenset(("nanosleep", "prefetch", "griddepcontrol", "pragma", "loc"))
_MOST_STEPS = 10_000
"""Instructions of one text without a memory access: a loop that goes on longer goes on for ever."""


class Outputs:
    """What the interpreter asks for the results.

    Args:
        handles: one for each output.

    """

    def __init__(self, handles: Sequence[Any]) -> None:
        self._handles = handles

    def get_result(self, number: int) -> Any:
        """Return an output."""
        return self._handles[number]


def inline(
    block: Block, text: str, constraints: str, values: Sequence[Any], types: Sequence[Any], _pure: Any, pack: int
) -> Outputs:
    """Do what a text of inline assembly means, once for each element.

    Args:
        block: the program instance.
        text: of the assembly; ``$0`` and on are the outputs, then the inputs.
        constraints: LLVM's; an output begins with ``=``.
        values: handles of the inputs, all of one shape.
        types: of the outputs.
        pack: how many elements one instance of the assembly handles.

    Raises:
        RefusedError: an instruction is not known, or `pack` is not 1.

    """
    if pack != 1:
        raise refused(f"inline assembly with pack={pack}; only pack=1 is known here")
    given = [each.strip() for each in constraints.split(",") if not each.strip().startswith("~")]
    outputs = sum(each.startswith("=") for each in given)
    program = parse(text)
    shape = values[0].data.shape if values else (1,)
    kinds = [_scalar(each) for each in types]
    found = [np.zeros(shape, interpreter._get_np_dtype(kind)) for kind in kinds]  # noqa: SLF001 - its own table
    used = result_is_used()
    block.one_thread = True
    for at in np.ndindex(shape):
        registers = {f"${outputs + number}": _number(each.data[at]) for number, each in enumerate(values)}
        after = _Thread(block, *program, used=used).run(registers)
        for number, kept in enumerate(found[: max(outputs, 1)]):
            bits = after.get(f"${number}", 0) & (1 << 8 * kept.dtype.itemsize) - 1
            kept[at] = np.array(bits, f"u{kept.dtype.itemsize}").view(kept.dtype)
    block.one_thread = False
    return Outputs([interpreter.TensorHandle(kept, kind) for kept, kind in zip(found, kinds, strict=True)])


def _scalar(kind: Any) -> Any:
    while hasattr(kind, "element_ty") and not kind.is_ptr():
        kind = kind.element_ty
    return kind


def _number(value: Any) -> int:
    array = np.asarray(value)
    return int(array.view(f"u{array.dtype.itemsize}")) if array.dtype.kind == "f" else int(array)


class _Thread:
    """One thread that runs the text.

    Args:
        block: the program instance.
        program: instructions.
        labels: where they stand.
        used: whether the kernel uses what comes out.

    """

    def __init__(
        self, block: Block, program: tuple[Instruction, ...], labels: dict[str, int], *, used: bool
    ) -> None:  # fmt: skip
        self._block, self._program, self._labels, self._used = block, program, labels, used
        self._loops: dict[int, int] = {}
        """By the first instruction of a loop, the last branch back to it."""
        for at, each in enumerate(program):
            if each.words[0] == "bra" and self._target(each) <= at:
                self._loops[self._target(each)] = at

    def run(self, registers: Registers) -> Registers:
        """Run it from its first instruction to its last, and return the registers."""
        own, at, steps = dict(registers), 0, 0
        while at < len(self._program):
            steps += 1
            if steps > _MOST_STEPS:
                raise refused(f"inline assembly that does not come to an end: {self._program[at].text!r}")
            last = self._loops.get(at)
            if last is None:
                at = self._step(at, own)
                continue
            own, at = spin(
                lambda _own, place, first=at, last=last: first <= place <= last,
                self._round,
                (own, at),
                held=self._is_read_after(at, last),
            )
        return own

    def _round(self, own: Registers, first: int) -> tuple[Registers, int]:
        """Go once round a loop; return the registers, and where it goes on."""
        own, at, last = dict(own), first, self._loops[first]
        while first <= at <= last:
            after = self._step(at, own)
            if after == first:
                break
            at = after
        else:
            return own, at
        return own, first

    def _step(self, at: int, own: Registers) -> int:
        """Do one instruction, and return the place of the next."""
        each = self._program[at]
        if each.guard and bool(own.get(each.guard, 0)) is each.unless:
            return at + 1
        if each.words[0] == "bra":
            return self._target(each)
        if each.words[0] in ("ret", "exit"):
            return len(self._program)
        self._do(each, own)
        return at + 1

    def _target(self, each: Instruction) -> int:
        label = each.operands[-1]
        if label not in self._labels:
            raise refused(f"inline assembly branches to {label!r}, which is not a label there")
        return self._labels[label]

    def _is_read_after(self, first: int, last: int) -> bool:
        """Say whether what a loop reads matters behind it: to a later instruction, or to the kernel."""
        made = {each.operands[0] for each in self._program[first : last + 1] if each.operands}
        later = {part for each in self._program[last + 1 :] for part in re.findall(r"[$%\w.]+", each.text)}
        return bool(made & later) or (self._used and any(name.startswith("$") for name in made))

    # One instruction.

    def _do(self, each: Instruction, own: Registers) -> None:
        name = each.words[0]
        if name in _NOTHING:
            return
        if name in _METHODS:
            _METHODS[name](self, each, own)
        elif name in _COMPUTES and (each.kind[0] != "f" or name == "mov"):
            own[each.operands[0]] = _COMPUTES[name](*(self._value(each, at, own) for at in each.operands[1:]))
        else:
            raise _unknown(each)

    def selp(self, each: Instruction, own: Registers) -> None:
        """Do a selp."""
        chosen = 1 if own.get(each.operands[3], 0) else 2
        own[each.operands[0]] = self._value(each, each.operands[chosen], own)

    def barrier(self, _each: Instruction, _own: Registers) -> None:
        """Do a barrier of the block."""
        if present_trial() is None:
            self._block.barrier()

    def _value(self, each: Instruction, operand: str, own: Registers) -> int:
        if operand in own:
            return own[operand]
        if match := re.fullmatch(r"%(tid|ntid|ctaid|nctaid)\.([xyz])", operand):
            axis = "xyz".index(match[2])
            index = {"tid": (0, 0, 0), "ntid": (1, 1, 1), "ctaid": self._block.index, "nctaid": self._block.grid}
            return int(index[match[1]][axis])
        if operand in _SPECIAL:
            return _SPECIAL[operand]
        try:
            return int(operand.rstrip("U"), 0)
        except ValueError:
            raise refused(f"inline assembly reads {operand!r}, which nothing wrote: {each.text!r}") from None

    def _address(self, each: Instruction, operand: str, own: Registers) -> int:
        base, _, offset = operand.strip("[] ").partition("+")
        return self._value(each, base.strip(), own) + (int(offset, 0) if offset.strip() else 0)

    def _handle(self, each: Instruction, operand: str, own: Registers, lane: int = 0) -> Any:
        letter, bits = each.kind
        signs = {"f": f"fp{bits}", "s": f"int{bits}"}
        element = getattr(tl, signs.get(letter, f"uint{bits}"))
        at = self._address(each, operand, own) + lane * (bits // 8)
        return interpreter.TensorHandle(np.array([at], np.uint64), tl.pointer_type(element))

    def _given(self, each: Instruction, operand: str, own: Registers) -> Any:
        letter, bits = each.kind
        number = self._value(each, operand, own) & (1 << bits) - 1
        kept = np.array([number], f"u{bits // 8}")
        signs = {"f": f"fp{bits}", "s": f"int{bits}"}
        return interpreter.TensorHandle(
            kept.view(f"{'f' if letter == 'f' else 'i' if letter == 's' else 'u'}{bits // 8}"),
            getattr(tl, signs.get(letter, f"uint{bits}")),
        )

    def _told(self, each: Instruction) -> tuple[str, str]:
        return ORDERS[each.order or "relaxed"], SCOPES[each.scope]

    def load(self, each: Instruction, own: Registers) -> None:
        """Do an ld."""
        names = each.operands[0].strip("{} ").replace(" ", "").split(",")
        for lane, name in enumerate(names):
            at = self._handle(each, each.operands[1], own, lane)
            if each.order:
                found = memory.atomic_load(self._block, at, None, *self._told(each))
            else:
                found = memory.masked_load(self._block, at, _ALL, None)
            own[name] = _number(found.data[0])

    def store(self, each: Instruction, own: Registers) -> None:
        """Do an st."""
        names = each.operands[1].strip("{} ").replace(" ", "").split(",")
        for lane, name in enumerate(names):
            at, value = self._handle(each, each.operands[0], own, lane), self._given(each, name, own)
            if each.order:
                memory.atomic_store(self._block, at, value, None, *self._told(each))
            else:
                memory.masked_store(self._block, at, value, _ALL)

    def update(self, each: Instruction, own: Registers) -> None:
        """Do an atom or a red."""
        operands = each.operands if each.words[0] == "atom" else ("_", *each.operands)
        at, value = self._handle(each, operands[1], own), self._given(each, operands[2], own)
        if "cas" in each.words:
            new = self._given(each, operands[3], own)
            found = memory.atomic_cas(self._block, at, value, new, *self._told(each))
        else:
            how = next((_HOW[word] for word in each.words if word in _HOW), "")
            if not how:
                raise _unknown(each)
            used = each.words[0] == "atom" and operands[0] != "_"
            found = memory.atomic_rmw(self._block, how, at, value, None, *self._told(each), used=used)
        own[operands[0]] = _number(found.data[0])

    def compare(self, each: Instruction, own: Registers) -> None:
        """Do a setp."""
        compare = next((word for word in each.words if word in _COMPARES), "")
        letter, bits = each.kind
        if not compare or letter == "f":
            raise _unknown(each)
        one, other = (_signed(self._value(each, operand, own), letter, bits) for operand in each.operands[1:3])
        if (trial := present_trial()) is not None:
            trial.compared(np.array(one), np.array(other))
        own[each.operands[0]] = int(_COMPARES[compare](one, other))

    def fence(self, each: Instruction, _own: Registers) -> None:
        """Do a fence or membar."""
        if "proxy" in each.words or "mbarrier_init" in each.words:
            raise _unknown(each)
        order = next((word for word in each.words if word in ("acq_rel", "acquire", "release")), "sc")
        scope = next(word for word in each.words if word in SCOPES)
        if present_trial() is None:
            self._block.fence(order, SCOPES[scope].lower().replace("system", "sys"))


def _signed(value: int, letter: str, bits: int) -> int:
    number = value & (1 << bits) - 1
    return number - (1 << bits) if letter == "s" and number >> bits - 1 else number


_METHODS: dict[str, Callable[[_Thread, Instruction, Registers], None]] = {
    "ld": _Thread.load, "st": _Thread.store, "atom": _Thread.update, "red": _Thread.update,
    "membar": _Thread.fence, "fence": _Thread.fence, "bar": _Thread.barrier, "barrier": _Thread.barrier,
    "setp": _Thread.compare, "selp": _Thread.selp,
}  # fmt: skip


def _unknown(each: Instruction) -> RefusedError:
    return refused(f"inline assembly that is not known here: {each.text!r}")


class _All:
    """A mask of one element, which counts."""

    data = np.ones(1, bool)


_ALL = _All()
