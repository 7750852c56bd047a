"""Arguments that were bound, one by one: also those that ``*windows`` and ``**options`` take together."""

from __future__ import annotations

from collections import OrderedDict
from inspect import BoundArguments, Parameter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from inspect import Signature


def declared(name: str) -> str:
    """Return the parameter that takes an argument: `windows` for `windows[0]`."""
    return name.partition("[")[0]


def one_by_one(bound: BoundArguments) -> dict[str, Any]:
    """Return the arguments by name: `x`; `windows[0]` of ``*windows``; `options[scale]` of ``**options``."""
    parameters = bound.signature.parameters
    return {
        name: value
        for parameter, taken in bound.arguments.items()
        for name, value in _each(parameters[parameter], taken)
    }


def bound_again(signature: Signature, values: dict[str, Any]) -> BoundArguments:
    """Return what `one_by_one` took apart."""
    arguments: OrderedDict[str, Any] = OrderedDict()
    for name, parameter in signature.parameters.items():
        several = {key[len(name) + 1 : -1]: value for key, value in values.items() if key.startswith(f"{name}[")}
        if parameter.kind is Parameter.VAR_POSITIONAL:
            arguments[name] = tuple(several.values())
        else:
            arguments[name] = several if parameter.kind is Parameter.VAR_KEYWORD else values[name]
    return BoundArguments(signature, arguments)


def _each(parameter: Parameter, taken: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - an argument, or several
    name = parameter.name
    if parameter.kind is Parameter.VAR_POSITIONAL:
        yield from ((f"{name}[{number}]", value) for number, value in enumerate(taken))
    elif parameter.kind is Parameter.VAR_KEYWORD:
        yield from ((f"{name}[{key}]", value) for key, value in taken.items())
    else:
        yield name, taken
