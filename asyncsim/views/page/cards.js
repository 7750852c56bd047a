// The head of the page, a card for each finding with both orders of its pair, and the steps as a table.

function drawHead(run) {
  const verdict = run.verdict ? make("span", { class: `verdict ${run.verdict === "PROVED" ? "good" : "bad"}` }, run.verdict) : null;
  const facts = [...run.facts, ["ending", run.ending]];
  document.getElementById("head").append(
    make("div", { class: "title" }, verdict, make("h1", {}, run.kernel)),
    make("dl", { class: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))));
}

function drawCards(run, go) {
  const cards = run.findings.map((finding, number) => make("article", { class: "card" },
    make("h2", {}, make("span", { class: "number" }, String(number + 1)), finding.title, finding.facts ? make("span", { class: "chip" }, finding.facts) : null),
    finding.why ? make("p", { class: "why" }, finding.why) : null,
    finding.shown ? make("p", { class: "shown" }, finding.shown) : null,
    finding.orders ? drawOrders(finding, go) : drawSides(finding, go)));
  if (run.pending.length) {
    cards.push(make("article", { class: "card" }, make("h2", {}, "Still at the gate when the run ended"),
      make("ul", { class: "sides" }, ...run.pending.slice(0, 64).map(([, text]) => make("li", {}, text)))));
  }
  document.getElementById("cards").append(...cards);
}

function drawOrders({ orders: [asRun, other, note], sides }, go) {
  const lines = new Map(sides.map((side) => [side[2], side[1]]));
  const otherwise = new Map(other.map(([step, , outcome]) => [step, outcome]));
  const differs = (step) => other.length && asRun.find((turn) => turn[0] === step)[2] !== otherwise.get(step);
  const column = (title, turns) => make("section", { class: "order" }, make("h3", {}, title),
    turns.length ? make("ol", {}, ...turns.map(([step, what, outcome]) => make("li", {},
      make("button", { type: "button", class: "step", click: () => go(step) }, `step ${step}`),
      make("span", { class: "what" }, what),
      make("span", { class: "at" }, lines.get(step) || ""),
      make("span", { class: `outcome${differs(step) ? " differs" : ""}` }, outcome)))) : make("p", { class: "empty" }, "Not in this file: asyncsim show TRACE --html FILE --kernel KERNEL runs it."));
  return make("div", {}, make("div", { class: "orders" }, column("As run", asRun), column("The other order", other)),
    make("p", { class: "note" }, note));
}

function drawSides(finding, go) {
  return make("ul", { class: "sides" }, ...finding.sides.map(([text, at, step]) => make("li", {},
    step >= 0 ? make("button", { type: "button", class: "step", click: () => go(step) }, `step ${step}`) : null,
    make("span", { class: "what" }, text), make("span", { class: "at" }, at))));
}

// The steps in words, for who cannot see the drawing: a page of a hundred, made when it is opened.
class StepTable {
  constructor(run, view, go) {
    Object.assign(this, { run, view, go });
    this.body = make("tbody");
    this.title = make("span", { class: "range" });
    const page = (by) => () => { this.first = Math.max(0, Math.min(this.first + by, this.run.steps - 1)); this.draw(); };
    this.element = make("details", { class: "steps", toggle: () => this.open() },
      make("summary", {}, "The steps as a table"),
      make("p", {}, make("button", { type: "button", click: page(-100) }, "the 100 before"), " ", this.title, " ", make("button", { type: "button", click: page(100) }, "the 100 after")),
      make("div", { class: "scroll" }, make("table", {},
        make("thead", {}, make("tr", {}, ...["step", "who", "call", "phase", "operation", "value or cell", "released by", "source"].map((head) => make("th", { scope: "col" }, head)))), this.body)));
  }

  open() {
    if (!this.element.open) return;
    this.first = Math.floor(this.view.step / 100) * 100;
    this.draw();
  }

  draw() {
    const run = this.run, last = Math.min(this.first + 100, run.steps);
    this.title.textContent = `steps ${this.first} to ${last - 1} of ${run.steps}`;
    const rows = [];
    for (let step = this.first; step < last; step++) {
      const cell = run.after[step] === null ? run.have[step] : run.after[step];
      const value = run.value[step] >= 0 ? run.valueText(run.value[step], 0, Infinity, 4) : cell === null ? "" : String(cell);
      const cells = [run.who(step), String(run.call[step]), run.phases[run.phase[step]], run.text(step), value,
        run.released[step] >= 0 ? `step ${run.released[step]}` : "", run.sites[run.site[step]]];
      rows.push(make("tr", { class: run.sides.has(step) ? "race" : null },
        make("th", { scope: "row" }, make("button", { type: "button", class: "step", click: () => this.go(step) }, String(step))),
        ...cells.map((text) => make("td", {}, text))));
    }
    this.body.replaceChildren(...rows);
  }
}
