"""The text of inline PTX, taken apart into instructions and labels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from asyncsim.frontends.triton.space import refused

ORDERS = {"relaxed": "RELAXED", "acquire": "ACQUIRE", "release": "RELEASE", "acq_rel": "ACQUIRE_RELEASE"}
SCOPES = {"cta": "CTA", "gpu": "GPU", "gl": "GPU", "sys": "SYSTEM"}
_TYPE = re.compile(r"([bsuf])(8|16|32|64)")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    Args:
        words: its name and modifiers.
        operands: as they are written; a vector is several, in braces.
        guard: the predicate under which it is done; empty: always.
        unless: whether the guard is negated.
        text: the whole.

    """

    words: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str
    unless: bool
    text: str

    @property
    def kind(self) -> tuple[str, int]:
        """The letter and the bits of its type, the last one that it names."""
        found = [_TYPE.fullmatch(word) for word in self.words]
        named = [(match[1], int(match[2])) for match in found if match]
        return named[-1] if named else ("b", 32)

    @property
    def order(self) -> str:
        """Its memory order; weak accesses have none."""
        if "volatile" in self.words or "mmio" in self.words:
            return "relaxed"
        return next((word for word in self.words if word in ORDERS), "")

    @property
    def scope(self) -> str:
        """Its scope, gpu for an atomic that names none; volatile is of the system."""
        wide = "sys" if "volatile" in self.words or "mmio" in self.words else "gpu"
        return next((word for word in self.words if word in SCOPES), wide)


@lru_cache(maxsize=256)
def parse(text: str) -> tuple[tuple[Instruction, ...], dict[str, int]]:
    """Return the instructions of a text, and where its labels stand.

    Args:
        text: of one inline assembly.

    Raises:
        RefusedError: something in it is not an instruction.

    """
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text.replace("${:uid}", ""), flags=re.DOTALL)
    made: list[Instruction] = []
    labels: dict[str, int] = {}
    for piece in plain.split(";"):
        rest = piece.lstrip("{} \t\n")  # a scope; a vector does not begin a statement
        while match := re.match(r"([$%\w]+)\s*:", rest):
            labels[match[1]] = len(made)
            rest = rest[match.end() :].lstrip("{} \t\n")
        rest = rest.strip()
        if not rest or rest.startswith(".reg"):
            continue
        match = re.fullmatch(r"(?:@(!?)\s*([%\w]+)\s+)?([a-z][\w.:]*)\s*(.*)", rest, re.DOTALL)
        if match is None:
            raise refused(f"inline assembly that is not known here: {rest!r}")
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", match[4])
        made.append(Instruction(
            tuple(match[3].replace("::", ".").split(".")), tuple(operands), match[2] or "", bool(match[1]), rest,
        ))  # fmt: skip
    return tuple(made), labels
