// Threads during a slow frame: zones, what each thread did at each moment, its samples as ticks, and arrows between
// threads: from who held a lock to who waited for it, from who woke a thread to who was woken.
const STRIP = 15, TICKS = 11, NEAR = 4;

// Colours of the parts that are told one by one. They are the frame's: another thread that waits is grey, though it may
// wait for the same.
class PartColors {
  constructor(model) {
    this.model = model;
    const hues = {zone: [250, 165, 300, 205, 130], wait: [28, 350, 55, 325, 10], preempted: [85]};
    const used = {zone: 0, wait: 0, preempted: 0};
    this.hues = new Map();
    for (const {part} of model.rows.parts) {
      if (part < 0) continue;
      const {kind} = model.slow.parts[part];
      this.hues.set(part, {hue: hues[kind][used[kind]++ % hues[kind].length], chroma: kind === 'zone' ? 0.085 : 0.135});
    }
    // A cause has the colour of the part that it explains; a second one of the same part, a colour of its own.
    this.ofCauses = new Map();
    const taken = new Set();
    for (const {cause, part} of model.rows.causes || []) {
      const isTaken = !this.hues.has(part) || taken.has(part), own = {hue: [105, 230, 310, 180][this.ofCauses.size % 4], chroma: 0.1};
      if (cause >= 0) this.ofCauses.set(cause, isTaken ? own : this.hues.get(part));
      taken.add(part);
    }
  }

  ofRow({cause, part, kind}) {
    if (cause === undefined ? part < 0 : cause < 0 || kind === 'unknown') return cssColor('line');
    return this.shade(cause === undefined ? this.hues.get(part) : this.ofCauses.get(cause), 0);
  }

  // `paleness`: from 0 to 1.
  ofPart(part, paleness = 0) {
    return this.shade(this.hues.get(part), paleness);
  }

  shade({hue, chroma}, paleness) {
    const light = dark.matches ? 0.53 - 0.15 * paleness : 0.75 + 0.12 * paleness;
    return `oklch(${light.toFixed(3)} ${(chroma * (1 - 0.45 * paleness)).toFixed(3)} ${hue})`;
  }

  ofSpan({part}, isOther) {
    const {slow} = this.model;
    if (part < 0) return null;
    const {kind, part: known} = slow.span_parts[part];
    if (this.hues.has(known) && !isOther) return this.ofPart(known);
    return cssColor(kind === 'zone' ? 'busy' : kind === 'wait' ? 'wait' : 'preempted');
  }
}

class SlowTracks extends Tracks {
  constructor(model, pane, select) {
    super(model, pane, select);
    this.colors = new PartColors(model);
    this.picked = null;
    this.arrows = this.findArrows();
    this.overlay = document.createElement('canvas');
    this.overlay.className = 'arrows';
    this.host.append(this.overlay);
  }

  // The frame's thread first, then those that it has to do with, then those that did most.
  order() {
    const {slow, spans} = this.model, near = new Set([slow.thread]);
    for (const {from, to} of slow.arrows) if (to === slow.thread) near.add(from);
    const rank = (thread) => (thread === slow.thread ? 0 : near.has(thread) ? 1 : 2);
    return [...spans.keys()].sort((a, b) => rank(a) - rank(b) || this.onCpu(b).on - this.onCpu(a).on || a - b);
  }

  // In the frame.
  onCpu(thread) {
    const sum = {on: 0, watched: 0};
    for (const {from, to, part} of this.model.spans[thread]) {
      if (part < 0 || to <= 0) continue;
      const long = to - Math.max(from, 0);
      sum.watched += long;
      if (this.model.slow.span_parts[part].kind === 'zone') sum.on += long;
    }
    return sum;
  }

  activityHeight() {
    return STRIP + TICKS + 3;
  }

  stripTop(thread) {
    return 4 + this.zonesHeight(this.lanes[thread]);
  }

  zoneColor(i) {
    const {slow, zones} = this.model, path = this.paths?.get(i);
    if (zones.is_frame[i]) return cssColor(i === slow.zone ? 'hitch' : 'line');
    const known = zones.thread[i] === slow.thread ? slow.parts.findIndex(({kind, name}) => kind === 'zone' && name === path) : -1;
    return this.colors.hues.has(known) ? this.colors.ofPart(known, 1) : cssColor('accent-soft');
  }

  sortByThread() {
    super.sortByThread();
    // The path of each zone, as names of parts have it.
    this.paths = new Map();
    const {from, length, name} = this.model.zones;
    for (const lane of this.lanes) {
      const open = [];
      for (const {i, depth} of lane.zones) {
        open.length = Math.min(open.length, depth);
        open.push(this.model.names[name[i]]);
        this.paths.set(i, open.join('/'));
      }
    }
  }

  draw() {
    super.draw();
    this.drawArrows();
  }

  drawThread(context, row, lane) {
    this.drawZones(context, lane);
    this.drawStrip(context, row.thread);
    this.drawTicks(context, row.thread, lane);
    // What was before the frame is dimmed.
    context.globalAlpha = 0.6;
    context.fillStyle = cssColor('pane');
    context.fillRect(0, 0, this.x(0), row.height);
    context.globalAlpha = 1;
    context.fillStyle = cssColor('quiet');
    context.fillRect(Math.round(this.x(0)), 0, 1, row.height);
  }

  drawStrip(context, thread) {
    const {model} = this, top = this.stripTop(thread), isOther = thread !== model.slow.thread;
    for (const span of model.spans[thread]) {
      const x = this.x(span.from), width = this.x(span.to) - x, color = this.colors.ofSpan(span, isOther);
      if (!color) {
        this.drawUnknown(context, x, top, width);
        continue;
      }
      const isOn = model.slow.span_parts[span.part].kind === 'zone', inset = isOn ? 0 : 2;
      context.fillStyle = color;
      context.fillRect(x, top + inset, Math.max(width - (width > 2 ? 0.5 : 0), 0.6), STRIP - 2 * inset);
      if (width > 34) this.drawLabel(context, this.spanName(span), x, top, width);
      if (this.picked?.span === span) {
        context.strokeStyle = cssColor('ink');
        context.lineWidth = 1.5;
        context.strokeRect(x + 0.75, top + inset + 0.75, Math.max(width - 1.5, 1), STRIP - 2 * inset - 1.5);
      }
    }
  }

  drawUnknown(context, x, top, width) {
    context.strokeStyle = cssColor('line');
    context.lineWidth = 1;
    context.save();
    context.beginPath();
    context.rect(x, top + 2, width, STRIP - 4);
    context.clip();
    context.beginPath();
    for (let at = x - STRIP; at < x + width; at += 6) {
      context.moveTo(at, top + STRIP);
      context.lineTo(at + STRIP, top);
    }
    context.stroke();
    context.restore();
  }

  drawLabel(context, text, x, top, width) {
    context.save();
    context.beginPath();
    context.rect(x, top, width - 3, STRIP);
    context.clip();
    context.font = '10px system-ui, "DejaVu Sans", sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = cssColor('ink');
    context.fillText(text, Math.max(x, 0) + 4, top + STRIP / 2 + 0.5);
    context.restore();
  }

  // A value is that of the time from its point on.
  lastHolds() {
    return this.model.to;
  }

  spanName({part}) {
    if (part < 0) return 'not known';
    const {kind, name} = this.model.slow.span_parts[part];
    if (kind === 'zone') return name || 'no zone';
    return kind === 'wait' ? name || 'waited' : 'preempted';
  }

  // A tick for each sample: the clock's in full height, other events' below.
  drawTicks(context, thread, lane) {
    const {model} = this, top = this.stripTop(thread) + STRIP + 1;
    for (const i of lane.samples) {
      const event = model.events[model.event[i]], stack = model.stack[i];
      if (event.off_cpu) continue;
      const isKernel = stack >= 0 && model.locations.kernel[model.stacks.location[stack]] === 1, isClock = event.unit === 'nanoseconds';
      context.fillStyle = cssColor(this.picked?.sample === i ? 'ink' : !isClock ? 'preempted' : isKernel ? 'kernel' : 'accent');
      context.fillRect(this.x(model.time[i]), top + (isClock ? 0 : TICKS / 2), 1.2, isClock ? TICKS - 2 : TICKS / 2 - 1);
    }
  }

  findArrows() {
    const {slow, from, to, weight} = this.model;
    return slow.arrows.filter(({at}) => at >= from && at <= to).map((arrow) => ({...arrow, length: weight[arrow.sample]}));
  }

  drawArrows() {
    if (!this.overlay) return;
    const tops = new Map();
    let height = 0;
    for (const row of this.rows) {
      tops.set(row.thread, row.element.offsetTop);
      height = Math.max(height, row.element.offsetTop + row.element.offsetHeight);
    }
    const context = fitCanvas(this.overlay, this.width, height), {slow} = this.model;
    for (const arrow of this.arrows) {
      const isPicked = this.picked?.sample === arrow.sample, isNear = arrow.from === slow.thread || arrow.to === slow.thread;
      // Short waits of other threads: hundreds of arrows would hide what matters.
      if (!isPicked && (arrow.length * this.scale < 3 || !isNear)) continue;
      const middle = (thread) => tops.get(thread) + this.stripTop(thread) + STRIP / 2;
      this.drawArrow(context, Math.max(this.x(arrow.at), 1), middle(arrow.from), middle(arrow.to), arrow, isPicked);
    }
  }

  drawArrow(context, x, from, to, {kind, at}, isPicked) {
    const down = to > from ? 1 : -1, end = to - down * (STRIP / 2 - 2), at0 = from + down * (STRIP / 2 - 2);
    context.globalAlpha = at < 0 && !isPicked ? 0.35 : 1;
    context.strokeStyle = context.fillStyle = cssColor('ink');
    context.lineWidth = isPicked ? 2 : 1.2;
    context.setLineDash(kind === 'woke' ? [3, 2] : []);
    context.beginPath();
    context.arc(x, at0, 2.2, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(x, at0);
    context.lineTo(x, end - down * 4);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.moveTo(x, end);
    context.lineTo(x - 3.5, end - down * 6);
    context.lineTo(x + 3.5, end - down * 6);
    context.fill();
    context.globalAlpha = 1;
  }

  underneath(row, time, y) {
    if (row.thread === undefined) return super.underneath(row, time, y);
    const {model} = this, top = this.stripTop(row.thread), slack = NEAR / this.scale;
    if (y < top) {
      const {zone} = super.underneath(row, time, y);
      return zone === undefined ? {} : {zone};
    }
    if (y >= top + STRIP) {
      const near = (i) => Math.abs(model.time[i] - time);
      const ticks = this.lanes[row.thread].samples.filter((i) => !model.events[model.event[i]].off_cpu && near(i) <= slack);
      if (ticks.length > 0) return {sample: ticks.reduce((best, i) => (near(i) < near(best) ? i : best))};
    }
    // Of several below one pixel the longest.
    const under = model.spans[row.thread].filter(({from, to}) => from <= time + slack / 4 && to >= time - slack / 4);
    return under.length === 0 ? {} : {span: under.reduce((best, span) => (span.to - span.from > best.to - best.from ? span : best))};
  }

  // A click picks what is under it, a drag selects a time.
  click(event, row) {
    const box = row.canvas.getBoundingClientRect(), time = this.time(event.clientX - box.left);
    this.select.pick({row, ...this.underneath(row, time, event.clientY - box.top)});
  }

  show(event, threads, range) {
    // The frame itself is the whole picture: it needs no mark.
    const isFrame = range && range[0] === 0 && range[1] === this.model.to;
    super.show(event, threads.size === 1 && threads.has(this.model.slow.thread) ? new Set() : threads, isFrame ? null : range);
  }

  pick(what) {
    this.picked = what;
    this.draw();
  }
}
