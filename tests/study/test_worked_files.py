"""The files that worked examples take their numbers from, and the files that are refused."""

from io import BytesIO

import ml_dtypes
import numpy as np
import pytest

from asyncsim import MisuseError
from asyncsim.study.worked_inputs import Asked, read_table, worked_example


def example(collective="reduce_scatter", **asked):
    return worked_example(Asked(collective=collective, **asked))


def lists(arrays):
    return [array.tolist() for array in arrays]


@pytest.fixture
def file(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        if isinstance(content, np.ndarray):
            np.save(path, content)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_csv_has_a_line_a_rank(file):
    worked = example(file=file("x.csv", "1, 2\n\n10, 20\n"))
    assert (worked.ranks, worked.size, worked.dtype.name, lists(worked.outputs)) == (2, 1, "int64", [[11], [22]])
    worked = example("all_gather", file=file("y.csv", "1,2.5\n3,nan\n"), ranks=2, size=2)
    assert worked.dtype.name == "float64"
    assert worked.agrees
    assert example(file=file("x.csv", "1,2\n3,4\n"), op="avg").outputs[0].tolist() == [2.0]
    assert example(file=file("x.csv", "1,2\n3,4\n"), dtype="bfloat16").dtype == ml_dtypes.bfloat16


def header(shape):
    """Return a .npy file that says of itself that it holds float64 of that shape, and ends there."""
    written = BytesIO()
    np.lib.format.write_array_header_1_0(written, {"shape": shape, "fortran_order": False, "descr": "<f8"})
    return written.getvalue()


def test_an_array_that_memory_does_not_hold_is_refused(file, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    path = file("x.npy", np.zeros((2, 2)))
    mapped = np.load(path)
    monkeypatch.setattr(np, "load", lambda *_, **__: mapped)
    monkeypatch.setattr(np, "array", fail)
    with pytest.raises(MisuseError, match=r"has shape \(2, 2\), which does not fit into memory"):
        read_table(path)


def test_an_npy_in_columns_is_read_by_rows(file):
    array = np.asfortranarray(np.arange(8.0).reshape(2, 2, 2))
    assert read_table(file("x.npy", array)).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_the_mark_that_spreadsheets_put_before_a_text_is_no_number(file):
    assert read_table(file("x.csv", b"\xef\xbb\xbf1,2\n3,4\n")).tolist() == [[1, 2], [3, 4]]


def test_an_npy_keeps_its_dtype_and_folds_its_last_dimensions(file):
    array = np.arange(12, dtype=">f4").reshape(2, 2, 3)
    worked = example(file=file("x.npy", array))
    assert (worked.ranks, worked.size, worked.dtype) == (2, 3, np.float32)
    assert lists(worked.outputs) == [[6.0, 8.0, 10.0], [12.0, 14.0, 16.0]]
    assert example(file=file("x.npy", np.zeros((3, 0), np.int8))).size == 0


@pytest.mark.parametrize(
    ("name", "content", "asked", "message"),
    [
        ("x.csv", "1,2\n3\n", {}, "x.csv, line 2: 1 numbers; the first line has 2"),
        ("x.csv", "1,2\n3,four\n", {}, "x.csv, line 2: 'four' is no number"),
        ("x.csv", "1,\n", {}, "line 1: '' is no number"),
        ("x.csv", "\n", {}, "x.csv has no numbers"),
        ("x.csv", b"\xff\xfe1", {}, "not text in UTF-8"),
        ("x.csv", f"{10**30}\n", {}, "not all numbers fit int64"),
        ("x.csv", "1,2,3\n4,5,6\n", {}, "3 numbers a rank, which cannot be cut into 2 equal chunks"),
        ("x.csv", "1,2\n3,4\n", {"ranks": 3}, "2 rows, one a rank; --ranks says 3"),
        ("x.csv", "1,2\n3,4\n", {"size": 2}, "2 numbers a rank; --size 2 needs 4"),
        ("x.csv", "1.5,2\n3,4\n", {"dtype": "int32"}, "not all numbers are whole and fit int32"),
        ("x.txt", "1,2\n", {}, "give a .npy or a .csv file"),
        ("x.npy", "no array", {}, "no array can be read from it"),
        ("x.npy", b"", {}, "no array can be read from it"),
        ("x.npy", header((10**9, 10**9)), {}, "no array can be read from it"),
        ("x.npy", header((10**12, 10**12)), {}, "no array can be read from it"),
        ("x.npy", header((2**32, 2**32)) + bytes(8), {}, "no array can be read from it"),
        ("x.npy", header((2, 2**63 - 3)), {}, "no array can be read from it"),
        ("x.npy", header((-2, -2)) + bytes(32), {}, "no array can be read from it"),
        ("x.npy", header((2, 2)) + bytes(31), {}, "no array can be read from it"),
        ("x.npy", np.zeros((2, 2), complex), {}, "holds complex128; give integers or floats"),
        ("x.npy", np.zeros(4), {}, "has shape (4,); the first dimension is the ranks"),
        ("x.npy", np.zeros((0, 4)), {}, "has shape (0, 4)"),
        ("x.npy", np.array([{}, {}]), {}, "no array can be read from it"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(file, name, content, asked, message):
    with pytest.raises(MisuseError) as caught:
        example(file=file(name, content), **asked)
    assert message in str(caught.value)


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(2))
    path = (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    with pytest.raises(MisuseError, match="holds no array"):
        read_table(path)
