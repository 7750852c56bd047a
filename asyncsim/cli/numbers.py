"""Numbers as options take them: written in ASCII digits, and bounded: a slip of the finger has an end."""

from __future__ import annotations

import re
from typing import Any

import click

_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def whole(text: str) -> int | None:
    """Return the integer that a text writes in ASCII digits; None if it is none, or a very long one."""
    text = text.strip()
    return int(text) if _WHOLE.fullmatch(text) else None


def whole_list(text: str | None) -> tuple[int, ...]:
    """Return the integers of a list such as ``2,3,4``; empty if one of its parts is none."""
    numbers = [whole(part) for part in (text or "").split(",")]
    return tuple(number for number in numbers if number is not None) if None not in numbers else ()


class Whole(click.IntRange):
    """An integer within bounds, in ASCII digits: what is written out is read again by others."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the number, or refuse the text.

        Args:
            value: what was typed, or a default that is a number already.
            param: named in the message.
            ctx: named in the message.

        Raises:
            click.BadParameter: it is no integer in the digits 0 to 9, or out of range.

        """
        if isinstance(value, str) and whole(value) is None:
            self.fail(f"{value!r} is no integer that can be used; write it in the digits 0 to 9", param, ctx)
        return super().convert(value, param, ctx)


class Amount(click.FloatRange):
    """A number within bounds, in ASCII digits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401 - click's
        """Return the number, or refuse the text.

        Args:
            value: what was typed, or a default that is a number already.
            param: named in the message.
            ctx: named in the message.

        Raises:
            click.BadParameter: it is no number in ASCII, or out of range.

        """
        if isinstance(value, str) and not value.isascii():
            self.fail(f"{value!r} is no number; write it in the digits 0 to 9", param, ctx)
        return super().convert(value, param, ctx)
