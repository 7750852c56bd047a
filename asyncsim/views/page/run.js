// A run: columns of steps, and what memory holds at each of them, from checkpoints made when first asked for.

const EVERY = 256; // steps between checkpoints

class Run {
  constructor(data) {
    Object.assign(this, data);
    const columns = data.columns;
    this.steps = columns.op.length;
    this.op = Int32Array.from(columns.op);
    for (const name of ["lane", "call", "phase", "site", "value", "put", "released", "bare"]) {
      this[name] = spread(columns[name], new Int32Array(this.steps));
    }
    this.arrived = Int32Array.from(columns.arrived, (back, step) => step - back);
    this.released.forEach((back, step) => { this.released[step] = back ? step - back : -1; });
    this.have = spread(columns.have, new Array(this.steps));
    this.after = spread(columns.after, new Array(this.steps));
    this.checkpoints = [{ cells: new Array(this.cells.length), slots: new Array(this.places.length) }];
    this.now = { step: -1, cells: [], slots: [] };
    this.sides = new Map(); // step -> [finding, side]
    data.findings.forEach((finding, number) => finding.sides.forEach((side, which) => {
      if (side[2] >= 0 && !this.sides.has(side[2])) this.sides.set(side[2], [number, which]);
    }));
    this.#indexLanes();
    this.#indexReleases();
  }

  // The steps of each lane, one after the other in one array; lane n has those from starts[n] to starts[n + 1].
  #indexLanes() {
    this.starts = new Int32Array(this.lanes.length + 1);
    for (const lane of this.lane) this.starts[lane + 1]++;
    for (let n = 0; n < this.lanes.length; n++) this.starts[n + 1] += this.starts[n];
    const next = this.starts.slice();
    this.byLane = new Int32Array(this.steps);
    for (let step = 0; step < this.steps; step++) this.byLane[next[this.lane[step]]++] = step;
  }

  #indexReleases() {
    this.passes = new Map();
    for (let step = 0; step < this.steps; step++) {
      const by = this.released[step];
      if (by >= 0) this.passes.has(by) ? this.passes.get(by).push(step) : this.passes.set(by, [step]);
    }
  }

  // The first place in byLane, within a lane, whose step is at least `step`.
  from(lane, step) {
    let low = this.starts[lane], high = this.starts[lane + 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.byLane[middle] < step) low = middle + 1; else high = middle;
    }
    return low;
  }

  group(step) { return this.kinds[this.ops[this.op[step]][0]][0]; }
  kind(step) { return this.kinds[this.ops[this.op[step]][0]][1]; }
  text(step) { return this.kind(step) + this.ops[this.op[step]][1]; }
  cell(step) { return this.ops[this.op[step]][2]; } // its number, or -1
  read(step) { return this.accesses[this.ops[this.op[step]][3]]; } // [place, runs of units, view], or undefined
  written(step) { return this.accesses[this.ops[this.op[step]][4]]; }

  who(step) {
    const actor = this.ops[this.op[step]][5], rank = this.lanes[this.lane[step]][1];
    return actor === undefined ? `rank ${rank}` : `${actor} of rank ${rank}`;
  }

  sentence(step) { return `${this.who(step)}: ${this.text(step)}`; }

  // What steps are searched for.
  words(step) {
    return `${this.sentence(step)} ${this.phases[this.phase[step]]} ${this.sites[this.site[step]]} ` +
      `call ${this.call[step]}${this.valueText(this.value[step])}`.toLowerCase();
  }

  valueText(number, from = 0, count = Infinity, most = 8) {
    if (number < 0) return "";
    const value = this.values[number];
    if (typeof value === "string") return value;
    const part = value.slice(from, from + count);
    return part.slice(0, most).join(", ") + (part.length > most ? `, … ${part.length - most} more` : "");
  }

  // Memory after `step`: the value of each cell (undefined: as at the start), and the pieces of each window.
  state(step) {
    const block = Math.floor((step + 1) / EVERY);
    const now = this.now;
    if (!(now.step >= block * EVERY - 1 && now.step <= step) || now.step < 0) {
      for (let n = this.checkpoints.length; n <= block; n++) {
        const made = this.#copy(n - 1);
        for (let at = (n - 1) * EVERY; at < n * EVERY; at++) this.#apply(made, at);
        this.checkpoints.push(made);
      }
      this.now = { step: block * EVERY - 1, ...this.#copy(block) };
    }
    while (this.now.step < step) this.#apply(this.now, ++this.now.step);
    return this.now;
  }

  #copy(block) {
    const from = this.checkpoints[block];
    return { cells: from.cells.slice(), slots: from.slots.slice() };
  }

  #apply(state, step) {
    if (this.after[step] !== null) state.cells[this.cell(step)] = this.after[step];
    if (this.put[step] < 0) return;
    const [place, runs] = this.written(step);
    let offset = 0;
    let pieces = state.slots[place] || [];
    for (const [low, high] of runs) {
      pieces = overwritten(pieces, [low, high, step, this.put[step], offset]);
      offset += high - low;
    }
    state.slots[place] = pieces; // a new array: checkpoints share the old one
  }
}

// A column that is written as [value, how often, …].
function spread(runs, column) {
  for (let at = 0, step = 0; at < runs.length; at += 2) {
    column.fill(runs[at], step, step + runs[at + 1]);
    step += runs[at + 1];
  }
  return column;
}

// Pieces are [low, high, step, value, offset]: units from low to high were written by that step.
function overwritten(pieces, fresh) {
  const [low, high] = fresh, made = [];
  let placed = false;
  for (const piece of pieces) {
    const [a, b, step, value, offset] = piece;
    if (b <= low) { made.push(piece); continue; }
    if (a < low) made.push([a, low, step, value, offset]);
    if (!placed) { made.push(fresh); placed = true; }
    if (b > high) made.push([Math.max(a, high), b, step, value, offset + Math.max(a, high) - a]);
  }
  if (!placed) made.push(fresh);
  return made;
}

// Units low to high of a memory, as elements of an array of which each takes so many: the first one, the one after the
// last, and whether they are whole. Through a narrower view a part of an element can be overwritten.
function elementsOf(low, high, units) {
  return [Math.floor(low / units), Math.ceil(high / units), low % units === 0 && high % units === 0];
}

// Elements low to high of an array of this shape, as an index expression.
function placeText(shape, low, high) {
  if (!shape.length) return "[]";
  const index = (at) => shape.map((_, n) => Math.floor(at / shape.slice(n + 1).reduce((a, b) => a * b, 1)) % shape[n]);
  const first = index(low), last = index(high - 1);
  const at = first.findIndex((value, n) => value !== last[n]);
  if (at < 0) return `[${first.join(", ")}]`;
  const whole = shape.every((extent, n) => n <= at || (first[n] === 0 && last[n] === extent - 1));
  if (!whole) return `elements ${low}:${high}`;
  const ranges = shape.map((extent, n) => n < at ? first[n] : n === at ? `${first[n]}:${last[n] + 1}` : `0:${extent}`);
  return `[${ranges.join(", ")}]`;
}
