"""Torch tensors from arrays and back; imported only where torch is there."""

from __future__ import annotations

import ml_dtypes
import torch


def tensor(array):
    """Return a tensor with memory of its own."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.astype("float32")).to(torch.bfloat16)
    return torch.from_numpy(array.copy())


def array(tensor):
    """Return an array with memory of its own. A boolean that gloo summed may hold 2: it is true."""
    if tensor.dtype == torch.bfloat16:
        return tensor.to(torch.float32).numpy().astype(ml_dtypes.bfloat16)
    return (tensor != 0).numpy() if tensor.dtype == torch.bool else tensor.numpy().copy()
