// Puts the page together: one pane a run, one step for all of them, keys, slider, search.

const runs = JSON.parse(document.getElementById("data").textContent).map((data) => new Run(data));
const steps = Math.max(...runs.map((run) => run.steps));
const view = { step: 0, left: 0, scale: 20, byTime: false, hits: null, fit: true };
const panes = [];
let waiting = false, playing = 0;

function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { // once a frame, however much has happened
    waiting = false;
    for (const pane of panes) pane.draw();
    const shown = runs[0].steps ? Math.min(view.step, runs[0].steps - 1) : -1;
    slider.value = view.step;
    slider.setAttribute("aria-valuetext", shown < 0 ? "no steps" : `step ${view.step}: ${runs[0].sentence(shown)}`);
    counter.textContent = `${view.step} / ${Math.max(0, steps - 1)}`;
    document.body.dataset.step = view.step;
  });
}

let spoken = 0;
function go(step) {
  view.step = Math.max(0, Math.min(step, steps - 1));
  reveal();
  draw();
  clearTimeout(spoken); // a held key is not read out step by step
  spoken = setTimeout(() => { if (view.step < runs[0].steps) live.textContent = `step ${view.step}, ${runs[0].sentence(view.step)}`; }, 250);
}

function reveal() {
  const lanes = panes[0].lanes, place = lanes.at(view.step), seen = lanes.room() / view.scale;
  if (place < view.left + 1) view.left = Math.max(-0.6, place - seen * 0.3);
  else if (place > view.left + seen - 1) view.left = place - seen * 0.7;
}

function zoom(factor, at = null) {
  const lanes = panes[0].lanes, px = at === null ? lanes.x(Math.min(view.step, lanes.run.steps - 1)) - lanes.gutter : at - lanes.gutter;
  const place = view.left + px / view.scale;
  view.scale = Math.max(lanes.room() / (steps + 1), Math.min(90, view.scale * factor));
  view.left = Math.max(-0.6, place - px / view.scale);
  view.fit = false;
  draw();
}

function fit() {
  const lanes = panes[0].lanes;
  lanes.width = lanes.canvas.clientWidth;
  view.scale = Math.min(44, lanes.room() / Math.max(1, steps + 0.2));
  view.left = -0.6;
  view.fit = true;
  draw();
}

// Open with the whole run if its steps can be told apart, else around the race.
function begin() {
  fit();
  const marked = [...runs[0].sides.keys()].sort((a, b) => a - b);
  view.step = marked.length ? marked[marked.length - 1] : runs[0].pending.length ? Math.max(0, runs[0].steps - 1) : 0;
  if (view.scale < 7 && runs[0].steps > 1) {
    view.scale = Math.min(24, Math.max(7, panes[0].lanes.room() / 60));
    view.fit = false;
    const lanes = panes[0].lanes;
    view.left = Math.max(-0.6, lanes.at(view.step) - lanes.room() / view.scale * 0.6);
  }
  draw();
}

class Pane {
  constructor(run, title) {
    this.canvas = make("canvas", { tabindex: "0", role: "img", "aria-label": `Timeline${title ? `, ${title}` : ""}: ${run.lanes.length} lanes, ${run.steps} steps. Arrow keys go through the steps; the table below says the same in words.` });
    this.overview = make("canvas", { class: "overview", "aria-hidden": "true" });
    this.tip = make("div", { class: "tip", hidden: true });
    this.lanes = new Lanes(run, this.canvas, this.overview, view);
    this.tables = new Tables(run, view, go);
    this.run = run;
    this.element = make("section", { class: "pane", "aria-label": title || "The run" }, title ? make("h2", {}, title) : null,
      make("div", { class: "stage" }, this.canvas, this.tip), this.overview, this.tables.element);
    this.#listen();
  }

  draw() {
    this.lanes.draw();
    this.tables.draw();
  }

  #listen() {
    const { canvas, lanes } = this;
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => { grip = { x: event.clientX, left: view.left, moved: false }; canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      if (grip && event.buttons) {
        if (Math.abs(event.clientX - grip.x) > 3) grip.moved = true;
        if (grip.moved) { view.left = clampLeft(grip.left - (event.clientX - grip.x) / view.scale); draw(); }
        return;
      }
      this.#hover(lanes.hit(event.offsetX, event.offsetY), event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip && !grip.moved) { const step = lanes.hit(event.offsetX, event.offsetY); if (step >= 0) go(step); }
      grip = null;
    });
    canvas.addEventListener("pointerleave", () => this.#hover(-1));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) { event.preventDefault(); zoom(Math.exp(-event.deltaY / 300), event.offsetX); return; }
      const across = event.shiftKey ? event.deltaY : event.deltaX, most = lanes.full + 24 - lanes.height;
      if (Math.abs(across) > 0) { event.preventDefault(); view.left = clampLeft(view.left + across / view.scale); draw(); }
      else if (most > 0) { event.preventDefault(); lanes.top = Math.max(0, Math.min(most, lanes.top + event.deltaY)); draw(); }
    }, { passive: false });
    const jump = (event) => { if (event.buttons) { view.left = clampLeft((event.offsetX / this.overview.clientWidth) * steps - lanes.room() / view.scale / 2); draw(); } };
    this.overview.addEventListener("pointerdown", jump);
    this.overview.addEventListener("pointermove", jump);
  }

  #hover(step, x, y) {
    if (step !== this.lanes.hover) { this.lanes.hover = step; this.lanes.draw(); }
    this.tip.hidden = step < 0;
    if (step < 0) return;
    const run = this.run, rows = [`call ${run.call[step]}${run.phases[run.phase[step]] ? `, ${run.phases[run.phase[step]]}` : ""}`];
    if (run.value[step] >= 0) rows.push(run.valueText(run.value[step], 0, Infinity, 4));
    if (run.have[step] !== null) rows.push(run.after[step] === null ? `saw ${run.have[step]}` : `now ${run.after[step]}`);
    if (run.released[step] >= 0) rows.push(`released by step ${run.released[step]}, ${run.who(run.released[step])}`);
    this.tip.replaceChildren(make("strong", {}, `step ${step}, ${run.who(step)}`), make("span", {}, run.text(step)), ...rows.map((row) => make("span", {}, row)), make("code", {}, run.sites[run.site[step]]));
    const right = x > this.canvas.clientWidth / 2;
    this.tip.style.left = right ? "auto" : `${x + 14}px`;
    this.tip.style.right = right ? `${this.canvas.clientWidth - x + 14}px` : "auto";
    this.tip.style.top = `${y + 14}px`;
  }
}

function clampLeft(left) { return Math.max(-0.6, Math.min(left, steps - 2)); }

// --- search

const matches = []; // the steps of the first run that match
function search(text) {
  const needle = text.trim().toLowerCase();
  matches.length = 0;
  view.hits = null;
  if (needle) {
    view.hits = new Uint8Array(steps);
    const known = new Map(); // what is the same for many steps is looked at once
    for (let step = 0; step < runs[0].steps; step++) {
      const run = runs[0], key = `${run.op[step]} ${run.phase[step]} ${run.site[step]} ${run.call[step]} ${run.value[step]}`;
      let found = known.get(key);
      if (found === undefined) known.set(key, found = run.words(step).toLowerCase().includes(needle));
      if (found) { view.hits[step] = 1; matches.push(step); }
    }
  }
  found.textContent = needle ? `${matches.length} of ${runs[0].steps} steps` : "";
  draw();
}
function next(direction) {
  const later = direction > 0 ? matches.find((step) => step > view.step) : matches.findLast((step) => step < view.step);
  if (matches.length) go(later === undefined ? matches[direction > 0 ? 0 : matches.length - 1] : later);
}

// --- the tools

const live = document.getElementById("live");
const button = (text, label, act, key) => make("button", { type: "button", title: key ? `${label} (${key})` : label, "aria-label": label, click: act }, text);
const slider = make("input", { type: "range", id: "slider", min: 0, max: Math.max(0, steps - 1), value: 0, "aria-label": "step", input: () => go(Number(slider.value)) });
const counter = make("output", { for: "slider", id: "counter" });
const query = make("input", { type: "search", id: "search", placeholder: "search: rank, op, region, line …", "aria-label": "search the steps",
  input: () => search(query.value), keydown: (event) => { if (event.key === "Enter") { next(event.shiftKey ? -1 : 1); event.preventDefault(); } } });
const found = make("span", { class: "found", role: "status" });
const raceSteps = [...runs[0].sides.keys()].sort((a, b) => a - b);
function toRace() { if (raceSteps.length) go(raceSteps.find((step) => step > view.step) ?? raceSteps[0]); }
function play() {
  if (playing) { clearInterval(playing); playing = 0; } else playing = setInterval(() => { if (view.step >= steps - 1) play(); else go(view.step + 1); }, 350);
  player.textContent = playing ? "❚❚" : "▶";
  player.setAttribute("aria-label", playing ? "stop" : "play");
}
const player = button("▶", "play", play, "space");
const axis = runs.every((run) => run.time) ? button("time axis", "steps or virtual time on the axis", () => { view.byTime = !view.byTime; axis.setAttribute("aria-pressed", view.byTime); fit(); }, "t") : null;
document.getElementById("tools").append(
  make("div", { class: "group" }, button("←", "the step before", () => go(view.step - 1), "←"), player, button("→", "the next step", () => go(view.step + 1), "→")),
  make("div", { class: "group grow" }, slider, counter),
  make("div", { class: "group" }, raceSteps.length ? make("button", { type: "button", class: "to-race", title: "the next side of a finding (r)", click: toRace }, "to the race") : null,
    button("−", "zoom out", () => zoom(1 / 1.5), "-"), button("+", "zoom in", () => zoom(1.5), "+"), button("fit", "the whole run", fit, "0"), axis),
  make("div", { class: "group search" }, query, found));
document.getElementById("legend").append(...runs[0].groups.map((name, group) => make("li", {}, make("span", { class: `kind ${name}` }, LETTERS[group]), name)),
  make("li", {}, make("span", { class: "arrow", "aria-hidden": "true" }, "→"), "notify lets a wait pass"),
  make("li", {}, make("span", { class: "parked", "aria-hidden": "true" }), "stands at a wait that cannot pass yet"),
  ...(raceSteps.length ? [make("li", {}, make("span", { class: "ring", "aria-hidden": "true" }), "side of a finding")] : []));

const lane = () => runs[0].lane[Math.min(view.step, runs[0].steps - 1)];
const KEYS = {
  ArrowRight: (event) => go(view.step + (event.shiftKey ? 10 : 1)), ArrowLeft: (event) => go(view.step - (event.shiftKey ? 10 : 1)),
  ArrowDown: () => { const run = runs[0], at = run.from(lane(), view.step + 1); if (at < run.starts[lane() + 1]) go(run.byLane[at]); },
  ArrowUp: () => { const run = runs[0], at = run.from(lane(), view.step) - 1; if (at >= run.starts[lane()]) go(run.byLane[at]); },
  Home: () => go(0), End: () => go(steps - 1), "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: fit,
  r: toRace, n: () => next(1), p: () => next(-1), "/": () => query.focus(), " ": play, t: () => axis && axis.click(),
};
document.addEventListener("keydown", (event) => {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target === query) { if (event.key === "Escape") { query.value = ""; search(""); player.focus(); } return; }
  if (target.tagName === "SELECT" || (target === slider && /^(Arrow|Home|End)/.test(event.key))) return;
  if ((target.tagName === "BUTTON" || target.tagName === "SUMMARY") && event.key === " ") return;
  const act = KEYS[event.key];
  if (act) { event.preventDefault(); act(event); }
});

const keysHelp = [["← →", "step (with shift: ten)"], ["↑ ↓", "the same actor's step before, after"], ["Home End", "first, last"], ["space", "play"], ["r", "the next side of a finding"],
  ["/", "search; Enter or n, p: next, previous"], ["+ − 0", "zoom, fit"]].concat(axis ? [["t", "steps or time"]] : []);
drawHead(runs[0]);
drawCards(runs[0], go);
runs.forEach((run) => panes.push(new Pane(run, run.title)));
document.getElementById("panes").append(...panes.map((pane) => pane.element));
document.getElementById("panes").classList.toggle("two", panes.length > 1);
const table = new StepTable(runs[0], view, go);
document.getElementById("below").append(table.element,
  make("details", {}, make("summary", {}, "Keys"), make("dl", { class: "keys" }, ...keysHelp.flatMap(([key, what]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, what)]))));
begin();
new ResizeObserver(() => { if (view.fit) fit(); else draw(); }).observe(document.getElementById("panes"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const pane of panes) pane.lanes.colours(); draw(); });
requestAnimationFrame(() => requestAnimationFrame(() => { document.body.dataset.ready = Math.round(performance.now()); }));
