"""Each pattern of the cookbook is proved, and the mistake beside it is found as its table says."""

import re

import pytest
from pages import DOCS, blocks_of

from asyncsim import check
from asyncsim.checking.record.locate import locate

PAGE = DOCS / "how-to" / "cookbook.md"
ROWS = re.findall(r"^\| \d+\. [^|]*\| `(\w+)` \| `(\w+)` \| ([^|]*?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
KINDS = {"WAR": "race", "RAW": "race", "a Set": "signal-race", "ranks": "ranks-differ"}


@pytest.fixture(scope="module")
def cookbook(tmp_path_factory):
    (source,) = (block for block in blocks_of(PAGE) if block.title == "cookbook.py")
    file = tmp_path_factory.mktemp("cookbook") / "cookbook.py"
    file.write_text(source.text, "utf-8")
    return lambda name: locate(f"{file}:{name}")


def test_there_are_ten():
    assert len(ROWS) == 10


@pytest.mark.parametrize("right", [right for right, _, _ in ROWS])
def test_a_pattern_is_proved(cookbook, right):
    assert [check(cookbook(right), ranks=ranks).verdict for ranks in (2, 3, 4)] == ["PROVED"] * 3


@pytest.mark.parametrize(("mistake", "found"), [row[1:] for row in ROWS])
def test_a_mistake_is_found_as_its_row_says(cookbook, mistake, found):
    report = check(cookbook(mistake), ranks=3)
    kind = next(kind for word, kind in KINDS.items() if found.startswith(word))
    (first, *_) = (finding for finding in report.findings if finding.harmful)
    assert first.kind == kind
    if kind == "race":
        assert first.title.startswith(found[:3])
        assert ("next call" in first.title) == ("next call" in found or found == "WAR")
