"""Tensors of the script, as arrays that share their memory: torch's on the CPU, or numpy's."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from asyncsim.frontends.pypto.refusals import refused


def is_tensor(value: object) -> bool:
    """Say whether this is a tensor or an array."""
    return isinstance(value, np.ndarray) or (hasattr(value, "numpy") and hasattr(value, "dtype"))


def array_of(value: Any, what: str) -> np.ndarray[Any, Any]:  # noqa: ANN401 - torch is not imported here
    """Return an array that shares its memory with a tensor.

    Args:
        value: a numpy array, or a torch tensor on the CPU.
        what: names it in errors.

    Raises:
        RefusedError: it has no memory that could be shared.

    """
    if isinstance(value, np.ndarray):
        return value
    if not is_tensor(value):
        raise refused(f"{what} must be a torch tensor or a numpy array, got {type(value).__name__}", TypeError)
    if str(getattr(value, "device", "cpu")).partition(":")[0] != "cpu":
        raise refused(f"{what} is on {value.device}; asyncsim works on tensors of the CPU")
    tensor = value.detach() if getattr(value, "requires_grad", False) else value
    if str(tensor.dtype) == "torch.bfloat16":  # numpy knows it only as a type of its own
        shared: np.ndarray[Any, Any] = tensor.view(sys.modules["torch"].int16).numpy().view(ml_dtypes.bfloat16)
        return shared
    try:
        array = tensor.numpy()
    except (RuntimeError, TypeError) as error:
        raise refused(f"{what} cannot be shared as an array: {error}") from None
    return array  # type: ignore[no-any-return]
