// Threads and counters over time: a row each, drawn when it comes into view.
const ZONE_ROW = 13, ACTIVITY = 26, WAITS = 7, COUNTER = 40;

class Tracks {
  constructor(model, pane, select) {
    Object.assign(this, {model, pane, select, range: null, event: 0, rows: []});
    this.axis = pane.querySelector('#axis canvas');
    this.host = pane.querySelector('#rows');
    this.observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const row = this.rows[entry.target.dataset.row];
        row.visible = entry.isIntersecting;
        if (row.visible) this.drawRow(row);
      }
    }, {root: pane, rootMargin: '120px'});
    this.sortByThread();
    this.build();
  }

  // What each lane shows, so that a drawing never looks at other threads' entries.
  sortByThread() {
    const {model} = this;
    const lanes = (this.lanes = model.threads.tid.map(() => ({samples: [], waits: [], zones: [], frames: [], depth: 0})));
    for (let i = 0; i < model.size; ++i) {
      if (isNaN(model.time[i])) continue;
      const lane = lanes[model.thread[i]], isWait = model.events[model.event[i]].off_cpu;
      if (model.time[i] > model.to || model.time[i] + (isWait ? model.weight[i] : 0) < model.from) continue;
      lane.samples.push(i);
      if (isWait) lane.waits.push(i);
    }
    const zones = [...model.zones.from.keys()];
    const {from, length} = model.zones;
    zones.sort((a, b) => from[a] - from[b] || length[b] - length[a]);
    const open = lanes.map(() => []);
    for (const i of zones) {
      const lane = lanes[model.zones.thread[i]];
      if (model.zones.is_frame[i]) {
        lane.frames.push({i, depth: 0});
        continue;
      }
      const stack = open[model.zones.thread[i]];
      while (stack.length > 0 && stack[stack.length - 1] <= from[i]) stack.pop();
      lane.zones.push({i, depth: stack.length});
      stack.push(from[i] + length[i]);
      lane.depth = Math.max(lane.depth, stack.length);
    }
  }

  // The threads, from the first row to the last.
  order() {
    const {model} = this, weights = new Float64Array(model.threads.tid.length);
    for (let i = 0; i < model.size; ++i) if (model.event[i] === 0) weights[model.thread[i]] += model.weight[i];
    return [...weights.keys()].sort((a, b) => weights[b] - weights[a] || a - b);
  }

  onCpu(thread) {
    const {on, off} = this.model.threads;
    return {on: on[thread], watched: on[thread] + off[thread]};
  }

  build() {
    const {model} = this, {tid, name, ended} = model.threads;
    for (const thread of this.order()) {
      const lane = this.lanes[thread];
      lane.depth = Math.min(lane.depth, 6);
      const {on, watched} = this.onCpu(thread);
      const share = watched > 0 ? ` · on CPU ${percent(on, watched)}` : '';
      const which = ended[thread] > 0 ? count(ended[thread], 'ended thread') : tid[thread];
      const label = this.addRow('button', model.names[name[thread]] || '(no name)', `${which}${share}`,
                                {thread, height: 6 + this.zonesHeight(lane) + this.activityHeight()});
      label.addEventListener('click', (event) => this.select.thread(thread, event.ctrlKey || event.metaKey || event.shiftKey));
    }
    model.counters.forEach((counter, i) => {
      const values = counter.values.filter((value) => value !== null);
      const least = values.reduce((a, b) => Math.min(a, b), 0), most = values.reduce((a, b) => Math.max(a, b), 0);
      const whose = counter.thread < 0 ? '' : ` · ${model.names[name[counter.thread]]}`;
      this.addRow('div', model.names[counter.name], `${amount(least, counter.unit)} … ${amount(most, counter.unit)}${whose}`,
                  {counter: i, least, most, height: COUNTER});
    });
  }

  zonesHeight(lane) {
    return (lane.frames.length > 0 ? ZONE_ROW : 0) + lane.depth * ZONE_ROW;
  }

  activityHeight() {
    return ACTIVITY + WAITS;
  }

  addRow(tag, title, detail, row) {
    const element = document.createElement('div'), label = document.createElement(tag), canvas = document.createElement('canvas');
    element.className = 'row';
    label.append(Object.assign(document.createElement('b'), {textContent: title}),
                 Object.assign(document.createElement('small'), {textContent: detail}));
    label.title = title;
    row.height = Math.max(row.height, 42);
    canvas.style.height = `${row.height}px`;
    element.dataset.row = this.rows.length;
    element.append(label, canvas);
    this.host.append(element);
    this.rows.push(Object.assign(row, {element, label, canvas, visible: false}));
    this.observer.observe(element);
    canvas.addEventListener('pointerdown', (event) => this.drag(event, row));
    canvas.addEventListener('pointermove', (event) => this.hover(event, row));
    canvas.addEventListener('pointerleave', () => this.select.hover(null));
    return label;
  }

  show(event, threads, range) {
    Object.assign(this, {event, range});
    for (const row of this.rows) {
      if (row.thread === undefined) continue;
      row.label.setAttribute('aria-pressed', threads.has(row.thread));
      row.element.classList.toggle('off', threads.size > 0 && !threads.has(row.thread));
    }
    this.draw();
  }

  draw() {
    this.width = this.axis.parentElement.clientWidth - 200;
    this.scale = (this.width - 2) / (this.model.to - this.model.from);
    this.binWidth = this.findBinWidth();
    this.peak = this.findPeak();
    this.drawAxis();
    for (const row of this.rows) if (row.visible) this.drawRow(row);
  }

  x(time) {
    return (time - this.model.from) * this.scale;
  }

  time(x) {
    return this.model.from + Math.min(Math.max(x / this.scale, 0), this.model.to - this.model.from);
  }

  drawAxis() {
    const context = fitCanvas(this.axis, this.width, 24), {from, to} = this.model;
    const step = niceStep((to - from) / Math.max(this.width / 110, 1));
    context.font = `11px ${cssColor('sans')}`;
    context.textBaseline = 'middle';
    for (let i = Math.ceil(from / step); i * step <= to; ++i) {
      const time = i * step;
      context.fillStyle = cssColor('line');
      context.fillRect(this.x(time), 16, 1, 8);
      context.fillStyle = cssColor('quiet');
      const text = duration(time, step);
      if (this.x(time) + 8 + context.measureText(text).width < this.width) context.fillText(text, this.x(time) + 4, 12);
    }
    this.drawRange(context, 24);
  }

  drawRange(context, height) {
    if (!this.range) return;
    const x = this.x(this.range[0]), width = Math.max(this.x(this.range[1]) - x, 1);
    context.fillStyle = cssColor('select');
    context.fillRect(x, 0, width, height);
    context.fillStyle = cssColor('accent');
    context.fillRect(x, 0, 1, height);
    context.fillRect(x + width - 1, 0, 1, height);
  }

  drawRow(row) {
    if (!this.width) return;
    const context = fitCanvas(row.canvas, this.width, row.height);
    if (row.thread === undefined) this.drawCounter(context, row);
    else this.drawThread(context, row, this.lanes[row.thread]);
    this.drawRange(context, row.height);
  }

  // A clock fills a lane when a thread ran all the time; other events are drawn to the highest bin of all threads.
  bins(lane) {
    const {model} = this, size = Math.ceil(this.width / this.binWidth);
    const bins = {user: new Float64Array(size), kernel: new Float64Array(size)};
    for (const i of lane.samples) {
      if (model.event[i] !== this.event) continue;
      const at = Math.min(Math.floor(this.x(model.time[i]) / this.binWidth), size - 1), stack = model.stack[i];
      const kernel = stack >= 0 && model.locations.kernel[model.stacks.location[stack]] === 1;
      (kernel ? bins.kernel : bins.user)[at] += model.weight[i];
    }
    return bins;
  }

  isClock() {
    const event = this.model.events[this.event];
    return event !== undefined && event.unit === 'nanoseconds' && !event.off_cpu;
  }

  // Bins are wide enough that a share of one means something: a clock's hold at least three samples of a busy thread.
  findBinWidth() {
    const {model} = this, weights = [];
    for (let i = 0; i < model.size && this.isClock(); i += 1 + (model.size >> 10)) {
      if (model.event[i] === this.event) weights.push(model.weight[i]);
    }
    weights.sort((a, b) => a - b);
    return Math.min(Math.max(2, (weights[weights.length >> 1] || 0) * 3 * this.scale), this.width / 8);
  }

  findPeak() {
    if (this.model.events[this.event]?.off_cpu) return 1;
    if (this.isClock()) return this.binWidth / this.scale;
    let peak = 1;
    for (const lane of this.lanes) {
      const {user, kernel} = this.bins(lane);
      for (let i = 0; i < user.length; ++i) peak = Math.max(peak, user[i] + kernel[i]);
    }
    return peak;
  }

  drawZones(context, lane) {
    let top = 3;
    if (lane.frames.length > 0) {
      for (const frame of lane.frames) this.drawZone(context, frame, top);
      top += ZONE_ROW;
    }
    for (const zone of lane.zones) if (zone.depth < lane.depth) this.drawZone(context, zone, top);
  }

  drawThread(context, row, lane) {
    const {model} = this;
    this.drawZones(context, lane);
    const base = row.height - WAITS - 2;
    if (!model.events[this.event]?.off_cpu) {
      const {user, kernel} = this.bins(lane);
      for (let i = 0; i < user.length; ++i) {
        if (user[i] + kernel[i] === 0) continue;
        const high = (value) => Math.min(value / this.peak, 1) * ACTIVITY;
        const all = Math.max(high(user[i] + kernel[i]), 1.5), below = Math.min(high(kernel[i]), all);
        context.fillStyle = cssColor('busy');
        const left = Math.round(i * this.binWidth), width = Math.round((i + 1) * this.binWidth) - left;
        context.fillRect(left, base - all, width, all - below);
        context.fillStyle = cssColor('kernel');
        context.fillRect(left, base - below, width, below);
      }
    }
    for (const i of lane.waits) {
      const isShown = model.event[i] === this.event, height = isShown ? ACTIVITY : WAITS - 2;
      context.fillStyle = cssColor(model.waits.preempted[model.wait_of[i] - 1] ? 'preempted' : 'wait');
      context.fillRect(this.x(model.time[i]), base + 2 - (isShown ? ACTIVITY - 4 : 0), Math.max(model.weight[i] * this.scale - 0.5, 0.7), height);
    }
  }

  zoneColor(i) {
    const {cause, is_frame} = this.model.zones;
    return cssColor(is_frame[i] ? (cause[i] ? 'hitch' : 'line') : 'accent-soft');
  }

  drawZone(context, {i, depth}, top) {
    const {model} = this, {from, length, name, cause, is_frame} = model.zones;
    const x = Math.max(this.x(from[i]), 0), y = top + depth * ZONE_ROW;
    const width = Math.max(Math.min(this.x(from[i] + length[i]), this.width) - x - 1, 0.7);
    context.fillStyle = this.zoneColor(i);
    context.fillRect(x, y, width, ZONE_ROW - 2);
    if (width < 24) return;
    context.font = '10px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    const text = model.names[name[i]] + (cause[i] ? ` — ${model.names[cause[i]]}` : '');
    context.save();
    context.beginPath();
    context.rect(x, y, width - 2, ZONE_ROW);
    context.clip();
    context.fillStyle = is_frame[i] && cause[i] ? cssColor('pane') : cssColor('ink');
    context.fillText(text, x + 4, y + 6);
    context.restore();
  }

  drawCounter(context, row) {
    const {times, values} = this.model.counters[row.counter], span = row.most - row.least || 1;
    const y = (value) => row.height - 4 - ((value - row.least) / span) * (row.height - 10);
    context.strokeStyle = cssColor('accent');
    context.lineWidth = 1.3;
    context.beginPath();
    let last = null;
    for (let i = 0; i < times.length; ++i) {
      if (values[i] !== null && last !== null) context.lineTo(this.x(times[i]), y(last));
      if (values[i] !== null) context[last === null ? 'moveTo' : 'lineTo'](this.x(times[i]), y(values[i]));
      last = values[i];
    }
    if (last !== null) context.lineTo(this.x(this.lastHolds(times)), y(last));
    context.stroke();
  }

  // Until when the last value of a counter holds.
  lastHolds(times) {
    return times[times.length - 1];
  }

  drag(event, row) {
    const {canvas} = row, left = canvas.getBoundingClientRect().left, from = this.time(event.clientX - left);
    canvas.setPointerCapture(event.pointerId);
    const rangeTo = (to) => (Math.abs(this.x(to) - this.x(from)) < 3 ? null : [Math.min(from, to), Math.max(from, to)]);
    let waiting = 0;
    const show = (at) => {
      const range = rangeTo(this.time(at.clientX - left));
      if (range || at.type === 'pointermove') this.select.range(range);
      else this.click(at, row);
    };
    const move = (at) => (cancelAnimationFrame(waiting), (waiting = requestAnimationFrame(() => show(at))));
    const end = (last) => {
      canvas.removeEventListener('pointermove', move);
      canvas.removeEventListener('pointerup', end);
      canvas.removeEventListener('pointercancel', end);
      cancelAnimationFrame(waiting);
      if (last.type === 'pointerup') show(last);
    };
    canvas.addEventListener('pointermove', move);
    canvas.addEventListener('pointerup', end);
    canvas.addEventListener('pointercancel', end);
  }

  // A click takes the selection back.
  click() {
    this.select.range(null);
  }

  // What is under the pointer: a zone, a wait, else the time.
  hover(event, row) {
    const box = row.canvas.getBoundingClientRect(), time = this.time(event.clientX - box.left), y = event.clientY - box.top;
    this.select.hover({time, row, event, ...this.underneath(row, time, y)});
  }

  underneath(row, time, y) {
    const {model} = this;
    if (row.thread === undefined) {
      const {times} = model.counters[row.counter];
      let at = -1;
      while (at + 1 < times.length && times[at + 1] <= time) ++at;
      return {point: at};
    }
    const lane = this.lanes[row.thread], slack = 1 / this.scale, {from, length} = model.zones;
    const covers = (begin, long) => time >= begin - slack && time <= begin + long + slack;
    const framesEnd = 3 + (lane.frames.length > 0 ? ZONE_ROW : 0), depth = Math.floor((y - framesEnd) / ZONE_ROW);
    const zones = y < framesEnd ? lane.frames : lane.zones;
    const zone = zones.find((entry) => (y < framesEnd || entry.depth === depth) && covers(from[entry.i], length[entry.i]));
    if (zone) return {zone: zone.i};
    const wait = lane.waits.find((i) => covers(model.time[i], model.weight[i]));
    return wait === undefined ? {} : {wait};
  }
}
