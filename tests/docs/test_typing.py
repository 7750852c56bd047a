"""The public types are those that an ordinary user writes: mypy --strict agrees, and finds a forgotten await."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "python.md"
TYPED = next(
    block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL) if "Array" in block
)
MORE = """
from pathlib import Path
from asyncsim import (
    Case, Cell, Condition, Fifo, Group, Region, Report, Set, Side, Stream, WAR, all_reduce, barrier, check, explore,
    settle, simulate,
)

pair = Group("pair", (0, 1))
halves = Group("half", lambda P: range(P // 2))
data = Window("data", ("P", 4), np.float32, dirty="random", initialised=True)
credits = Signal("credits", ("P", 1), "int8", start=3, wrap=True, group=pair)

def tuples(P: int, call: int, rng: np.random.Generator) -> list[tuple[Array, int]]:
    return [(rng.standard_normal(4, np.float32), number) for number in range(P)]

def sums(xs: list[tuple[Array, int]]) -> list[Array]:
    return [np.sum([x for x, _ in xs], axis=0)] * len(xs)

async def child(rank: Rank, data: WindowView, n: int) -> float:
    await rank.store(data[n], 1.0)
    await rank.quiet()
    return 1.0

async def helper(rank: Rank, where: Region, cell: Cell, condition: Condition) -> None:
    await rank.store(where, np.ones(4))
    await rank.notify(cell, 1, op=Set)
    await rank.wait(condition, consume=True)

@kernel(memory=[data, credits], inputs=tuples, golden=sums, finds=WAR("next call", pairs=lambda P: P))
async def all_of_it(
    rank: Rank, x: tuple[Array, int], data: WindowView, credits: SignalView, *, flag: bool = True
) -> tuple[Array, float]:
    tile, number = x
    with rank.phase("stage"):
        await rank.store(data[rank.id, 0:2], tile[:2])
        await rank.store(data.at(number)[rank.id], tile, atomic="add")
    local = rank.within(pair)
    await barrier(local, credits, generation=2)
    await settle(local, credits, credits=2)
    stream: Stream[float] = await rank.start(child, data, 2)
    got = await rank.join(stream)
    await rank.poll(data[0], lambda tile: bool((tile == 1.0).all()))
    await rank.put(data.at(0)[:], tile, nbi=True)
    await rank.notify_all([credits.at(peer)[rank.id] for peer in rank.peers], order="relaxed")
    await rank.wait_all([credits[peer] >= 1 for peer in rank.peers])
    if flag and await rank.test(credits[0, 0] != 3):
        await all_reduce(rank, data, credits)
    await helper(rank, data[0], credits[0], credits[0] == 1)
    acc: Array = np.zeros(4, np.float32)
    for peer in rank.peers:
        acc += await rank.load(data.at(peer)[rank.id])
    return acc, got

async def main() -> Report:
    return await check.aio(all_of_it.variant(flag=False, finds=[WAR()]), ranks=3, memory="ldst", save=Path("x"))

report = check(shift, ranks=3)
for finding in report.findings:
    side: Side = finding.sides[0]
    print(finding.title, side.at, explore(shift, runs=3).verdict, simulate(Case(shift, 2), Fifo()).ending)
"""
MISTAKES = {
    "rank.store(box[:], x)": "unused-coroutine",
    "await rank.store(box, x)": "arg-type",
    "await rank.wait(True)": "arg-type",
    "await rank.notify(box[0], 1)": "arg-type",
}


def mypy(tmp_path, source):
    """Return what mypy --strict says of a file, and its status."""
    file = tmp_path / "mine.py"
    file.write_text(source, encoding="utf-8")
    said, errors, status = api.run(
        ["--strict", "--config-file", "", "--cache-dir", str(ROOT / ".mypy_cache" / "users"), str(file)]
    )
    return said + errors, status


def test_a_kernel_with_types_as_a_user_writes_them_passes(tmp_path):
    assert mypy(tmp_path, TYPED + MORE) == ("Success: no issues found in 1 source file\n", 0)


def test_the_kernel_of_the_readme_is_the_one_with_types():
    readme = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    body = re.compile(r"    left, right = .*    return got\n", re.DOTALL)
    assert readme is not None
    assert body.search(readme[1])[0] == body.search(TYPED)[0]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found_before_anything_runs(tmp_path, mistake):
    source = TYPED.replace("    return got", f"    {mistake}\n    return got")
    said, status = mypy(tmp_path, source)
    assert (status, said.count(" error: ")) == (1, 1), said
    assert f"[{MISTAKES[mistake]}]" in said
