"""What a script has changed for itself stays so while its kernels are judged and replayed, and no longer."""

import os
import sys
from pathlib import Path

import pytest
from command import run
from pypto_copy import HOST, LOAD, SCRIPT

IMPORTS = {
    "of the dialect": "from pypto.language import load as lo\n        tile = lo(data, [0, 0], [1, SIZE])",
    "of a module of the dialect": "import pypto.language\n        tile = pypto.language.load(data, [0, 0], [1, SIZE])",
    "of what lies beside": "from lying_beside import tile_of\n        tile = tile_of(data, [1, SIZE])",
    "when judged": f"if me in SEEN:\n            import lying_beside\n        SEEN.append(me)\n        {LOAD}",
    "with arguments": f"assert sys.argv[1:] == ['-d', '0']\n        {LOAD}",
    "with a folder": f"assert os.path.basename(os.getcwd()) == 'elsewhere'\n        {LOAD}",
}
BESIDE = """
import pypto.language as pl

def tile_of(data, shape):
    return pl.load(data, [0, 0], shape)
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return what writes the script, with a body of the kernel, to a folder below the present one."""
    monkeypatch.chdir(tmp_path)
    for name in ("scripts", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "lying_beside.py").write_text(BESIDE)

    def script(body):
        source = SCRIPT.format(body=f"        {body}", host=HOST)
        first = f"import os\nimport sys\nSEEN = []\nos.chdir({str(tmp_path / 'elsewhere')!r})\n"
        (tmp_path / "scripts" / "own.py").write_text(first + source)
        return os.path.join("scripts", "own.py")  # noqa: PTH118 - as a user gives it

    return script


@pytest.mark.parametrize("body", IMPORTS.values(), ids=IMPORTS)
def test_a_kernel_finds_what_the_script_finds(body, write):
    before = list(sys.path), sys.argv, sys.modules["__main__"], os.getcwd()  # noqa: PTH109 - a text
    result = run("pypto", write(body), "-d", "0")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("OK\n\nPROVED")
    assert (list(sys.path), sys.argv, sys.modules["__main__"], os.getcwd()) == before  # noqa: PTH109 - as above
    assert not {"pypto", "lying_beside"} & set(sys.modules)


def test_files_are_written_where_the_user_stands_and_replays_find_what_the_script_finds(write):
    body = "from lying_beside import tile_of\n        tile = pld.tile.remote_load(data, 1 - me, [0, 0], [1, SIZE])"
    result = run("pypto", "--save", "witnesses", "--json", "report.json", write(body), "-d", "0")
    assert result.exit_code == 1, result.output
    assert "REFUTED" in result.output
    traces = list(Path("witnesses").iterdir())
    assert traces
    assert Path("report.json").is_file()
    again = run("pypto", "--replay", str(traces[0]), "scripts/own.py", "-d", "0")
    assert again.exit_code == 1, again.output
    assert "replayed" in again.output


def test_a_replay_of_another_mode_asks_for_the_arguments(write):
    body = "tile = pld.tile.remote_load(data, 1 - me, [0, 0], [1, SIZE])"
    assert run("pypto", "--save", "witnesses", write(body)).exit_code == 1
    trace = str(next(Path("witnesses").iterdir()))
    for other in (f"{body}\n        pld.tensor.barrier(signal)", "tile = pl.load(x, [0, 0], [1, SIZE])"):
        result = run("pypto", "--replay", trace, write(other))
        assert result.exit_code == 2, result.output
        assert "is the script given the arguments of the recorded run?" in result.stderr
        assert "{" not in result.stderr
