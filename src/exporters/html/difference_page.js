// The view of a difference of two profiles: the flame graph of the one after (or before), coloured by what grew and what
// shrank, and a table of functions. What can't be told from noise is grey, and says so.
const VERDICTS = {'1': 'grew', '-1': 'shrank', '0': '~ can’t be told from noise'};

// A name in two: of the first part only the beginning is shown if there is no room. The end tells more than the middle.
function halves(name) {
  const cut = Math.max(0, name.length - 14), isInside = /[\udc00-\udfff]/.test(name[cut]);
  return isInside ? [name.slice(0, cut - 1), name.slice(cut - 1)] : [name.slice(0, cut), name.slice(cut)];
}

class DifferencePage extends Page {
  makeViews() {
    this.graph = new ComparisonGraph(this.model, this.palette, element('graph'));
    this.graph.comparison = this.model.comparison;
    this.tracks = {draw() {}};  // no time is compared
    document.body.classList.add('difference');
    for (const id of ['tracks', 'events', 'filters']) element(id).hidden = true;
    element('side').hidden = false;
    Object.assign(this.state, {isBefore: this.model.after.weight === 0, of: 'self', sortBy: 'change'});
  }

  writeHeader() {
    const {model} = this, {before, after, event} = model;
    const name = model.program || 'difference', [root] = model.changes;
    const side = ({weight, samples}) => `${amount(weight, model.unit)} in ${count(samples, 'sample')}`;
    document.title = `${name}: difference · perfkit`;
    element('program').textContent = model.per_iteration
        ? `${name}: ${model.valueText(root.before, 'before')} → ${model.valueText(root.after, 'after')} of ${event} per iteration`
        : `${name}: shares of ${event}`;
    const isTold = root.verdict !== 0 && root.before > 0;
    const grown = model.per_iteration ? [isTold ? `${root.change > 0 ? '+' : '−'}${percent(Math.abs(root.change), root.before)}`
                                                : VERDICTS[0]] : [];
    element('span').textContent = [...grown, `before ${side(before)}`, `after ${side(after)}`].join(' · ');
    this.switch('side', [['After', '', () => this.set({isBefore: false})], ['Before', '', () => this.set({isBefore: true})]]);
    this.switch('order', [['By self', '', () => this.set({of: 'self'})], ['By total', '', () => this.set({of: 'total'})]]);
    this.switch('direction', [['Icicle', '', () => this.flip(false)], ['Flame', '', () => this.flip(true)]]);
    this.check('direction', 0);
    const heads = [['change', model.per_iteration ? 'Change' : 'Points'], ['interval', `${percent(model.confidence, 1)} interval`],
      ['before', 'Before'], ['after', 'After'], ['name', 'Function']];
    document.querySelector('thead tr').replaceChildren(...heads.map(([by, text]) => {
      const th = make('th', '');
      if (by === 'interval') th.textContent = text;
      else (th.dataset.by = by, th.append(make('button', text)));
      return th;
    }));
  }

  compute() {
    const {model, state} = this;
    this.unit = model.unit;
    this.tree = this.shown = model.trees[state.isBefore ? 'before' : 'after'];
    // What never ran itself, before or after, only called others: it has no self to compare.
    this.rows = model.functions.map((fn, i) => ({fn: i, ...fn[state.of]})).filter((row) => row.beforeSamples + row.afterSamples > 0 ||
      row.before + row.after > 0);
  }

  showAll() {
    this.check('side', this.state.isBefore ? 1 : 0);
    this.check('order', this.state.of === 'self' ? 0 : 1);
    this.showAccounting();
    this.showSearch();
    this.showPath();
    element('legend').replaceChildren(...this.legend());
  }

  showAccounting() {
    const {model} = this, numberOf = (verdict) => this.rows.filter((row) => row.verdict === verdict).length;
    const wrong = Number((100 * (1 - model.confidence)).toPrecision(2)), of = this.state.of;
    const chips = [
      make('span', `${count(numberOf(1), 'function')} grew and ${numberOf(-1)} shrank, by ${of}`),
      make('span', `${count(numberOf(0), 'function')}: ${VERDICTS[0]}`),
      make('span', `if the samples are independent; of 100 functions that did not change, about ${wrong} look as if they did`,
          {className: 'note'}),
    ];
    if (model.before.samples === 0 || model.after.samples === 0) {
      const empty = SIDES.filter((side) => model[side].samples === 0).join(' and ');
      chips.unshift(make('span', `No samples ${empty}`, {className: 'missing'}));
    }
    const button = make('button', 'how both were profiled', {onclick: () => this.toggleDetails()});
    chips.push(make('span', '', {className: 'note'}));
    chips[chips.length - 1].append(button);
    element('accounting').replaceChildren(...chips);
  }

  // What each profile lacks. A loss in one of them may look like a change.
  toggleDetails() {
    const {model} = this, details = element('details');
    details.hidden = !details.hidden;
    details.replaceChildren(...SIDES.flatMap((side) => [make('h3', side === 'before' ? 'Before' : 'After'),
      make('pre', model[side].accounting.replace(/^# ?/gm, '').trim() || 'not known')]));
    this.graph.resize();
  }

  showSearch() {
    super.showSearch();
    const {model, state} = this;
    if (!state.hit) return;
    const shares = SIDES.map((side) => model[side].weight > 0
      ? percent(model.matched(model.trees[side], state.hit).weight, model.trees[side].total[0]) : '–');
    element('matched').replaceChildren(make('b', shares.join(' → ')), ' matched');
  }

  // What is noise comes last, however large.
  sortRows() {
    const {sortBy} = this.state, {functions} = this.model, name = (row) => functions[row.fn].name;
    const byName = (a, b) => (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : a.fn - b.fn);
    const byChange = (a, b) => (a.verdict === 0) - (b.verdict === 0) || Math.abs(b.change) - Math.abs(a.change);
    const orders = {name: byName, change: byChange, before: (a, b) => b.before - a.before, after: (a, b) => b.after - a.after};
    this.rows.sort((a, b) => orders[sortBy](a, b) || byName(a, b));
    for (const head of document.querySelectorAll('th')) {
      if (head.dataset.by === sortBy) head.setAttribute('aria-sort', sortBy === 'name' ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    }
  }

  showTable() {
    const {state, model} = this, {functions} = model, most = 400;
    this.sortRows();
    const shown = this.rows.filter((row) => !state.hit || state.hit[row.fn]);
    const widest = model.isCompared ? this.rows.reduce((most, row) => Math.max(most, Math.abs(row.change)), 0) : 0;
    element('functions').querySelector('tbody').replaceChildren(...shown.slice(0, most).map((row) => {
      const {name, module, kernel} = functions[row.fn], tr = make('tr', '', {className: row.verdict === 0 ? 'noise' : ''});
      const change = make('td', (row.verdict === 0 ? '~ ' : '') + model.changeText(row.change));
      change.style.setProperty('--share', widest > 0 ? (Math.abs(row.change) / widest) * 100 : 0);
      change.style.setProperty('--bar', verdictColor(row.verdict));
      const last = make('td', ''), ends = make('div', '', {className: 'ends'});
      ends.append(...halves(name).map((half) => make('span', half)));
      last.append(ends);
      Object.assign(last, {title: `${name}\n${kernel ? 'kernel' : model.moduleName(module)}`});
      const interval = make('td', `${model.changeText(row.low)} … ${model.changeText(row.high)}`);
      tr.append(change, interval, make('td', model.valueText(row.before, 'before')), make('td', model.valueText(row.after, 'after')), last);
      tr.addEventListener('click', () => this.search(`^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`));
      return tr;
    }));
    element('more').textContent = shown.length > most ? `${count(shown.length - most, 'more function')}: search for them.`
        : shown.length === 0 ? 'No function.' : '';
    this.shownRows = shown;
  }

  legend() {
    const {isBefore} = this.state, {model} = this;
    return [legendEntry(verdictColor(1), 'grew'), legendEntry(verdictColor(-1), 'shrank'),
      legendEntry(verdictColor(0), `${VERDICTS[0]} at ${percent(model.confidence, 1)} confidence`),
      make('span', `boxes are as wide as what they took ${isBefore ? 'before' : 'after'}; stronger colours are larger changes of a call’s total`)];
  }

  describe(node) {
    const {model, tree} = this, change = model.changes[node], text = (value, side) => model.valueText(value, side);
    const {module, kernel} = node === 0 ? {} : model.functions[tree.fn[node]];
    const self = (side) => text(model.trees[side].self[node] * model.of(side), side);
    return [
      node > 0 && (kernel ? 'kernel' : model.moduleName(module)),
      ...SIDES.map((side) => `${side} ${text(change[side], side)} in ${count(change[`${side}Samples`], 'sample')}, of it self ${self(side)}`),
      model.isCompared && `change ${model.changeText(change.change)}${model.changeUnit}, with ${percent(model.confidence, 1)} confidence between ` +
          `${model.changeText(change.low)} and ${model.changeText(change.high)}`,
      node > 0 && change.beforeSamples === 0 ? 'only after' : node > 0 && change.afterSamples === 0 && 'only before',
      VERDICTS[change.verdict],
    ];
  }
}

// As interfaceOf, and what only this view has.
function differenceInterfaceOf(page) {
  const {model} = page, shared = interfaceOf(page);
  return {
    ...shared,
    totals: () => SIDES.map((side) => ({event: model.event, ...model[side], accounting: undefined})),
    rows: () => page.shownRows.map(({fn, ...change}) => ({index: fn, name: model.functions[fn].name, kernel: model.functions[fn].kernel,
      module: model.functions[fn].module < 0 ? '' : model.moduleName(model.functions[fn].module), ...change})),
    // All nodes as paths of names, with their changes.
    nodes: () => model.changes.map((change, node) => ({...change, verdict: change.verdict,
      path: page.tree.path(node).slice(1).map((at) => page.graph.label(at))})),
    shown: () => ({found: page.found, isBefore: page.state.isBefore, of: page.state.of}),
    colorOf: (names) => page.graph.colorOf(names.reduce((node, name) =>
        [...page.tree.children(node)].find((child) => page.graph.label(child) === name) ?? NaN, 0)),
    noiseColor: () => cssColor('noise'),
    showBefore: (isBefore) => page.set({isBefore}),
    showOf: (of) => page.set({of}),
    table: () => [...element('functions').querySelectorAll('tbody tr')].map((tr) => [...tr.children].map((td) => td.textContent)),
  };
}
