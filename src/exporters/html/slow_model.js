// A slow frame: the profile of its time (src/profile/frame_cut.h), what it spent its time on
// (src/exporters/html_slow_frame.cc), and the frames that it is compared with. Time 0 is the frame's begin.
const MAX_ROWS = 7, LEAST_SHARE = 0.01;

// An exact number of nanoseconds in one unit for a whole table: "37.338 ms".
function exactText(ns) {
  const number = (Math.abs(ns) / 1e6).toLocaleString('en', {minimumFractionDigits: 3, maximumFractionDigits: 3});
  return `${ns < 0 ? '−' : ''}${number} ms`;
}

function changeText(ns) {
  return ns > 0 ? `+${exactText(ns)}` : exactText(ns);
}

class SlowModel extends Model {
  constructor(raw) {
    super(raw);
    this.from = this.slow.from;
    this.to = this.slow.ns;
    this.readSpans();
    this.chooseRows();
    this.usualOf = new Map();
  }

  get excess() {
    return this.slow.ns - this.slow.usual;
  }

  // By thread: what it did, as [{from, to, part, sample}]; `part` is one of slow.span_parts, or -1.
  readSpans() {
    this.spans = this.slow.spans.map(({part, sample, ns}) => {
      let at = this.from;
      return part.map((_, i) => ({from: at, to: (at += ns[i]), part: part[i], sample: sample[i]}));
    });
  }

  // What is told row by row: the causes of a frame that took longer than usual, and its parts. All others are one row, so
  // that the rows add up.
  chooseRows() {
    const {causes} = this.slow;
    this.isLong = this.excess > 0;
    this.whole = this.isLong ? this.excess : this.slow.ns;
    this.rows = {parts: this.partRows()};
    if (this.isLong && causes.length > 0) this.rows.causes = this.causeRows();
  }

  causeRows() {
    const {causes} = this.slow, {told, rest} = this.chooseTold(causes.map(({share}) => share));
    const rows = told.map((i) => ({cause: i, ...causes[i], value: causes[i].share}));
    const value = this.whole - rows.reduce((all, row) => all + row.value, 0);
    if (value !== 0) rows.push({cause: -1, part: -1, text: `all else: ${count(rest, 'cause')}`, value, confidence: ''});
    return rows;
  }

  // The indexes of the largest values, and how many others there are.
  chooseTold(values) {
    const told = [...values.keys()].filter((i) => Math.abs(values[i]) >= this.whole * LEAST_SHARE)
        .sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]) || a - b).slice(0, MAX_ROWS);
    return {told: told.sort((a, b) => values[b] - values[a] || a - b), rest: values.length - told.length};
  }

  // Of a frame that took longer than usual by their excess, of another one by their time.
  partRows() {
    const {isLong, whole} = this, {parts} = this.slow;
    const valueOf = (part) => (isLong ? part.ns - part.usual : part.ns);
    const {told, rest: others} = this.chooseTold(parts.map(valueOf));
    const rows = told.map((i) => ({part: i, text: parts[i].text, value: valueOf(parts[i]), ns: parts[i].ns, usual: parts[i].usual}));
    const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
    const rest = {part: -1, value: whole - sum('value'), ns: this.slow.ns - sum('ns'), usual: this.slow.usual - sum('usual')};
    rest.text = others > 0 ? `all else: ${count(others, 'part')}` : 'medians do not add up exactly';
    if (rest.value !== 0 || rest.ns !== 0) rows.push(rest);
    return rows;
  }

  // A wait counts for as long as it was in the range. Entries of frames that this one is compared with have a range of
  // their own.
  visit(filter, visit) {
    const [from, to] = filter.range || [this.from, this.to], isWait = this.events[filter.event]?.off_cpu;
    for (let i = 0; i < this.size; ++i) {
      if (this.event[i] !== filter.event || (filter.threads.size > 0 && !filter.threads.has(this.thread[i]))) continue;
      const time = this.time[i], inside = Math.min(time + this.weight[i], to) - Math.max(time, from);
      if (!isWait && time >= from && time < to) visit(i, this.weight[i]);
      if (isWait && inside > 0) visit(i, inside);
    }
    return {weight: 0, samples: 0};
  }

  // What is known of the wait that a sample stands for; null if nothing is.
  waitOf(sample) {
    return this.slow.waits[this.wait_of[sample] - 1] || null;
  }

  ownFilter(event, range = [0, this.slow.ns]) {
    return {event, threads: new Set([this.slow.thread]), range};
  }

  total(event) {
    const sum = {weight: 0, samples: 0};
    this.visit(this.ownFilter(event), (i, weight) => (sum.weight += weight, sum.samples += this.count[i]));
    return sum;
  }

  // The sums by stack of each frame that this one is compared with, and their mean.
  usual(event) {
    if (!this.usualOf.has(event)) {
      const frames = this.slow.references.map((range) => this.sumStacks(this.ownFilter(event, range)));
      const size = this.parent.length + 1, mean = {weight: new Float64Array(size), samples: new Float64Array(size), part: new Float64Array(size)};
      mean.qualities = this.qualities.map(() => 0);
      for (const key of ['weight', 'samples', 'part', 'qualities']) {
        for (const frame of frames) frame[key].forEach((value, i) => (mean[key][i] += value / frames.length));
      }
      this.usualOf.set(event, {frames, mean});
    }
    return this.usualOf.get(event);
  }

  // For each node of a tree: its time in this frame and in each of the others.
  compare(tree, event) {
    const here = this.sumStacks(this.ownFilter(event)), {frames} = this.usual(event), isExact = this.events[event]?.off_cpu;
    const value = tree.totalsOf(here.weight), samples = tree.totalsOf(here.samples), usual = new Float64Array(value.length);
    const asMuch = new Uint32Array(value.length), asLittle = new Uint32Array(value.length);
    for (const frame of frames) {
      tree.totalsOf(frame.weight).forEach((other, node) => {
        usual[node] += other / frames.length;
        if (other >= value[node]) ++asMuch[node];
        if (other <= value[node]) ++asLittle[node];
      });
    }
    // As a test by rank: with no difference, a frame is among the most extreme one in twenty as often as that.
    const isRare = (frequency) => (frequency + 1) * 20 <= frames.length + 1;
    const verdict = Int8Array.from(value, (here, node) => {
      if (here > usual[node] && isRare(asMuch[node]) && (isExact || samples[node] > 1)) return 1;
      return here < usual[node] && isRare(asLittle[node]) ? -1 : 0;
    });
    return {value, usual, asMuch, asLittle, verdict, frames: frames.length};
  }
}
