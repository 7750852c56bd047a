"""Every run of every litmus test, under every memory model; and the table of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from every_run import every_path
from late_brute import explore
from late_runs import MEMORIES, run_once
from litmus import LITMUS, MODELS, Litmus, table

if TYPE_CHECKING:
    from late_brute import Final

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
BEGIN, END = "<!-- litmus -->\n", "\n<!-- /litmus -->"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("litmus", LITMUS, ids=lambda litmus: f"{litmus.name}: {litmus.text}")
def test_what_a_model_allows(litmus: Litmus, model: str) -> None:
    async def every_end() -> set[Final]:
        return {(await run_once(litmus.program, model, path)).final for path in every_path()}

    ends = trio.run(every_end)
    assert ends == set(explore(litmus.program, MEMORIES[model]).finals)
    assert any(map(litmus.shown, ends)) == (model in litmus.allowed)


def test_the_table_is_in_the_page() -> None:
    page = PAGE.read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert page.partition(BEGIN)[2].partition(END)[0] == table(), "write the rendering of litmus.table() into the page"
