// The view of a slow frame: why it was slow, all threads meanwhile, and its flame graph coloured by what differs from the
// frames that it is compared with.
const MAX_CALLS = 60;

class SlowPage extends Page {
  makeViews(select) {
    const {model} = this;
    this.graph = new ComparisonGraph(model, this.palette, element('graph'));
    this.tracks = new SlowTracks(model, element('tracks'), {...select, pick: (what) => this.pick(what)});
    document.body.classList.add('slow');
    for (const id of ['slow', 'details', 'side']) element(id).hidden = false;
    element('functions').hidden = true;
    Object.assign(this.state, this.wholeFrame(), {event: this.firstEvent(), isUsual: false});
  }

  wholeFrame() {
    return {threads: new Set([this.model.slow.thread]), range: [0, this.model.slow.ns]};
  }

  // What most of the overrun was: time off the CPU, or on it.
  firstEvent() {
    const {model} = this, top = model.rows.parts.find((row) => row.part >= 0), isOff = top && model.slow.parts[top.part].kind !== 'zone';
    const found = model.events.findIndex((event) => event.unit === 'nanoseconds' && event.off_cpu === Boolean(isOff));
    return Math.max(found, 0);
  }

  writeHeader() {
    super.writeHeader();
    const {slow} = this.model;
    document.title = `${slow.headline} · perfkit`;
    element('program').textContent = slow.headline;
    element('threads').textContent = 'Click: what it was. Drag: a time';
    this.switch('side', [['This frame', '', () => this.set({isUsual: false})], ['Usual frame', '', () => this.set({isUsual: true})]]);
    this.by = this.model.rows.causes ? 'causes' : 'parts';
    this.switch('by', [['Causes', '', () => this.showBy('causes')], ['Parts', '', () => this.showBy('parts')]]);
    element('by').hidden = !this.model.rows.causes;
    const [first] = this.model.rows[this.by];
    if (first) this.showDetails(this.describeRow(first));
  }

  showBy(by) {
    this.by = by;
    this.writeOverrun();
  }

  // The bar, and the table that is its legend.
  writeOverrun() {
    const {model} = this, rows = model.rows[this.by], positive = rows.filter((row) => row.value > 0), bar = element('overrun');
    const colorOf = (row) => this.tracks.colors.ofRow(row), isCauses = this.by === 'causes';
    this.check('by', isCauses ? 0 : 1);
    bar.replaceChildren(...positive.map((row) => {
      const piece = make('button', row.text, {title: `${row.text}: ${exactText(row.value)}`});
      piece.style.flexGrow = row.value;
      piece.style.background = colorOf(row);
      piece.addEventListener('click', () => this.pickRow(row));
      return piece;
    }));
    const cell = (text, className = '') => make('td', text, {className});
    const line = (name, numbers, color) => {
      const tr = make('tr', ''), first = cell('', 'what'), dot = make('i', '');
      dot.style.background = color;
      first.append(dot, name);
      first.title = name;
      tr.append(...numbers.map((number) => cell(number)), first);
      return tr;
    };
    const head = make('tr', '');
    const first = model.isLong ? 'more than usual' : 'of the frame';
    head.append(...(isCauses ? [first, 'how sure', ''] : [first, 'here', 'usually', '']).map((text) => make('th', text)));
    const lines = this.texts().map((numbers, i) => {
      const row = rows[i], name = row?.text ?? (model.isLong ? 'the frame is longer by' : 'the frame');
      const tr = line(name, numbers, row ? colorOf(row) : 'transparent');
      if (row) tr.addEventListener('click', () => this.pickRow(row));
      else tr.className = 'sum';
      return tr;
    });
    element('slow').querySelector('tbody').replaceChildren(head, ...lines);
    element('counts').replaceChildren(...this.unusualCounts().map((text) => make('p', text)));
  }

  // Events that happened far more often than usual (slow_frames_report.cc has the same bounds).
  unusualCounts() {
    const number = (value) => rounded(value, 4), counts = this.model.slow.counts;
    const unusual = counts.filter(({value, usual}) => value - usual >= 16 && value >= 2 * usual)
        .map(({name, value, usual}) => `${name}: ${number(value)} here, ${number(usual)} usually`);
    if (this.model.slow.frequency) unusual.push(this.model.slow.frequency);
    return [...unusual, ...this.model.slow.faults.map(({text, faults}) => `${faults} ${text}`)];
  }

  // The numbers of the table, the sum last. They are rounded so that those that are shown add up, too.
  texts() {
    const {whole, slow, isLong} = this.model, rows = this.model.rows[this.by], step = 1000, round = (ns) => Math.round(ns / step) * step;
    const keys = this.by === 'causes' ? [['value', whole]] : [['value', whole], ['ns', slow.ns], ['usual', slow.usual]];
    const columns = keys.map(([key, sum]) => {
      const values = rows.map((row) => round(row[key]));
      if (values.length > 0) values[values.length - 1] += round(sum) - values.reduce((a, b) => a + b, 0);
      return [...values, round(sum)];
    });
    return columns[0].map((value, i) => [isLong ? changeText(value) : exactText(value),
      ...(this.by === 'causes' ? [rows[i]?.confidence ?? ''] : [exactText(columns[1][i]), exactText(columns[2][i])])]);
  }

  // Compared is the whole frame on its thread; any other choice has nothing to be compared with.
  isWhole() {
    const {threads, range} = this.state, {slow} = this.model;
    return threads.size === 1 && threads.has(slow.thread) && range[0] === 0 && range[1] === slow.ns;
  }

  set(change) {
    if ('range' in change && !change.range) change.range = this.wholeFrame().range;
    if (change.threads?.size === 0) change.threads = this.wholeFrame().threads;
    super.set(change);
  }

  isCompared() {
    const {model} = this;
    return this.isWhole() && model.slow.references.length > 0 && model.events.length > 0;
  }

  // In time there is this frame alone.
  sumOfTree() {
    const {model, state} = this, isUsual = state.isUsual && !state.inTime && this.isCompared();
    return isUsual ? {...this.sum, ...model.usual(state.event).mean} : this.sum;
  }

  mergedTree() {
    const {model, state} = this;
    this.graph.comparison = null;
    if (!this.isCompared()) return super.mergedTree();
    const here = this.sum, {mean} = model.usual(state.event);
    const isUsed = (i) => here.samples[i] > 0 || here.weight[i] > 0 || mean.samples[i] > 0 || mean.weight[i] > 0;
    const tree = Tree.merged(model, this.shown, isUsed);
    if (!state.inTime) this.graph.comparison = model.compare(tree, state.event);
    return tree;
  }

  showAll() {
    super.showAll();
    const {slow} = this.model;
    this.check('side', this.state.isUsual ? 1 : 0);
    this.writeOverrun();
    element('side').hidden = !this.graph.comparison;
    element('span').textContent = [slow.reason && `kept: ${slow.reason}`, slow.state && `state: ${slow.state}`,
      slow.worst_by && `among the worst by ${slow.worst_by}`,
      slow.compared > 0 ? `compared with ${count(slow.compared, 'frame')}` : 'compared with no other frame'].filter(Boolean).join(' · ');
  }

  showAccounting() {
    const {model, state} = this, {slow} = model;
    const facts = model.events.length > 0 ? eventFacts(model, state.event, this.shown, this.shown.leftOut) : [];
    const stacks = facts.filter(([text]) => text.startsWith('stacks ')), run = facts.filter((fact) => !stacks.includes(fact));
    const chips = slow.gaps.map((text) => make('span', text, {className: 'missing'}));
    if (slow.references.length < slow.compared) {
      chips.push(make('span', `the flame graph is compared with ${slow.references.length} of them`));
    }
    chips.push(...stacks.map(([text, missing]) => make('span', text, {className: missing ? 'missing' : ''})));
    // The accounting is the whole run's: what of it concerns this frame is not known.
    const all = [...run, ...profileFacts(model)].map(([text]) => text).concat(model.notes);
    if (all.length > 0) chips.push(make('span', `whole run: ${all.join(' · ')}`, {className: 'note'}));
    element('accounting').replaceChildren(...chips);
  }

  showFilters() {
    const {state, model} = this, chips = [];
    if (!this.isWhole()) {
      const names = [...state.threads].map((thread) => model.names[model.threads.name[thread]] || model.threads.tid[thread]).join(', ');
      const [from, to] = state.range, time = from === 0 && to === model.slow.ns ? '' : `, ${duration(from)} … ${duration(to)}`;
      chips.push(make('button', `${names}${time} ×`, {onclick: () => this.set(this.wholeFrame()), title: 'Show the frame again'}));
    }
    element('filters').replaceChildren(...chips);
  }

  legend() {
    if (!this.graph.comparison) return super.legend();
    const {frames} = this.graph.comparison;
    const few = frames < 19 ? ': 19 are needed to tell' : '';
    return [legendEntry(verdictColor(1), `more than in 19 of 20 of ${count(frames, 'usual frame')}`),
      legendEntry(verdictColor(-1), 'less than in 19 of 20'),
      legendEntry(verdictColor(0), `~ can’t be told from the usual${few}`), ...super.legend().slice(-4)];
  }

  escape() {
    const {state} = this;
    element('search').blur();
    if (state.search) this.search('');
    else if (this.graph.zoom !== 0) this.zoom(0);
    else if (!this.isWhole()) this.set(this.wholeFrame());
    else this.pick({});
  }

  describe(node) {
    const lines = super.describe(node), {comparison} = this.graph;
    if (!comparison) return lines;
    const {value, usual, asMuch, asLittle, verdict, frames} = comparison;
    const [here, mean] = [value[node], usual[node]].map((weight) => amount(weight, this.unit));
    const seldom = value[node] >= usual[node] ? `as much in ${asMuch[node]} of ${frames}` : `as little in ${asLittle[node]} of ${frames}`;
    return [...lines, `${here} in this frame, ${mean} in the mean of the usual ones; ${seldom}`,
      verdict[node] === 0 && '~ can’t be told from the usual'];
  }

  pick(what) {
    this.tracks.pick(what);
    const text = what.span ? this.describeSpan(what.span, what.row.thread) : what.sample !== undefined ? this.describeSample(what.sample)
        : what.zone !== undefined ? this.describeZone(what.zone) : null;
    if (text) this.showDetails(text);
  }

  pickRow(row) {
    const {spans, slow} = this.model, isOf = ({part, to}) => to > 0 && part >= 0 && slow.span_parts[part].part === row.part;
    const longest = row.part < 0 ? undefined : spans[slow.thread].filter(isOf).sort((a, b) => b.to - b.from - (a.to - a.from))[0];
    this.tracks.pick({span: longest, sample: longest?.sample});
    this.showDetails(this.describeRow(row));
  }

  // `what`: {title, lines, stacks: [{name, stack, note}]}.
  showDetails({title, lines, stacks}) {
    const {model} = this;
    const list = ({name, stack, note}) => {
      const calls = model.callsOf(stack), host = make('div', ''), items = make('ol', '');
      host.append(make('h3', name));
      if (note) host.append(make('p', note, {className: 'quiet'}));
      for (const {fn, call, inlined} of calls.slice(0, MAX_CALLS)) {
        const {name, module, kernel} = model.functions[fn], item = make('li', ''), place = model.place(call);
        item.title = name;
        const where = place ? place.slice(place.lastIndexOf('/') + 1) : kernel ? 'kernel' : model.moduleName(module);
        item.append(make('span', (inlined ? '↳ ' : '') + name), make('small', where));
        items.append(item);
      }
      if (calls.length > MAX_CALLS) items.append(make('li', `${calls.length - MAX_CALLS} more calls`, {className: 'quiet'}));
      if (calls.length === 0) host.append(make('p', 'No stack is known.', {className: 'quiet'}));
      host.append(items);
      return host;
    };
    element('details').replaceChildren(make('h2', title), ...lines.filter(Boolean).map((line) => make('p', line)), ...stacks.map(list));
    element('details').scrollTop = 0;
    this.details = {title, lines: lines.filter(Boolean), stacks: stacks.map(({name, stack}) => ({name,
      calls: model.callsOf(stack).map(({fn}) => model.functions[fn].name)}))};
  }

  threadName(thread) {
    const {names, threads} = this.model;
    return `${names[threads.name[thread]] || '(no name)'} (${threads.tid[thread]})`;
  }

  // What is known of a wait: system call, holder, waker.
  describeWait(wait) {
    if (!wait) return {lines: ['What it waited for is not known.'], stacks: []};
    const {model} = this, hasHolder = wait.holder >= 0;
    const lines = [
      wait.syscall !== undefined && `system call ${wait.syscall} (${wait.arguments.join(', ')})`,
      hasHolder && `The lock was held by ${this.threadName(wait.holder)} when the waiting thread was examined.`,
      wait.waker > 0 && `It was woken by ${model.names[wait.waker]}.`,
    ];
    if (!hasHolder) return {lines, stacks: []};
    const holder = {name: `Holder: ${this.threadName(wait.holder)}`, stack: wait.holder_stack, note: `stack: ${wait.holder_quality}`};
    return {lines, stacks: [holder]};
  }

  describeRow(row) {
    return row.cause === undefined ? this.describePart(row) : this.describeCause(row);
  }

  describeCause(row) {
    const {model} = this, {kind, share, confidence, remedy, wait, stack, quality, thread, thread_stack, thread_quality, thread_zone} = row;
    if (row.cause < 0) return {title: row.text, lines: [`${changeText(row.value)} of the overrun`], stacks: []};
    const known = wait < 0 ? {lines: [], stacks: []} : this.describeWait(model.slow.waits[wait]);
    const stacks = stack < 0 ? [] : [{name: 'Where the frame’s thread was', stack, note: `stack: ${quality}`}];
    if (thread >= 0 && thread_stack >= 0) {
      const zone = thread_zone ? `in ${thread_zone}; ` : '';
      stacks.push({name: `Where ${this.threadName(thread)} was`, stack: thread_stack, note: `${zone}stack: ${thread_quality}`});
    }
    return {title: row.text, lines: [`${kind}, ${confidence}: ${changeText(share)} of the overrun`, remedy && `More would be known with: ${remedy}`,
      ...known.lines], stacks};
  }

  describePart(row) {
    const {model} = this, part = model.slow.parts[row.part];
    if (!part) return {title: row.text, lines: [`${exactText(row.ns)} here, ${exactText(row.usual)} usually`], stacks: []};
    const isZone = part.kind === 'zone', of = `${part.samples_of_stack} of ${count(part.samples, 'sample')} have this stack`;
    const where = {name: isZone ? 'Where it ran' : 'Where it was', stack: part.stack,
      note: isZone ? of : `of the longest wait; stack: ${part.quality}`};
    const wait = part.kind === 'wait' ? this.describeWait(model.slow.waits[part.wait]) : {lines: [], stacks: []};
    return {title: part.text, lines: [`${exactText(part.ns)} here, ${exactText(part.usual)} usually`, ...wait.lines],
      stacks: [where, ...wait.stacks]};
  }

  describeSpan(span, thread) {
    const {model} = this, {kind} = model.slow.span_parts[span.part] || {kind: 'unknown'};
    const time = `${exactText(span.to - span.from)}, from ${exactText(span.from)} on, of ${this.threadName(thread)}`;
    if (kind === 'unknown') return {title: 'Not known', lines: [time, 'No record tells what the thread did.'], stacks: []};
    if (kind === 'zone') {
      const name = model.slow.span_parts[span.part].name, stacks = this.hottest(thread, span);
      return {title: name ? `ran in ${name}` : 'ran in no zone', lines: [time], stacks};
    }
    const wait = this.describeWait(model.waitOf(span.sample)), why = model.waits.text[model.wait_of[span.sample] - 1];
    const others = why === 'preempted' ? 'preempted: others ran, or a CPU quota was used up' : why;
    const title = kind === 'preempted' ? others : why ? `waited: ${why}` : 'waited, for what is not known';
    const where = {name: 'Where it was', stack: model.stack[span.sample], note: `stack: ${model.qualities[model.quality[span.sample]]}`};
    return {title, lines: [time, ...(kind === 'wait' ? wait.lines : [])], stacks: [where, ...wait.stacks]};
  }

  // The stack that most clock samples of a time have.
  hottest(thread, {from, to}) {
    const {model} = this, counts = new Map();
    let all = 0;
    for (const i of this.tracks.lanes[thread].samples) {
      const event = model.events[model.event[i]];
      if (event.off_cpu || event.unit !== 'nanoseconds' || model.time[i] < from || model.time[i] >= to) continue;
      counts.set(model.stack[i], (counts.get(model.stack[i]) || 0) + model.count[i]);
      all += model.count[i];
    }
    const [stack, most] = [...counts].sort((a, b) => b[1] - a[1])[0] || [-1, 0];
    return [{name: 'Where it ran', stack, note: all > 0 ? `${most} of ${count(all, 'sample')} have this stack` : 'no sample in this time'}];
  }

  describeSample(i) {
    const {model} = this, event = model.events[model.event[i]];
    const what = `at ${exactText(model.time[i])}, for ${amount(model.weight[i], event.unit)}, of ${this.threadName(model.thread[i])}`;
    return {title: `${event.name}: a sample`, lines: [what],
      stacks: [{name: 'Stack', stack: model.stack[i], note: `stack: ${model.qualities[model.quality[i]]}`}]};
  }

  describeZone(i) {
    const {names, zones} = this.model, late = zones.cause[i] && `late: ${names[zones.cause[i]]}`;
    const what = `${zones.is_frame[i] ? 'frame' : 'zone'}, ${exactText(zones.length[i])}, from ${exactText(zones.from[i])} on`;
    return {title: names[zones.name[i]], lines: [what, late], stacks: []};
  }

  hoverTrack(what) {
    const text = what?.span ? this.describeSpan(what.span, what.row.thread)
        : what?.sample !== undefined ? this.describeSample(what.sample) : null;
    if (!text) return super.hoverTrack(what);
    const {model} = this, stack = text.stacks.length > 0 ? text.stacks[0].stack : -1;
    const calls = model.callsOf(stack).slice(0, 8).map(({fn}) => model.functions[fn].name);
    return this.showTip(what.event, text.title, [...text.lines, ...calls.map((name, i) => `${i === 0 ? '' : '< '}${name}`)]);
  }
}

// As interfaceOf, and what only this view has.
function slowInterfaceOf(page) {
  const {model, tracks} = page, {slow} = model, rowOf = (thread) => tracks.rows.find((row) => row.thread === thread);
  const boxOf = (thread, from, to, top, height) => {
    const box = rowOf(thread).canvas.getBoundingClientRect();
    return {x: box.x + tracks.x(from), y: box.y + top, width: (to - from) * tracks.scale, height};
  };
  return {
    ...interfaceOf(page),
    slow: () => ({...slow, rows: model.rows, references: slow.references.length, spans: undefined,
      table: [...element('slow').querySelectorAll('tr')].map((tr) => [...tr.children].map((td) => td.textContent))}),
    spans: (thread) => model.spans[thread].map(({from, to, part, sample}) => ({
      from, to, sample, ...(slow.span_parts[part] || {kind: 'unknown', name: '', part: -1})})),
    // The clock's samples in the frame.
    ticks: (thread) => tracks.lanes[thread].samples.filter((i) => model.time[i] >= 0 && model.events[model.event[i]].unit === 'nanoseconds' &&
      !model.events[model.event[i]].off_cpu),
    arrows: () => tracks.arrows,
    details: () => page.details,
    comparison: () => {
      const {graph} = page, {value, usual, verdict} = graph.comparison || {};
      const of = (node) => ({name: graph.label(node), here: value[node], usual: usual[node], verdict: verdict[node]});
      return value ? [...value.keys()].map(of) : null;
    },
    spanBox: (thread, i) => boxOf(thread, model.spans[thread][i].from, model.spans[thread][i].to, tracks.stripTop(thread), STRIP),
    tickBox: (i) => boxOf(model.thread[i], model.time[i], model.time[i], tracks.stripTop(model.thread[i]) + STRIP + 1, TICKS),
    showBy: (by) => page.showBy(by),
    showUsual: (isUsual) => page.set({isUsual}),
  };
}
