"""Makes ``docs/pictures/``: the README's kernel as it is reported, and its witness as the page shows it.

    python tests/make_pictures.py

Needs Chromium and the package playwright. The kernel is the README's first block of Python; it is checked on
three ranks, as the README does. The pictures name no path, and load nothing.
"""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from asyncsim.checking.record.locate import locate
from asyncsim.checking.verdict.check import check
from asyncsim.cli.judge import coloured
from asyncsim.trace.jsonl import read_trace
from asyncsim.views.report import report_text
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_page import page_text

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
WIDTH, COLUMNS = 1120, 104
MOST_BYTES = 150_000
PIXELS = """async (png) => {
  const image = await createImageBitmap(await (await fetch("data:image/png;base64," + png)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height), g = canvas.getContext("2d");
  g.drawImage(image, 0, 0);
  const data = g.getImageData(0, 0, image.width, image.height).data, parts = [];
  for (let at = 0; at < data.length; at += 32768) parts.push(String.fromCharCode(...data.subarray(at, at + 32768)));
  return [[image.width, image.height], btoa(parts.join(""))];
}"""
"""Decodes a picture in the browser: its size, and its pixels."""


def main() -> None:
    """Make the pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    if block is None:
        raise SystemExit("the README has no block of Python")
    with TemporaryDirectory() as folder:
        os.chdir(folder)  # so that the kernel is called shift.py:shift, as a reader would call it
        Path("shift.py").write_text(block[1], "utf-8")
        kernel = locate("shift.py:shift")
        report = re.sub(r"as1\.\S+", "as1.…", report_text(check(kernel, ranks=3), width=COLUMNS))
        (PICTURES / "report.svg").write_text(report_picture(report), "utf-8")
        (saved,) = (finding.trace for finding in check(kernel, ranks=3, save="witnesses").findings)
        page = page_text(timeline_of(read_trace(str(saved))))
        for scheme in ("light", "dark"):
            picture_page(page, PICTURES / f"timeline-{scheme}.png", scheme)
    for path in sorted(PICTURES.iterdir()):
        if path.stat().st_size > MOST_BYTES:
            raise SystemExit(f"{path.name} has {path.stat().st_size} bytes; a picture has at most {MOST_BYTES}")
        Console().print(path.name, path.stat().st_size, "bytes")


def report_picture(words: str) -> str:
    """Return a report as a terminal shows it, as SVG that loads no font."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(coloured(words.rstrip("\n"))), soft_wrap=True)
    svg = console.export_svg(title="asyncsim check shift.py:shift -P 3", unique_id="asyncsim-report")
    return re.sub(r"\s*@font-face\s*\{.*?\}", "", svg, flags=re.DOTALL)


def picture_page(page: str, path: Path, scheme: str) -> None:
    """Photograph the page from its head to the end of its tables."""
    Path("page.html").write_text(page, "utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        opened = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme=scheme)
        opened.goto(Path("page.html").resolve().as_uri())
        opened.wait_for_selector("body[data-ready]")
        below = opened.locator("#below").bounding_box()
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": below["y"]}
        png = opened.screenshot(full_page=True, clip=clip)
        path.write_bytes(smaller(browser.new_page(), png))
        browser.close()


def smaller(page: Page, png: bytes) -> bytes:
    """Return a PNG in 256 of its colours, the frequent and the vivid: a third of the size.

    Every other colour is replaced by the nearest of them.
    """
    size, raw = page.evaluate(PIXELS, base64.b64encode(png).decode())
    width, height = size
    pixels = np.frombuffer(base64.b64decode(raw), np.uint8).reshape(-1, 4)[:, :3].astype(np.int64)
    codes, which, counts = np.unique(pixels @ (1 << 16, 1 << 8, 1), return_inverse=True, return_counts=True)
    colours = np.stack([codes >> 16, codes >> 8 & 255, codes & 255], axis=1)
    vivid = 8 + colours.max(axis=1) - colours.min(axis=1)  # thin lines have few pixels, and their colour matters
    palette = colours[np.argsort(-counts * vivid, kind="stable")[:256]]
    nearest = np.array([np.argmin(((palette - colour) ** 2).sum(axis=1)) for colour in colours], np.uint8)
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with the number of its filter: none
    rows[:, 1:] = nearest[which].reshape(height, width)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )


if __name__ == "__main__":
    main()
