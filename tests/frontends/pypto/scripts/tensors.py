"""torch; or, where it is not installed or ``TENSORS=numpy`` is set, the few functions of it that these scripts use."""

import importlib.util
import os
from types import SimpleNamespace

import numpy as np


def _zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def _full(shape, value, *, dtype=np.float32):
    return np.full(shape, value, dtype)


def _arange(start, end, *, dtype=np.float32):
    return np.arange(start, end, dtype=dtype)


if os.environ.get("TENSORS") != "numpy" and importlib.util.find_spec("torch"):
    import torch
else:
    torch = SimpleNamespace(
        float32=np.float32,
        int32=np.int32,
        zeros=_zeros,
        full=_full,
        arange=_arange,
        stack=np.stack,
        roll=np.roll,
        amax=np.amax,
        allclose=np.allclose,
        equal=np.array_equal,
    )
