// What memory holds at a step, and what the step is: tables under a timeline.

const OWNERS = 8; // of more ranks, only those that the step concerns are shown, or a chosen one
const CELLS = 24, PIECES = 24;

// Make an element; texts are text nodes, so nothing of a trace becomes markup.
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

class Tables {
  constructor(run, view, go) {
    Object.assign(this, { run, view, go });
    this.detail = make("div", { class: "detail" });
    this.memory = make("div", { class: "memory" });
    this.owners = [...new Set([...run.cells.map((cell) => cell[1]), ...run.places.map((place) => place[1])])].sort((a, b) => a - b);
    this.choice = make("select", { "aria-label": "whose memory is shown", change: () => this.draw() },
      make("option", { value: "here" }, "of the ranks of this step"),
      make("option", { value: "all" }, `of all ranks${this.owners.length > 32 ? " (the first 32)" : ""}`),
      ...this.owners.map((owner) => make("option", { value: String(owner) }, `of rank ${owner}`)));
    if (this.owners.length <= OWNERS) this.choice.value = "all";
    this.element = make("div", { class: "state" }, this.detail,
      make("div", { class: "memory-head" }, make("h3", {}, run.lanes.some((lane) => lane[2]) ? "Memory after this step, as it has landed" : "Memory after this step"), this.choice), this.memory);
  }

  draw() {
    const step = Math.min(this.view.step, this.run.steps - 1);
    if (step < 0) { this.detail.replaceChildren("This run has no steps."); return; }
    this.#drawDetail(step);
    const state = this.run.state(step);
    this.memory.replaceChildren(...this.#signals(step, state), ...this.#windows(step, state));
  }

  stepButton(step) {
    return make("button", { type: "button", class: "step", click: () => this.go(step) }, `step ${step}`);
  }

  #drawDetail(step) {
    const run = this.run;
    const rows = [["source", run.sites[run.site[step]] || "not recorded"]];
    if (run.phases[run.phase[step]]) rows.push(["phase", run.phases[run.phase[step]]]);
    rows.push(["call", String(run.call[step])]);
    if (run.value[step] >= 0) rows.push([run.read(step) && !run.written(step) ? "read" : "value", run.valueText(run.value[step], 0, Infinity, 16)]);
    if (run.bare[step]) rows.push(["notice", "it read elements that nobody had written"]);
    if (run.have[step] !== null) rows.push(["cell", run.after[step] === null ? `saw ${run.have[step]}` : `now ${run.after[step]}`]);
    if (run.time) rows.push(["time", seconds(run.time[step])]);
    if (run.released[step] >= 0) {
      rows.push(["released by", this.stepButton(run.released[step]), ` ${run.sentence(run.released[step])}`]);
    } else if (run.kind(step) === "wait") rows.push(["released by", "nobody: the condition held when the run began"]);
    const passes = run.passes.get(step);
    if (passes) {
      rows.push(["lets pass", ...passes.slice(0, 6).map((other) => this.stepButton(other)), passes.length > 6 ? ` and ${passes.length - 6} more` : ""]);
    }
    const side = run.sides.get(step);
    const note = side ? make("p", { class: "side" }, `${run.findings[side[0]].ordered ? ["first", "second"][side[1]] + " side of " : ""}finding ${side[0] + 1}: ${run.findings[side[0]].title}`) : null;
    this.detail.replaceChildren(
      make("h3", {}, make("span", { class: `kind ${run.groups[run.group(step)]}` }, run.kind(step)), ` step ${step}, ${run.who(step)}`),
      make("p", { class: "op" }, run.text(step)), ...(note ? [note] : []),
      make("dl", {}, ...rows.flatMap(([name, ...parts]) => [make("dt", {}, name), make("dd", {}, ...parts)])));
  }

  #chosen(step) {
    const value = this.choice.value;
    if (value === "all") return new Set(this.owners.slice(0, 32));
    if (value !== "here") return new Set([Number(value)]);
    const run = this.run, found = new Set([run.lanes[run.lane[step]][1]]);
    if (run.cell(step) >= 0) found.add(run.cells[run.cell(step)][1]);
    for (const access of [run.read(step), run.written(step)]) if (access) found.add(run.places[access[0]][1]);
    return found;
  }

  // The columns of each signal, and where its cells are: the same at every step.
  #grids() {
    const run = this.run;
    this.grids ??= run.signals.map((_, signal) => {
      const cells = run.cells.map((cell, number) => [number, ...cell]).filter((cell) => cell[1] === signal);
      const columns = new Map(cells.map(([, , , index]) => [index.join(", "), index]));
      const heads = [...columns].sort((a, b) => compare(a[1], b[1])).map(([text]) => text);
      return { heads, at: new Map(cells.map(([number, , owner, index]) => [`${owner}/${index.join(", ")}`, number])) };
    });
    return this.grids;
  }

  #signals(step, state) {
    const run = this.run, chosen = this.#chosen(step);
    const touched = run.cell(step);
    return this.#grids().map(({ heads, at }, signal) => {
      const [name, shape, start] = run.signals[signal];
      // Of many columns, those around the one that the step touches.
      const here = touched >= 0 && run.cells[touched][0] === signal ? heads.indexOf(run.cells[touched][2].join(", ")) : 0;
      const first = Math.floor(here / CELLS) * CELLS, shown = heads.slice(first, first + CELLS);
      const rows = this.owners.filter((owner) => chosen.has(owner)).map((owner) => make("tr", {},
        make("th", { scope: "row" }, `rank ${owner}`),
        ...shown.map((head) => {
          const number = at.get(`${owner}/${head}`);
          const value = number === undefined || state.cells[number] === undefined ? start : state.cells[number];
          const changed = number === touched && run.after[step] !== null;
          const looked = number !== undefined && number === touched && !changed;
          return make("td", { class: changed ? "changed" : looked ? "looked" : null }, String(value),
            changed ? make("span", { class: "hidden" }, " changed") : null);
        })));
      return this.#table(`signal ${name}`, `shape ${tuple(shape)}, starts at ${start}` + (heads.length > CELLS ? `; ${shown.length} of ${heads.length} cells` : ""),
        ["at", ...shown.map((head) => `[${head}]`)], rows, "No cell was touched.");
    });
  }

  #windows(step, state) {
    const run = this.run, chosen = this.#chosen(step);
    const written = run.put[step] >= 0 ? run.written(step) : null, read = run.read(step);
    return run.windows.map(([name, shape, dtype, start], window) => {
      const rows = [];
      run.places.forEach(([which, owner], place) => {
        if (which !== window || !chosen.has(owner)) return;
        const pieces = state.slots[place] || [];
        const list = pieces.slice(0, PIECES).map((piece) => this.#piece(piece, window, step, read && read[0] === place ? read[1] : null));
        if (!pieces.length) list.push(make("li", { class: "piece start" }, `as at the start: ${start}`));
        if (pieces.length > PIECES) list.push(make("li", {}, `and ${pieces.length - PIECES} more pieces`));
        rows.push([owner, make("tr", { class: written && written[0] === place ? "touched" : null },
          make("th", { scope: "row" }, `rank ${owner}`), make("td", { class: "pieces" }, make("ul", {}, ...list)))]);
      });
      rows.sort((a, b) => a[0] - b[0]);
      const seen = run.views.filter((view) => view[3] === window).map((view) => `, also ${view[0]} ${tuple(view[1])}, ${view[2]}`);
      return this.#table(`window ${name}`, `shape ${tuple(shape)}, ${dtype}, starts as ${start}${seen.join("")}`, ["at", "contents, and who wrote them"],
        rows.map((row) => row[1]), "No region was touched.");
    });
  }

  #piece([low, high, by, value, offset], window, step, readRuns) {
    const run = this.run, changed = by === step;
    const looked = !changed && readRuns && readRuns.some(([a, b]) => a < high && low < b);
    const view = run.written(by)[2]; // it is shown as what it was written as
    const [name, shape, , , units] = view === undefined ? ["", ...run.windows[window].slice(1)] : run.views[view];
    const [first, last, whole] = elementsOf(low, high, units);
    const from = Math.floor(offset / units);
    return make("li", { class: `piece${changed ? " changed" : looked ? " looked" : ""}` },
      make("span", { class: "where" }, `${whole ? "" : "a part of "}${name}${placeText(shape, first, last)}`),
      make("span", { class: "value" }, run.valueText(value, from, last - first)),
      make("button", { type: "button", class: "step", title: run.sentence(by), click: () => this.go(by) }, `step ${by}`),
      changed ? make("span", { class: "hidden" }, " changed") : looked ? make("span", { class: "hidden" }, " read by this step") : null);
  }

  #table(title, about, heads, rows, empty) {
    return make("section", { class: "table" }, make("h4", {}, title, make("small", {}, ` ${about}`)),
      rows.length ? make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, make("table", {}, make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
        make("tbody", {}, ...rows))) : make("p", { class: "empty" }, empty));
  }
}

function tuple(shape) { return `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`; }
function compare(a, b) {
  for (let n = 0; n < a.length; n++) if (a[n] !== b[n]) return a[n] - b[n];
  return 0;
}
