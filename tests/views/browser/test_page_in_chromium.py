"""The page of ``asyncsim show --html`` in a real browser: it opens, steps, marks, finds, and is quick."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from shown import HANG, LATE, RACE, SCRIPT, STREAMS, hostile, large, small_trace

from asyncsim.trace.jsonl import read_trace
from asyncsim.views.timeline import timeline_of
from asyncsim.views.timeline_page import page_text

pytestmark = pytest.mark.browser

EMPTY = """<!doctype html><title>empty</title><body><script>
requestAnimationFrame(() => requestAnimationFrame(() => {
  document.body.dataset.ready = Math.round(performance.now());
}));
</script>"""
KEYS = """async (key) => {
  const took = [];
  for (let n = 0; n < 30; n++) {
    const begin = performance.now();
    document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    await new Promise((done) => requestAnimationFrame(() => {
      const channel = new MessageChannel();  // a task of its own, after the frame was laid out and painted
      channel.port1.onmessage = done;
      channel.port2.postMessage(0);
    }));
    took.push(performance.now() - begin);
  }
  return took.sort((a, b) => a - b)[15];
}"""


KEYS_AND_STEPS = (
    ("Home", 0), ("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("End", 35), ("ArrowRight", 35),
    ("r", 12), ("r", 17), ("ArrowDown", 18), ("ArrowUp", 17), ("ArrowUp", 16), ("0", 16), ("+", 16), ("-", 16),
)  # fmt: skip
"""One after the other, and the step after each."""


@contextmanager
def opened(browser, path, **options):
    """Open a page, and hold it to it: no word on the console, no error, no request but for itself."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("body[data-ready]", state="attached")
    yield page
    assert said == []
    assert asked == [path.as_uri()]
    context.close()


def made(tmp_path, trace, other=None):
    path = tmp_path / "page.html"
    path.write_text(page_text(timeline_of(trace), other), "utf-8")
    return path


@pytest.fixture(scope="module")
def race(tmp_path_factory):
    return made(tmp_path_factory.mktemp("race"), read_trace(RACE))


def step_of(page):
    page.wait_for_timeout(60)
    return int(page.evaluate("document.body.dataset.step"))


def changed(page):
    return page.evaluate("[...document.querySelectorAll('.piece.changed, td.changed')].map((e) => e.textContent)")


def test_it_opens_at_the_race_with_its_sentence_and_both_orders(browser, race):
    with opened(browser, race) as page:
        assert "REFUTED" in page.inner_text("header")
        assert step_of(page) == 17
        assert page.inner_text(".why").startswith("nothing orders rank 0's remote_load")
        assert page.inner_text(".side") == "first side of finding 1: WAR race, next call"
        heads = [head.inner_text().upper() for head in page.query_selector_all(".order h3")]
        assert heads == ["AS RUN", "THE OTHER ORDER"]
        steps = [button.inner_text() for button in page.query_selector_all(".order button")]
        assert steps == ["step 12", "step 17", "step 17", "step 12"]


def test_both_sides_of_the_race_are_ringed_in_the_drawing(browser, race):
    with opened(browser, race) as page:
        colour = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--race').trim()")
        red = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        columns = page.evaluate(
            """(red) => {
              const canvas = document.querySelector(".stage canvas"), g = canvas.getContext("2d");
              const { data, width, height } = g.getImageData(0, 0, canvas.width, canvas.height);
              const count = new Array(width).fill(0);
              for (let n = 0; n < width * height; n++) {
                if (red.every((part, at) => Math.abs(data[4 * n + at] - part) < 24)) count[n % width]++;
              }
              return count;
            }""",
            red,
        )
        edges = [x for x, count in enumerate(columns) if count >= 18]  # the left and right of a ring
        groups = [x for at, x in enumerate(edges) if at == 0 or x - edges[at - 1] > 4]
        assert len(groups) == 4


def test_the_slider_changes_what_the_windows_hold(browser, race):
    with opened(browser, race) as page:
        slider = page.locator("#slider")
        slider.fill("12")
        assert step_of(page) == 12
        assert changed(page) == ["[0, 0:64]64 elements, digest 28a63991step 12 changed"]
        before = page.inner_text(".memory")
        slider.fill("0")
        assert step_of(page) == 0
        assert page.inner_text(".memory") != before
        assert "step 12" not in page.inner_text(".memory")
        assert "store to data[0, 0:64]@0" in slider.get_attribute("aria-valuetext")


def test_keys_step_jump_and_follow_a_rank(browser, race):
    with opened(browser, race) as page:
        for key, step in KEYS_AND_STEPS:
            page.keyboard.press(key)
            assert step_of(page) == step, key
        page.wait_for_timeout(350)
        assert page.inner_text("#live") == "step 16, rank 0: load of data[0, 0:64]@0"


def test_cells_that_a_step_changes_are_marked(browser, race):
    with opened(browser, race) as page:
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert step_of(page) == 2
        assert changed(page) == ["1 changed"]
        assert "lets pass" in page.inner_text(".detail")


def test_search_finds_dims_and_goes_through_what_it_found(browser, race):
    with opened(browser, race) as page:
        page.keyboard.press("Home")
        page.keyboard.press("/")
        page.keyboard.type("remote_load")
        assert page.inner_text(".found") == "4 of 36 steps"
        page.keyboard.press("Enter")
        assert step_of(page) == 8
        page.keyboard.press("Enter")
        assert step_of(page) == 17
        page.keyboard.press("Escape")
        assert page.inner_text(".found") == ""
        page.fill("#search", "nothing like this")
        assert page.inner_text(".found") == "0 of 36 steps"


def test_hovering_a_step_tells_what_it_is_and_clicking_goes_there(browser, race):
    with opened(browser, race) as page:
        box = page.locator(".stage canvas").bounding_box()
        page.keyboard.press("Home")
        found = None
        for x in range(60, int(box["width"]), 8):
            page.mouse.move(box["x"] + x, box["y"] + 45)
            if page.locator(".tip").is_visible() and "remote_load" in page.inner_text(".tip"):
                found = page.inner_text(".tip")
                page.mouse.click(box["x"] + x, box["y"] + 45)
                break
        assert "step 17, rank 0" in found
        assert "kernels/reduce_scatter.py:66" in found
        assert step_of(page) == 17


def test_all_can_be_reached_by_keyboard_and_has_a_name(browser, race):
    with opened(browser, race) as page:
        order = []
        for _ in range(40):
            page.keyboard.press("Tab")
            name = page.evaluate(
                "(() => { const e = document.activeElement;"
                " return e.getAttribute('aria-label') || e.textContent.trim(); })()"
            )
            order.append(name)
        for name in ("Skip to the timeline", "step 12", "the step before", "play", "step", "search the steps"):
            assert name in order
        assert order.index("step 12") < order.index("play") < order.index("search the steps")
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select, canvas:not([aria-hidden])')]"
            ".filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length"
        )
        assert unnamed == 0


def test_the_steps_are_there_as_a_table(browser, race):
    with opened(browser, race) as page:
        page.click("text=The steps as a table")
        page.wait_for_selector(".steps tbody tr")
        rows = page.query_selector_all(".steps tbody tr")
        assert len(rows) == 36
        assert re.sub(r"\s+", " ", rows[6].inner_text()).startswith(
            "6 rank 1 0 wait signal[0, 0]@1 >= 1 1 step 2 kernels/reduce_scatter.py:99"
        )
        assert len(page.query_selector_all(".steps tr.race")) == 2


def test_time_is_an_axis_where_the_run_has_one(browser, tmp_path):
    trace = small_trace()
    for step, event in enumerate(trace.events):
        event.time = (step * step) * 1e-6
    with opened(browser, made(tmp_path, trace)) as page:
        before = page.locator(".stage canvas").screenshot()
        page.keyboard.press("t")
        page.wait_for_timeout(60)
        assert page.get_attribute("text=time axis", "aria-pressed") == "true"
        assert page.locator(".stage canvas").screenshot() != before
        page.keyboard.press("End")
        step_of(page)
        assert f"time\n{(len(trace.events) - 1) ** 2} µs" in page.inner_text(".detail")


def test_adds_show_their_sums_and_what_was_there_at_the_start(browser, tmp_path):
    with opened(browser, made(tmp_path, small_trace())) as page:
        page.keyboard.press("End")
        step_of(page)
        memory = page.inner_text(".memory")
        assert "12, 13" in memory
        assert re.search(r"\[0:2\]\s+11, 12", memory)


@pytest.mark.parametrize("path", [HANG, LATE, STREAMS], ids=lambda path: path.stem)
def test_hangs_landings_and_streams_open_too(browser, tmp_path, path):
    with opened(browser, made(tmp_path, read_trace(path))) as page:
        page.keyboard.press("Home")
        for _ in range(30):
            page.keyboard.press("ArrowRight")
        assert step_of(page) > 0
        assert ("Still at the gate" in page.inner_text("#cards")) == (path == HANG)


def test_two_runs_step_together(browser, tmp_path):
    other = timeline_of(read_trace(STREAMS))
    with opened(browser, made(tmp_path, read_trace(RACE), other)) as page:
        assert [head.inner_text() for head in page.query_selector_all(".pane h2")] == ["As run", "The other run"]
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        step_of(page)
        assert all("step 1," in head.inner_text() for head in page.query_selector_all(".detail h3"))
        left, right = (pane.bounding_box() for pane in page.query_selector_all(".pane"))
        assert left["y"] == right["y"]


def test_a_hostile_trace_is_text_and_breaks_nothing(browser, tmp_path):
    with opened(browser, made(tmp_path, read_trace(hostile(tmp_path / "x.jsonl", SCRIPT)))) as page:
        page.keyboard.press("ArrowRight")
        step_of(page)
        page.click("text=The steps as a table")
        assert page.title() != "owned"
        assert page.query_selector("img") is None
        assert page.inner_text("h1") == SCRIPT
        assert page.evaluate("document.querySelectorAll('script').length") == 2


def test_a_script_that_got_in_all_the_same_would_not_run(browser, tmp_path, race):
    path = tmp_path / "owned.html"
    path.write_text(race.read_text("utf-8").replace("<main>", "<main><script>document.title='owned'</script>"), "utf-8")
    context = browser.new_context()
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.title() != "owned"
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_nothing_sticks_out_at_any_width_and_the_picture_follows_the_scheme(browser, race, width, scheme):
    with opened(browser, race, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", paper)[:3]))
        assert (brightness > 382) == (scheme == "light")


def test_a_large_run_opens_within_ten_times_and_steps_within_a_few_frames_of_an_empty_page(browser, tmp_path):
    trace = large()
    assert (trace.header.world.ranks, len(trace.events)) == (64, 28_480)
    empty = tmp_path / "empty.html"
    empty.write_text(EMPTY, "utf-8")
    paths = {"empty": empty, "large": made(tmp_path, trace)}
    took = {name: [] for name in paths}
    frames = {name: [] for name in paths}
    for _ in range(4):  # in turns, so that what else the machine does hits both
        for name, path in paths.items():
            with opened(browser, path) as page:  # from the navigation to the second frame after all is drawn
                took[name].append(int(page.evaluate("document.body.dataset.ready")))
                frames[name].append(page.evaluate(KEYS, "ArrowRight"))
    ratio = min(took["large"]) / min(took["empty"])
    frame = min(frames["large"]) / min(frames["empty"])
    print(f"opens in {ratio:.1f} times an empty page's {min(took['empty'])} ms; a step takes {frame:.1f} frames")  # noqa: T201
    assert ratio < 10
    assert frame < 5
