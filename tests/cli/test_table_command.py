"""``asyncsim table``: what it prints, where it writes, and that bad input exits with 2."""

import numpy as np
import pytest
from command import run

REFERENCE = """\
reduce_scatter: 3 ranks, 2 elements a rank, sum, int64

Inputs

rank  for rank 0  for rank 1  for rank 2
----  ----------  ----------  ----------
0     [1, 2]      [3, 4]      [5, 6]
1     [10, 20]    [30, 40]    [50, 60]
2     [100, 200]  [300, 400]  [500, 600]

Contributions, rank 0's first

rank  element  contributions
----  -------  ------------------
0     [0]      1 + 10 + 100 = 111
0     [1]      2 + 20 + 200 = 222
1     [0]      3 + 30 + 300 = 333
1     [1]      4 + 40 + 400 = 444
2     [0]      5 + 50 + 500 = 555
2     [1]      6 + 60 + 600 = 666

Results

rank  gets
----  ----------
0     [111, 222]
1     [333, 444]
2     [555, 666]
"""
LAST = "\nRun on the simulated machine; numpy gives the same, bit for bit.\n"


def test_the_reference_example():
    result = run("table", "reduce_scatter", "--ranks", "3")
    assert (result.exit_code, result.output) == (0, REFERENCE + LAST)


def test_a_set_number_marks_what_it_changes_and_nothing_else():
    result = run("table", "reduce_scatter", "--ranks", "3", "--set", "2,5=601")
    marked = (
        REFERENCE.replace("[500, 600]", "[500, 601*]")
        .replace("----------\n0     [1, 2] ", "-----------\n0     [1, 2] ")
        .replace("------------------\n", "--------------------\n")
        .replace("6 + 60 + 600 = 666", "6 + 60 + 601* = 667*")
        .replace("----  ----------\n0     [111", "----  -----------\n0     [111")
        .replace("[555, 666]", "[555, 667*]")
    )
    said = (
        "\nSet: element [5] of rank 2's input is 601*, and was 600.\n"
        "Changed: rank 2's element [1] is 667*, and was 666.\nNothing else changes.\n"
    )
    assert result.output == marked + said + LAST


def test_then_all_gather_gives_the_full_sum_to_all():
    output = run("table", "reduce_scatter", "--then", "all_gather").output
    full = "[111, 222, 333, 444, 555, 666]"
    assert output == (
        f"{REFERENCE}\nThen all_gather\n\nrank  gets\n----  {'-' * len(full)}\n"
        + "".join(f"{rank}     {full}\n" for rank in range(3))
        + "\nEvery rank has the full sum. Nothing was reduced a second time: these are the results above.\n"
        + "An all_reduce of the same inputs gives the same, bit for bit.\n"
        + LAST
    )


def test_a_set_number_after_a_gather_is_everywhere():
    output = run("table", "reduce_scatter", "--then", "all_gather", "--set", "2,5=601", "--set", "0,0=2").output
    assert output.count("[112*, 222, 333, 444, 555, 667*]") == 3
    assert "Changed: elements [0], [5] on every rank; nothing else changes." in output


def test_a_file_of_the_users_and_a_page(tmp_path):
    file, page = tmp_path / "a&b.csv", tmp_path / "table.html"
    file.write_text("0.1,0.2\n0.3,0.4\n")
    result = run("table", "all_reduce", "--input", str(file), "--format", "html", "--out", str(page))
    assert (result.exit_code, result.output) == (0, "")
    text = page.read_text("utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "Inputs, from a&amp;b.csv" in text


def test_markdown():
    output = run("table", "reduce_scatter", "--set", "2,5=601", "--format", "markdown").output
    assert output.startswith("# reduce\\_scatter: 3 ranks")
    assert "| 2 | \\[555, **667**\\] |" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gossip"], "'gossip' is not one of"),
        (["reduce_scatter", "--op", "xor"], "'xor' is not one of"),
        (["reduce_scatter", "--ranks", "0"], "0 is not in the range"),
        (["reduce_scatter", "--size", "-1"], "-1 is not in the range"),
        (["reduce_scatter", "--set", "9,9=9"], "there are the ranks 0 to 2"),
        (["broadcast", "--then", "all_gather"], "after a reduce_scatter"),
        (["reduce_scatter", "--input", "nowhere.csv"], "does not exist"),
    ],
)
def test_bad_input_exits_with_2(arguments, message):
    result = run("table", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_that_promises_more_than_it_holds_exits_with_2(tmp_path):
    file = tmp_path / "x.npy"
    with file.open("wb") as out:
        np.lib.format.write_array_header_1_0(
            out, {"shape": (10**9, 10**9), "fortran_order": False, "descr": "<f8"}
        )  # fmt: skip
    result = run("table", "reduce_scatter", "--input", str(file))
    assert (result.exit_code, f"{file}: no array can be read from it: " in result.stderr) == (2, True)


def test_a_ragged_file_exits_with_2_and_its_line(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("1,2,3\n4,5\n")
    result = run("table", "reduce_scatter", "--input", str(file))
    assert (result.exit_code, result.stderr) == (
        2, f"asyncsim: {file}, line 2: 2 numbers; the first line has 3\n",
    )  # fmt: skip


def test_an_array_of_the_users(tmp_path):
    np.save(tmp_path / "x.npy", np.full((4, 8), 2.5, np.float32))
    result = run("table", "reduce_scatter", "--input", str(tmp_path / "x.npy"), "--op", "min")
    assert "reduce_scatter: 4 ranks, 2 elements a rank, minimum, float32" in result.output
    assert "rounding" not in result.output
