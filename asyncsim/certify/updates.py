"""The updates and comparisons that the checker knows, by the names that a certificate has for them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

COMPARE: dict[str, Callable[[int, int], bool]] = {
    "Eq": operator.eq, "Ne": operator.ne, "Gt": operator.gt, "Ge": operator.ge, "Lt": operator.lt, "Le": operator.le,
}  # fmt: skip
ADDS, SET, XOR = "AtomicAdd", "Set", "Xor"
UPDATES: dict[str, Callable[[int, int], int]] = {
    ADDS: operator.add, SET: lambda _, value: value, "Or": operator.or_, "And": operator.and_, XOR: operator.xor,
    "Max": max, "Min": min,
}  # fmt: skip
