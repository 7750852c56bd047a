"""What is installed: asyncsim with its exhibits inside, beside any other package of the name `kernels`."""

import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from kernels.reduce_scatter import builtin

pytest.importorskip("hatchling.build", reason="builds the wheel")

ROOT = Path(__file__).resolve().parents[2]
OTHER = {
    "kernels/__init__.py": "NAME = 'the other one'\n",
    "kernels-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kernels\nVersion: 1.0\n",
    "kernels-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "kernels-1.0.dist-info/RECORD": "",
}
BOTH = """
import kernels
from asyncsim.checking.record.locate import locate
from asyncsim.cli.main import main
assert kernels.NAME == "the other one"
print(locate("reduce_scatter:builtin").source)
main(["check", "reduce_scatter:builtin", "kernels.reduce_scatter:no_post_barrier", "-P", "2"])
"""


def built(kind: str, folder: Path, source: Path = ROOT) -> Path:
    made = subprocess.run(  # noqa: S603 - this Python
        [sys.executable, "-c", f"import hatchling.build as b, sys; print(b.build_{kind}(sys.argv[1]))", str(folder)],
        cwd=source, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return folder / made.stdout.split()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    path = tmp_path_factory.mktemp("other") / "kernels-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        for name, text in OTHER.items():
            made.writestr(name, text)
    return path


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as held:
        return set(held.namelist())


def judged(python: Path, folder: Path, *places: str) -> str:
    """Judge a right and a broken exhibit, outside the repository and with nothing of it on the path."""
    ran = subprocess.run(  # noqa: S603 - a Python of the test's
        [str(python), "-c", BOTH], cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={"PYTHONPATH": ":".join(places), "PATH": "", "COLUMNS": "120"},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (1, "")
    return ran.stdout


def assert_as_in_the_repository(said: str) -> None:
    assert said.splitlines()[0] == builtin.source  # a trace replays in either
    assert "PROVED  kernels.reduce_scatter:builtin" in said
    assert "REFUTED  kernels.reduce_scatter:no_post_barrier" in said
    assert "           kernels/reduce_scatter.py:" in said
    assert "site-packages" not in said


def test_nothing_but_asyncsim_and_its_plugin_is_installed_at_the_top(wheel):
    assert {name.partition("/")[0].partition("-")[0] for name in names(wheel)} == {"asyncsim", "pytest_asyncsim"}
    exhibits = {str(Path("asyncsim") / file.relative_to(ROOT)) for file in (ROOT / "kernels").rglob("*.py")}
    assert exhibits <= names(wheel)


def test_an_exhibit_is_judged_and_told_as_in_the_repository(wheel, other, tmp_path):
    for archive in (wheel, other):
        zipfile.ZipFile(archive).extractall(tmp_path)  # noqa: S202 - made here
    libraries = sysconfig.get_paths()["purelib"]  # its .pth files are not followed there
    assert_as_in_the_repository(judged(Path(sys.executable), tmp_path, str(tmp_path), libraries))


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('--thorough')", reason="installs: run with --thorough")
@pytest.mark.parametrize("first", ["asyncsim", "other"])
def test_it_is_installed_beside_another_package_of_the_name_kernels(wheel, other, first, tmp_path):
    venv.create(tmp_path / "clean", with_pip=False)
    python = tmp_path / "clean" / "bin" / "python"
    for archive in (wheel, other) if first == "asyncsim" else (other, wheel):
        options = ["-q", "--python", str(python), "install", "--no-index", "--no-deps"]
        subprocess.run([sys.executable, "-m", "pip", *options, str(archive)], check=True, timeout=120)  # noqa: S603 - this Python
    assert_as_in_the_repository(judged(python, tmp_path, sysconfig.get_paths()["purelib"]))


@pytest.mark.slow
@pytest.mark.skipif("not config.getoption('--thorough')", reason="installs: run with --thorough")
def test_the_source_archive_makes_the_same_wheel(wheel, tmp_path):
    archive = built("sdist", tmp_path)
    with tarfile.open(archive) as held:
        held.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    again = built("wheel", tmp_path, unpacked)
    assert names(again) == names(wheel)
