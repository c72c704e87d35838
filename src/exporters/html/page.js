// What is shown, and what a person does with it. `window.perfkit` says the first and does the second, for tests and for
// the console.
function element(id) {
  return document.getElementById(id);
}

function make(tag, text, properties = {}) {
  return Object.assign(document.createElement(tag), {textContent: text, ...properties});
}

class Page {
  constructor(model) {
    this.model = model;
    this.state = {event: 0, threads: new Set(), range: null, search: '', hit: null, inTime: false, sortBy: 'self'};
    this.tip = element('tip');
    this.palette = new Palette(model);
    this.makeViews({
      thread: (thread, more) => this.toggleThread(thread, more),
      range: (range) => this.set({range}),
      hover: (what) => this.hoverTrack(what),
    });
    this.writeHeader();
    this.listen();
    this.set({});
  }

  makeViews(select) {
    this.graph = new Graph(this.model, this.palette, element('graph'));
    this.tracks = new Tracks(this.model, element('tracks'), select);
  }

  writeHeader() {
    const {model} = this;
    document.title = `${model.program || 'profile'} · perfkit`;
    element('program').textContent = model.program || 'profile';
    element('span').textContent = `${duration(model.span)} · ${count(model.threads.tid.length, 'thread')}`;
    element('threads').textContent = 'Drag to select a time';
    this.switch('events', model.events.map((event, i) => [event.name, amount(model.total(i).weight, event.unit), () => this.set({event: i})]));
    this.switch('order', [['Heaviest first', '', () => this.set({inTime: false})], ['In time', '', () => this.set({inTime: true})]]);
    this.switch('direction', [['Icicle', '', () => this.flip(false)], ['Flame', '', () => this.flip(true)]]);
    this.check('direction', 0);
  }

  switch(id, choices) {
    element(id).replaceChildren(...choices.map(([name, detail, choose]) => {
      const button = make('button', name);
      button.setAttribute('role', 'radio');
      if (detail) button.append(make('small', detail));
      button.addEventListener('click', choose);
      return button;
    }));
  }

  check(id, chosen) {
    [...element(id).children].forEach((button, i) => button.setAttribute('aria-checked', i === chosen));
  }

  set(change) {
    const functions = this.tree ? this.tree.path(this.graph.zoom).slice(1).map((node) => this.tree.fn[node]) : [];
    Object.assign(this.state, change);
    this.tip.hidden = true;
    this.compute();
    this.graph.show(this.tree, this.tree.find(functions));
    this.showAll();
  }

  // The sums by stack that the tree is made of. `this.sum` are those of the chosen samples.
  sumOfTree() {
    return this.sum;
  }

  mergedTree() {
    return Tree.merged(this.model, this.shown);
  }

  compute() {
    const {model, state} = this;
    this.unit = model.events[state.event]?.unit;
    this.sum = model.sumStacks(state);
    this.shown = this.sumOfTree();
    const merged = this.mergedTree();
    this.tree = state.inTime ? Tree.inTime(model, state) : merged;
    this.rows = merged.table();
  }

  showAll() {
    const {model, state} = this;
    this.check('events', state.event);
    this.check('order', state.inTime ? 1 : 0);
    this.tracks.show(state.event, state.threads, state.range);
    this.showAccounting();
    this.showSearch();
    this.showPath();
    this.showFilters();
    element('legend').replaceChildren(...this.legend());
    element('span').textContent = `${duration(model.span)} · ${count(model.threads.tid.length, 'thread')} · ` +
        `${count(this.tree.samples[0], 'sample')}`;
  }

  showAccounting() {
    const {model, state} = this, facts = model.events.length > 0 ? eventFacts(model, state.event, this.shown, this.shown.leftOut) : [];
    const spans = [...facts, ...profileFacts(model)].map(([text, missing]) => make('span', text, {className: missing ? 'missing' : ''}));
    if (model.size === 0) spans.unshift(make('span', 'No samples in this profile', {className: 'missing'}));
    spans.push(...model.notes.map((note) => make('span', note, {className: 'note'})));
    element('accounting').replaceChildren(...spans);
  }

  showSearch() {
    const {model, state, graph} = this, input = element('search');
    let pattern = null, wrong = '';
    try {
      pattern = state.search ? new RegExp(state.search, 'i') : null;
    } catch (error) {
      wrong = 'not a regular expression';
    }
    input.setAttribute('aria-invalid', wrong !== '');
    state.hit = pattern && Uint8Array.from(model.functions, ({name}) => (pattern.test(name) ? 1 : 0));
    this.found = state.hit && model.matched(this.shown, state.hit);
    const share = this.found && make('b', percent(this.found.weight, this.tree.total[0]));
    element('matched').replaceChildren(...(share ? [share, ' matched'] : [wrong]));
    graph.hit = state.hit;
    graph.draw();
    this.showTable();
  }

  showTable() {
    const {state, model, tree} = this, {functions} = model, all = tree.total[0], most = 400;
    const name = (row) => functions[row.fn].name;
    const {sortBy} = state;
    this.rows.sort((a, b) => (sortBy === 'name' ? 0 : b[sortBy] - a[sortBy]) || b.total - a.total || (name(a) < name(b) ? -1 : 1));
    if (sortBy === 'name') this.rows.sort((a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0));
    for (const head of document.querySelectorAll('th')) {
      if (head.dataset.by === sortBy) head.setAttribute('aria-sort', sortBy === 'name' ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    }
    const shown = this.rows.filter((row) => !state.hit || state.hit[row.fn]);
    const cell = (weight) => {
      const td = make('td', amount(weight, this.unit));
      td.style.setProperty('--share', all > 0 ? (weight / all) * 100 : 0);
      td.append(make('small', percent(weight, all)));
      return td;
    };
    element('functions').querySelector('tbody').replaceChildren(...shown.slice(0, most).map((row) => {
      const {module, kernel} = functions[row.fn], tr = make('tr', ''), last = make('td', '', {title: name(row)});
      const dot = make('i', '', {title: kernel ? 'kernel' : model.moduleName(module)});
      dot.style.background = this.palette.ofModule(module, kernel);
      last.append(dot, name(row));
      tr.append(cell(row.self), cell(row.total), last);
      tr.addEventListener('click', () => this.search(`^${name(row).replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`));
      return tr;
    }));
    element('more').textContent = shown.length > most ? `${count(shown.length - most, 'more function')}: search for them.`
        : shown.length === 0 ? 'No function.' : '';
    this.shownRows = shown;
  }

  showPath() {
    const {tree, graph} = this;
    element('path').replaceChildren(...tree.path(graph.zoom).map((node) => {
      const item = make('li', ''), button = make('button', graph.label(node));
      button.addEventListener('click', () => this.zoom(node));
      item.append(button);
      return item;
    }));
  }

  showFilters() {
    const {state, model} = this, chips = [];
    const add = (text, change) => chips.push(make('button', `${text} ×`, {onclick: () => this.set(change), title: 'Show all again'}));
    if (state.threads.size > 0) {
      add([...state.threads].map((thread) => model.names[model.threads.name[thread]] || model.threads.tid[thread]).join(', '),
          {threads: new Set()});
    }
    if (state.range) add(`${duration(state.range[0])} … ${duration(state.range[1])}`, {range: null});
    element('filters').replaceChildren(...chips);
  }

  legend() {
    const {model} = this, seen = new Map();
    for (const row of [...this.rows].sort((a, b) => b.self - a.self)) {
      const {module, kernel} = model.functions[row.fn];
      const name = kernel ? 'kernel' : model.moduleName(module);
      if (!seen.has(name)) seen.set(name, this.palette.ofModule(module, kernel));
    }
    const entries = [...seen].slice(0, 12).map(([name, color]) => {
      const dot = make('i', '');
      dot.style.background = color;
      return [dot, name];
    });
    if (seen.size > 12) entries.push([`and ${count(seen.size - 12, 'module')} more`]);
    const mark = (className, name) => entries.push([make('i', '', {className}), name]);
    mark('inlined', 'inlined');
    mark('guess', 'guess by frame pointer');
    mark('stitched', 'from an earlier stack');
    mark('part', 'incomplete stacks');
    return entries.map((parts) => {
      const span = make('span', '');
      span.append(...parts);
      return span;
    });
  }

  zoom(node) {
    this.graph.zoom = node;
    this.graph.draw();
    this.graph.scrollTo(node);
    this.showPath();
  }

  flip(flipped) {
    this.graph.flipped = flipped;
    this.check('direction', flipped ? 1 : 0);
    this.graph.pane.scrollTop = 0;
    this.graph.resize();
  }

  search(text) {
    element('search').value = this.state.search = text;
    this.showSearch();
  }

  toggleThread(thread, more) {
    const threads = new Set(more ? this.state.threads : []);
    if (this.state.threads.has(thread)) threads.delete(thread);
    else threads.add(thread);
    this.set({threads});
  }

  listen() {
    const input = element('search'), {graph} = this, canvas = graph.canvas;
    input.addEventListener('input', () => this.search(input.value));
    for (const head of document.querySelectorAll('th')) {
      head.addEventListener('click', () => (this.state.sortBy = head.dataset.by, this.showTable()));
    }
    const nodeAt = (event) => {
      const box = graph.pane.getBoundingClientRect();
      return graph.at(event.clientX - box.left - graph.pane.clientLeft, event.clientY - box.top - graph.pane.clientTop);
    };
    canvas.addEventListener('click', (event) => {
      const node = nodeAt(event);
      if (node >= 0) this.zoom(node);
    });
    canvas.addEventListener('pointermove', (event) => this.hoverNode(nodeAt(event), event));
    canvas.addEventListener('pointerleave', () => this.hoverNode(-1));
    document.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => graph.resize()).observe(graph.pane);
    addEventListener('resize', () => this.tracks.draw());
    dark.addEventListener('change', () => this.set({}));
  }

  key(event) {
    const input = element('search'), typing = event.target === input;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === '/' && !typing) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === 'Escape') {
      this.escape();
    } else if (event.key.startsWith('Arrow') && !typing) {
      const node = this.graph.neighbour(event.key);
      event.preventDefault();
      if (node >= 0) this.zoom(node);
    }
  }

  // Takes back the last thing first: the search, the zoom, the time, the threads.
  escape() {
    const {state} = this;
    element('search').blur();
    if (state.search) this.search('');
    else if (this.graph.zoom !== 0) this.zoom(0);
    else if (state.range) this.set({range: null});
    else if (state.threads.size > 0) this.set({threads: new Set()});
  }

  showTip(event, title, lines) {
    this.tip.replaceChildren(make('b', title), ...lines.filter(Boolean).map((line) => make('div', line)));
    this.tip.hidden = false;
    const {width, height} = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    this.tip.style.top = `${event.clientY + height + 24 > innerHeight ? event.clientY - height - 12 : event.clientY + 16}px`;
  }

  hoverNode(node, event) {
    const {graph, tree, model} = this;
    if (node !== graph.hovered) {
      graph.hovered = node;
      graph.draw();
    }
    if (node < 0) {
      this.tip.hidden = true;
      return;
    }
    this.showTip(event, graph.label(node), this.describe(node));
  }

  describe(node) {
    const {tree, model} = this, unit = (weight) => amount(weight, this.unit);
    const {module, kernel} = node === 0 ? {} : model.functions[tree.fn[node]];
    const lines = node === 0 ? [] : tree.lines(node), all = tree.total[0];
    const share = (column, text) => tree[column][node] > 0 && `${percent(tree[column][node], tree.total[node])} ${text}`;
    return [
      node > 0 && (module < 0 ? 'unknown module' : model.names[model.modules.path[module]]) + (kernel ? ' · kernel' : '') +
          (tree.inlined[node] ? ' · inlined' : ''),
      lines.length > 0 && lines.slice(0, 3).join(' · ') + (lines.length > 3 ? ` · ${lines.length - 3} more lines` : ''),
      `total ${unit(tree.total[node])} (${percent(tree.total[node], all)}) in ${count(tree.samples[node], 'sample')}`,
      `self ${unit(tree.self[node])} (${percent(tree.self[node], all)}) in ${count(tree.selfSamples[node], 'sample')}`,
      this.graph.zoom > 0 && `${percent(tree.total[node], tree.total[this.graph.zoom])} of what is zoomed into`,
      share('part', 'from incomplete stacks'), share('guess', 'guessed by frame pointer'),
      share('stitched', 'taken from an earlier stack'),
    ];
  }

  hoverTrack(what) {
    if (!what) {
      this.tip.hidden = true;
      return;
    }
    const {model} = this, {zones} = model;
    if (what.zone !== undefined) {
      this.showTip(what.event, model.names[zones.name[what.zone]], [
        `${zones.is_frame[what.zone] ? 'frame' : 'zone'} · ${duration(zones.length[what.zone])} at ${duration(zones.from[what.zone])}`,
        zones.cause[what.zone] && `late: ${model.names[zones.cause[what.zone]]}`]);
    } else if (what.wait !== undefined) {
      const why = model.waits.text[model.wait_of[what.wait] - 1];
      this.showTip(what.event, `off the CPU for ${duration(model.weight[what.wait])}`, [why, `at ${duration(model.time[what.wait])}`,
        `stack: ${model.qualities[model.quality[what.wait]]}`]);
    } else if (what.point >= 0) {
      const counter = model.counters[what.row.counter], value = counter.values[what.point];
      this.showTip(what.event, model.names[counter.name], [value === null ? 'no number' : amount(value, counter.unit), `at ${duration(what.time)}`]);
    } else {
      this.showTip(what.event, duration(what.time), []);
    }
  }
}
