// The profile's tables as the file has them (src/exporters/html_data.cc), and what is computed from them.
const WHOLE = 0, NO_STACK = '[no stack]';

async function readData() {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser cannot decompress: Chromium 80, Firefox 113 or Safari 16.4 can');
  }
  const text = document.getElementById('data').textContent;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).json();
}

function sums(deltas) {
  const values = new Float64Array(deltas.length);
  for (let i = 0, at = 0; i < values.length; ++i) values[i] = at += deltas[i];
  return values;
}

function baseName(path) {
  return path.startsWith('/') && !path.startsWith('//') ? path.slice(path.lastIndexOf('/') + 1) : path;
}

class Model {
  constructor(raw) {
    Object.assign(this, raw);
    const s = raw.samples;
    this.size = s.weight.length;
    // Times are nanoseconds since the profile began. Merged samples, which come first, have none.
    this.time = new Float64Array(this.size).fill(NaN);
    this.time.set(sums(s.time), s.merged);
    this.weight = Float64Array.from(s.weight);
    this.count = Uint32Array.from(s.samples);
    this.thread = Uint32Array.from(s.thread);
    this.stack = Int32Array.from(s.stack, (stack) => stack - 1);
    this.event = Uint16Array.from(s.event);
    this.quality = Uint8Array.from(s.quality);
    this.parent = Int32Array.from(raw.stacks.up, (up, i) => (up === 0 ? -1 : i - up));
    this.readFunctions();
    this.findSpan();
    this.lastTime = 0;
  }

  // A function is a name in a module. Each location becomes its frames, the outermost call first.
  readFunctions() {
    const ids = new Map();
    this.functions = [];
    const idOf = (name, module, kernel) => {
      const key = `${name} ${module} ${kernel}`;
      if (!ids.has(key)) {
        ids.set(key, this.functions.length);
        this.functions.push({name: this.names[name], module, kernel: kernel === 1});
      }
      return ids.get(key);
    };
    const {module, kernel, first, calls, name} = this.locations;
    this.frames = module.map((_, at) => {
      if (calls[at] === 0) return [{fn: idOf(name[at], module[at], kernel[at]), call: -1, inlined: false}];
      const frames = [];
      for (let i = first[at] + calls[at] - 1; i >= first[at]; --i) {
        const called = this.calls.function[i] || name[at];
        frames.push({fn: idOf(called, module[at], kernel[at]), call: i, inlined: this.calls.inlined[i] === 1});
      }
      return frames;
    });
    this.noStack = this.functions.length;
    this.functions.push({name: NO_STACK, module: -1, kernel: false});
  }

  // What the time axis shows: when the profile was made, and whatever was seen before or after.
  findSpan() {
    let from = 0, to = this.span;
    const cover = (time) => {
      if (time < from) from = time;
      if (time > to) to = time;
    };
    for (let i = 0; i < this.size; ++i) {
      if (isNaN(this.time[i])) continue;
      cover(this.time[i]);
      if (this.events[this.event[i]].off_cpu) cover(this.time[i] + this.weight[i]);
    }
    this.zones.from = sums(this.zones.from);
    this.zones.from.forEach((time, i) => (cover(time), cover(time + this.zones.length[i])));
    for (const counter of this.counters) {
      counter.times = sums(counter.times);
      counter.times.forEach(cover);
    }
    this.from = from;
    this.to = to > from ? to : from + 1;
  }

  total(event) {
    const sum = {weight: 0, samples: 0};
    for (let i = 0; i < this.size; ++i) {
      if (this.event[i] === event) (sum.weight += this.weight[i], sum.samples += this.count[i]);
    }
    return sum;
  }

  // Calls `visit` with each sample that the filter lets through, and its weight. Returns what has no time, and was
  // therefore left out.
  visit(filter, visit) {
    const leftOut = {weight: 0, samples: 0};
    for (let i = 0; i < this.size; ++i) {
      if (this.event[i] !== filter.event) continue;
      if (filter.threads.size > 0 && !filter.threads.has(this.thread[i])) continue;
      if (filter.range && isNaN(this.time[i])) {
        (leftOut.weight += this.weight[i], leftOut.samples += this.count[i]);
        continue;
      }
      if (filter.range && !(this.time[i] >= filter.range[0] && this.time[i] < filter.range[1])) continue;
      visit(i, this.weight[i]);
    }
    return leftOut;
  }

  // Sums by stack, the last entry for samples that have none.
  sumStacks(filter) {
    const none = this.parent.length;
    const sum = {weight: new Float64Array(none + 1), samples: new Float64Array(none + 1), part: new Float64Array(none + 1)};
    sum.qualities = this.qualities.map(() => 0);
    sum.leftOut = this.visit(filter, (i, weight) => {
      const at = this.stack[i] < 0 ? none : this.stack[i];
      sum.weight[at] += weight;
      sum.samples[at] += this.count[i];
      if (this.quality[i] !== WHOLE) sum.part[at] += weight;
      sum.qualities[this.quality[i]] += this.count[i];
    });
    return sum;
  }

  // The weight and the samples of all stacks that hold a function which `hit` has.
  matched(sum, hit) {
    const none = this.parent.length;
    const inside = new Uint8Array(none);
    const found = {weight: 0, samples: 0};
    for (let i = 0; i <= none; ++i) {
      let is = i === none ? hit[this.noStack] : 0;
      if (i < none) {
        const above = this.parent[i] >= 0 ? inside[this.parent[i]] : 0;
        is = inside[i] = above || (this.frames[this.stacks.location[i]].some((frame) => hit[frame.fn]) ? 1 : 0);
      }
      if (is) (found.weight += sum.weight[i], found.samples += sum.samples[i]);
    }
    return found;
  }

  // The calls of a stack, innermost first.
  callsOf(stack) {
    const calls = [];
    for (; stack >= 0; stack = this.parent[stack]) calls.push(...[...this.frames[this.stacks.location[stack]]].reverse());
    return calls;
  }

  moduleName(module) {
    return module < 0 ? 'unknown' : baseName(this.names[this.modules.path[module]]);
  }

  place(call) {
    if (call < 0 || !this.calls.file[call]) return '';
    const line = this.calls.line[call];
    return this.names[this.calls.file[call]] + (line ? `:${line}` : '');
  }
}
