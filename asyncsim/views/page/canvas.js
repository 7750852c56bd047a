// One timeline on a canvas: lanes downwards, steps (or time) to the right. Only what is visible is drawn.

const LETTERS = "LSCNW↓·"; // load, store, copy, notify, wait, landing, order
const ARROWS = 1200; // more than so many in sight are drawn for the current step alone

class Lanes {
  constructor(run, canvas, overview, view) {
    Object.assign(this, { run, canvas, overview, view });
    this.top = 0;
    this.hover = -1;
    this.#layOut();
    this.colours();
  }

  #layOut() {
    const lanes = Math.max(this.run.lanes.length, 1);
    this.row = Math.max(9, Math.min(46, Math.floor(560 / lanes)));
    this.full = lanes * this.row;
    this.height = Math.min(this.full, 640) + 24;
    this.canvas.style.height = `${this.height}px`;
    const longest = Math.max(4, ...this.run.lanes.map((lane) => lane[0].length));
    this.gutter = Math.min(150, 22 + longest * 6.4);
    // A phase's stretch within a lane: [lane, first step, last step, phase]
    const run = this.run;
    this.stretches = run.lanes.map((_, lane) => {
      const found = [];
      for (let at = run.starts[lane]; at < run.starts[lane + 1]; at++) {
        const step = run.byLane[at], before = found[found.length - 1];
        if (before && before[2] === run.phase[step] && before[3] === run.call[step]) before[1] = step;
        else found.push([step, step, run.phase[step], run.call[step]]);
      }
      return found;
    });
  }

  colours() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.paint = Object.fromEntries(["ink", "dim", "line", "paper", "band", "now", "race", "hit"].map((n) => [n, of(n)]));
    this.group = this.run.groups.map((name) => of(name));
    this.onGroup = of("on-group");
  }

  // --- places

  at(step) { // in units of steps, whatever the axis
    const time = this.view.byTime && this.run.time;
    if (!time) return step;
    const end = time[time.length - 1] || 1;
    return (time[Math.max(0, Math.min(step, time.length - 1))] / end) * Math.max(1, this.run.steps - 1);
  }
  x(step) { return this.gutter + (this.at(step) - this.view.left) * this.view.scale; }
  y(lane) { return 20 + lane * this.row - this.top; }
  room() { return Math.max(60, this.width - this.gutter - 14); }

  // The first step at or after a place on the axis.
  stepAt(place) {
    let low = 0, high = this.run.steps;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.at(middle) < place) low = middle + 1; else high = middle;
    }
    return low;
  }

  hit(px, py) {
    const lane = Math.floor((py - 20 + this.top) / this.row), run = this.run;
    if (lane < 0 || lane >= run.lanes.length || px < this.gutter) return -1;
    const place = this.view.left + (px - this.gutter) / this.view.scale;
    let best = -1, near = Math.max(10, this.view.scale * 0.6);
    const middle = run.from(lane, this.stepAt(place));
    for (let at = Math.max(run.starts[lane], middle - 3); at < Math.min(run.starts[lane + 1], middle + 4); at++) {
      const distance = Math.abs(this.x(run.byLane[at]) - px);
      if (distance < near) { near = distance; best = run.byLane[at]; }
    }
    return best;
  }

  // --- drawing

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    if (!this.width) return;
    fitted(this.canvas, this.width, this.height, ratio);
    const g = this.g = this.canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, this.width, this.height);
    g.textBaseline = "middle";
    const first = Math.max(0, this.stepAt(this.view.left) - 1);
    const last = Math.min(this.run.steps - 1, this.stepAt(this.view.left + this.room() / this.view.scale) + 1);
    g.save();
    g.beginPath();
    g.rect(this.gutter - 12, 0, this.width - this.gutter + 12, this.height);
    g.clip();
    this.#axis(first, last);
    this.#nowLine();
    g.beginPath();
    g.rect(0, 18, this.width, this.height);
    g.clip();
    const top = Math.max(0, Math.floor(this.top / this.row));
    const bottom = Math.min(this.run.lanes.length - 1, Math.floor((this.top + this.height - 20) / this.row));
    for (let lane = top; lane <= bottom; lane++) this.#lane(lane, first, last);
    this.#pending();
    this.#arrows(first, last);
    for (let lane = top; lane <= bottom; lane++) this.#boxes(lane, first, last);
    this.#race();
    g.restore();
    this.#names(top, bottom);
    this.#strip(ratio);
  }

  #axis(first, last) {
    const { g, paint, view } = this;
    g.font = "10.5px system-ui, sans-serif";
    g.textAlign = "center";
    const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 1e5, 1e6].find((n) => n * view.scale > 46) || 1e7;
    const time = view.byTime && this.run.time;
    let right = -Infinity;
    for (let step = Math.ceil(first / apart) * apart; step <= last; step += time ? 1 : apart) {
      const x = this.x(step);
      if (x < right + 46) continue;
      right = x;
      g.fillStyle = paint.line;
      g.fillRect(Math.round(x), 18, 1, this.height);
      g.fillStyle = paint.dim;
      g.fillText(time ? seconds(this.run.time[step]) : String(step), x, 9);
    }
  }

  #nowLine() {
    const { g, paint, view } = this;
    if (view.step >= this.run.steps) return;
    const x = this.x(view.step), half = Math.max(1, Math.min(15, view.scale / 2));
    g.fillStyle = paint.now;
    g.globalAlpha = 0.16;
    g.fillRect(x - half, 0, 2 * half, this.height);
    g.globalAlpha = 1;
    g.fillRect(Math.round(x) - 0.5, 0, 1, this.height);
  }

  #lane(lane, first, last) {
    const { g, paint, run, row } = this, y = this.y(lane), middle = this.middleOf(lane);
    if (lane % 2 && row > 12) {
      g.fillStyle = paint.band;
      g.globalAlpha = 0.35;
      g.fillRect(0, y, this.width, row);
      g.globalAlpha = 1;
    }
    g.fillStyle = paint.line;
    g.fillRect(this.x(0), Math.round(middle), Math.max(0, this.x(run.steps - 1) - this.x(0)), 1);
    for (const [from, to, phase] of this.stretches[lane]) {
      if (to < first || from > last || !run.phases[phase]) continue;
      const left = this.x(from) - this.half() - 2, wide = this.x(to) + this.half() + 2 - left;
      g.fillStyle = paint.band;
      const begin = Math.max(left, 0), end = Math.min(left + wide, this.width);
      if (row > 12) rounded(g, begin, y + 2, Math.max(end - begin, 1), row - 4, Math.min(6, wide / 2)); else g.fillRect(begin, y + 1, end - begin, row - 2);
      if (row >= 30 && wide > 34) {
        g.save();
        g.beginPath();
        g.rect(left, y, wide - 3, row);
        g.clip();
        g.fillStyle = paint.dim;
        g.font = "9.5px system-ui, sans-serif";
        g.textAlign = "left";
        g.fillText(run.phases[phase], Math.max(left, this.gutter) + 5, y + 8);
        g.restore();
      }
    }
    // Where the task stood at a wait that could not pass.
    g.fillStyle = this.group[4];
    for (let at = run.from(lane, first); at < run.starts[lane + 1]; at++) {
      const step = run.byLane[at];
      if (run.arrived[step] > last) break;
      const by = run.released[step];
      if (by < 0 || run.group(step) !== 4 || by <= run.arrived[step]) continue;
      dashes(g, Math.max(this.x(run.arrived[step]), this.gutter), this.x(by), this.middleOf(lane), row > 12 ? 2 : 1);
      if (step > last) break;
    }
  }

  half() { return Math.max(0.5, Math.min(12, this.view.scale / 2 - 1)); }

  #boxes(lane, first, last) {
    const { g, run, row, view } = this, half = this.half();
    const high = row >= 30 ? 20 : Math.max(3, row - 4);
    const y = this.middleOf(lane) - high / 2;
    const letters = half >= 6 && high >= 12;
    let drawn = -Infinity, colour = null;
    g.textAlign = "center";
    g.font = "600 11px system-ui, sans-serif";
    for (let at = run.from(lane, first); at < run.starts[lane + 1]; at++) {
      const step = run.byLane[at];
      if (step > last) break;
      const x = this.x(step);
      if (x < drawn + 0.8 && half < 1) continue; // another one in the same column of pixels
      drawn = x;
      const group = run.group(step);
      if (colour !== this.group[group]) g.fillStyle = colour = this.group[group];
      const faint = view.hits && !view.hits[step];
      if (faint) g.globalAlpha = 0.18;
      if (half < 2) g.fillRect(x - half, y, 2 * half, high); else rounded(g, x - half, y, 2 * half, high, Math.min(5, half));
      if (letters) {
        g.fillStyle = colour = this.onGroup;
        g.fillText(LETTERS[group], x, y + high / 2 + 0.5);
      }
      if (faint) g.globalAlpha = 1;
      if (step === view.step || step === this.hover) {
        g.lineWidth = 2;
        g.strokeStyle = this.paint.now;
        outlined(g, x - half - 2, y - 2, 2 * half + 4, high + 4, 6);
      }
    }
  }

  // Tall rows have the phase's name above the boxes.
  middleOf(lane) { return this.y(lane) + this.row / 2 + (this.row >= 30 ? 5 : 0); }

  #arrows(first, last) {
    const { g, run, view } = this;
    const near = new Set([view.step, this.hover]);
    const few = last - first < ARROWS * 4;
    g.lineWidth = 1.4;
    g.strokeStyle = g.fillStyle = this.group[3];
    let count = 0;
    const focus = [...near].flatMap((step) => run.passes.get(step) || []).concat([...near].filter((step) => run.released[step] >= 0));
    for (let step = first; few && step <= last && count < ARROWS; step++) {
      if (run.released[step] >= 0) { count++; this.#arrow(step, 0.5); }
    }
    for (const step of focus) this.#arrow(step, 1);
    g.strokeStyle = g.fillStyle = this.group[5];
    for (const step of near) {
      if (step >= 0 && step < run.steps && run.lanes[run.lane[step]][2]) this.#arrow(step, 1, run.arrived[step]); // from its issue
    }
    g.globalAlpha = 1;
  }

  #arrow(step, strength, by = this.run.released[step]) {
    const { g, run } = this;
    const half = Math.min(this.half(), 9);
    const x1 = this.x(by) + half * 0.4, x2 = this.x(step) - half;
    const y1 = this.middleOf(run.lane[by]), y2 = this.middleOf(run.lane[step]);
    const bend = Math.max(10, Math.min(70, (x2 - x1) / 2));
    g.globalAlpha = strength;
    g.beginPath();
    g.moveTo(x1, y1);
    g.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 2, y2);
    g.stroke();
    if (this.view.scale < 5) return;
    g.beginPath();
    g.moveTo(x2 + 1, y2);
    g.lineTo(x2 - 6, y2 - 3.6);
    g.lineTo(x2 - 6, y2 + 3.6);
    g.fill();
  }

  #pending() {
    const { g, run, paint } = this;
    for (const [lane] of run.pending) {
      const end = run.starts[lane + 1] - 1, y = this.middleOf(lane);
      const from = end >= run.starts[lane] ? this.x(run.byLane[end]) + this.half() : this.x(0);
      const to = this.x(run.steps - 1) + Math.max(8, this.view.scale);
      g.fillStyle = g.strokeStyle = paint.race;
      dashes(g, Math.max(from, this.gutter), to, y, 2);
      g.lineWidth = 2;
      g.beginPath();
      g.moveTo(to, y - 4); g.lineTo(to + 8, y + 4); g.moveTo(to, y + 4); g.lineTo(to + 8, y - 4);
      g.stroke();
    }
  }

  #race() {
    const { g, run, paint } = this;
    g.strokeStyle = paint.race;
    run.findings.forEach((finding) => {
      const steps = finding.sides.map((side) => side[2]).filter((step) => step >= 0);
      const points = steps.map((step) => [this.x(step), this.middleOf(run.lane[step])]);
      g.lineWidth = 2;
      if (finding.ordered && points.length === 2) {
        g.setLineDash([4, 4]);
        g.beginPath();
        g.moveTo(...points[0]);
        g.lineTo(...points[1]);
        g.stroke();
        g.setLineDash([]);
      }
      const half = Math.max(this.half(), 3), high = this.row >= 30 ? 10 : Math.max(3, this.row / 2 - 1);
      g.lineWidth = 2.5;
      for (const [x, y] of points) outlined(g, x - half - 3, y - high - 3, 2 * half + 6, 2 * high + 6, 7);
    });
  }

  #names(top, bottom) {
    const { g, run, paint, row } = this;
    g.font = `${row >= 14 ? 12 : 9}px system-ui, sans-serif`;
    g.textAlign = "right";
    const apart = row >= 12 ? 1 : 2;
    const mine = this.view.step < run.steps ? run.lane[this.view.step] : -1;
    for (let lane = top; lane <= bottom; lane++) {
      if (lane % apart && lane !== mine) continue;
      g.fillStyle = lane === mine ? paint.ink : paint.dim;
      g.fillText(run.lanes[lane][0], this.gutter - 18, this.middleOf(lane), this.gutter - 20);
    }
  }

  // The whole run in a strip: where steps lie, the race, what was found, and the part that is in sight.
  #strip(ratio) {
    const { run, paint, view } = this, wide = this.overview.clientWidth, high = 22;
    fitted(this.overview, wide, high, ratio);
    const g = this.overview.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, wide, high);
    const x = (step) => (this.at(step) / Math.max(1, run.steps - 1)) * (wide - 4) + 2;
    g.fillStyle = paint.band;
    g.fillRect(0, 8, wide, 6);
    const left = (view.left / Math.max(1, run.steps - 1)) * (wide - 4), seen = this.room() / view.scale / Math.max(1, run.steps - 1);
    g.fillStyle = paint.now;
    g.globalAlpha = 0.25;
    rounded(g, Math.max(0, left), 4, Math.max(6, Math.min(wide - Math.max(0, left), seen * (wide - 4) + Math.min(0, left))), 14, 4);
    g.globalAlpha = 1;
    if (view.hits) {
      g.fillStyle = paint.hit;
      for (let step = 0, drawn = -1; step < run.steps; step++) {
        if (view.hits[step] && x(step) > drawn + 0.9) g.fillRect(drawn = x(step), 7, 1, 8);
      }
    }
    g.fillStyle = paint.race;
    for (const step of run.sides.keys()) g.fillRect(x(step) - 1, 2, 3, 18);
    g.fillStyle = paint.now;
    if (view.step < run.steps) g.fillRect(x(view.step) - 0.5, 0, 1.5, high);
  }
}

function fitted(canvas, width, height, ratio) {
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
}
function rounded(g, x, y, w, h, r) { g.beginPath(); g.roundRect(x, y, w, h, Math.max(0, r)); g.fill(); }
function outlined(g, x, y, w, h, r) { g.beginPath(); g.roundRect(x, y, w, h, r); g.stroke(); }
function dashes(g, from, to, y, thick) { for (let x = from; x < to; x += 6) g.fillRect(x, y - thick / 2, Math.min(3, to - x), thick); }
function seconds(time) {
  const units = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const [size, unit] = units.find(([size]) => time >= size) || units[3];
  return `${+(time / size).toPrecision(4)} ${unit}`;
}
