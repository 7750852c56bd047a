"""Data in a trace: every bit comes back, and nothing that its window cannot hold."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pytest
from everything import read, written
from hypothesis import given
from hypothesis import strategies as st

from asyncsim import Window
from asyncsim.trace.event import Digest, Footer, Header, Trace
from asyncsim.trace.values import DTYPES, decode_data, dtype_name, dtype_named, encode_data
from asyncsim.trace.world import World


@given(st.sampled_from(DTYPES), st.binary(min_size=0, max_size=64))
def test_every_bit_pattern_of_every_dtype_comes_back(name, raw):
    dtype = dtype_named(name)
    data = raw[: len(raw) // dtype.itemsize * dtype.itemsize]
    elements = len(data) // dtype.itemsize
    value = encode_data(data, dtype)
    if elements <= 16:
        assert decode_data(json.loads(json.dumps(value, allow_nan=False)), dtype, elements) == data
    else:
        assert decode_data(value, dtype, elements) == Digest(value["sha256"], elements)


def test_a_dtype_has_one_name():
    assert [dtype_name(dtype_named(name)) for name in DTYPES] == list(DTYPES)


def test_a_nan_keeps_its_bits():
    signalling = struct.pack("=I", 0xFF800001)
    assert encode_data(signalling, np.dtype(np.float32)) == ["nan:ff800001"]


@pytest.mark.parametrize(
    ("value", "dtype", "reason"),
    [
        ({"sha256": "0123456789abcdef", "elements": 1}, "int8", "at least 17"),
        ({"sha256": "0123456789abcdeg", "elements": 17}, "int8", "16 hex digits"),
        ({"sha256": "0123456789abcdef", "elements": 17}, "int8", "digest of 17 elements; its region has 1"),
        ("x", "int8", "must be a list"),
        ([1, 2], "int8", "has 2 elements; its region has 1"),
        ([128], "int8", "128 is no int8"),
        ([True], "int8", "True is no int8"),
        ([1.0], "int8", "1.0 is no int8"),
        ([1], "bool", "1 is no bool"),
        (["x"], "float32", "'x' is no float32"),
        ([True], "float32", "True is no float32"),
        ([1e39], "float32", "too large for float32"),
        (["nan:7fc0"], "float32", "not the bits of a float32"),
        (["nan:7FC00000"], "float32", "not the bits of a float32"),
        (["nan:00000000"], "float32", "no NaN of float32"),
        (["nan:00"], "int8", "no NaN of int8"),
        ([1.0], "complex64", "no pair"),
        ([[1.0, "i"]], "complex64", "'i' is no float32"),
    ],
)
def test_a_value_that_its_window_cannot_hold_is_refused(value, dtype, reason):
    with pytest.raises(ValueError, match=r"is|has|are|lists") as caught:
        decode_data(value, dtype_named(dtype), 1)
    assert reason in str(caught.value)


def test_many_elements_must_be_a_digest():
    with pytest.raises(ValueError, match="more than 16 are a digest"):
        decode_data([0] * 17, np.dtype(np.int8), 17)


@pytest.mark.parametrize("dirty", [math.inf, -1.5, np.float32(0.5), math.nan, True, 3, np.int8(7)])
def test_dirty_memory_is_declared_as_it_was(dirty):
    world = World(1, [Window("w", (1,), dirty=dirty)])
    text = written(Trace(Header("k:k", "", world, 1, "sc", 0, "fifo"), [], Footer("complete", [])))
    again = read(text)
    assert again.header.world.windows[0].dirty == pytest.approx(dirty, nan_ok=True, rel=0)
    assert written(again) == text
