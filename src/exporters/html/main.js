// Starts the page. What a test or a console asks it: every number is what is shown, and every action what a click does.
function interfaceOf(page) {
  const {model} = page, shown = (node) => ({
    name: page.graph.label(node), total: page.tree.total[node], self: page.tree.self[node],
    samples: page.tree.samples[node], selfSamples: page.tree.selfSamples[node], lines: page.tree.lines(node),
    part: page.tree.part[node], guess: page.tree.guess[node], stitched: page.tree.stitched[node],
  });
  const inWindow = (box, rect) => ({x: box.x + rect.left, y: box.y + rect.top, width: box.width, height: box.height});
  // Names from the root on, as boxes show them.
  const find = (names) => names.reduce((node, name) => [...page.tree.children(node)].find((child) => page.graph.label(child) === name) ?? NaN, 0);
  return {
    totals: () => model.events.map((event, i) => ({event: event.name, ...model.total(i)})),
    shown: () => ({
      event: model.events[page.state.event]?.name, threads: [...page.state.threads], range: page.state.range,
      weight: page.tree.total[0], samples: page.tree.samples[0], leftOut: page.sum.leftOut, found: page.found, boxes: page.tree.fn.length,
    }),
    rows: () => page.shownRows.map(({fn, self, total, selfSamples, samples}) => ({...model.functions[fn],
      module: model.moduleName(model.functions[fn].module), self, total, selfSamples, samples})),
    zoomed: () => shown(page.graph.zoom),
    node: (names) => shown(find(names)),
    accounting: () => [...element('accounting').children].map((span) => span.textContent),
    boxOf: (names) => inWindow(page.graph.box(find(names)), page.graph.canvas.getBoundingClientRect()),
    laneOf: (thread) => {
      const {label, canvas} = page.tracks.rows.find((row) => row.thread === thread);
      return {label: label.getBoundingClientRect().toJSON(), lane: canvas.getBoundingClientRect().toJSON(),
        from: model.from, to: model.to};
    },
    selectEvent: (name) => page.set({event: model.events.findIndex((event) => event.name === name)}),
    selectThreads: (threads) => page.set({threads: new Set(threads)}),
    selectTime: (from, to) => page.set({range: from === undefined ? null : [from, to]}),
    order: (inTime) => page.set({inTime}),
    flip: (flipped) => page.flip(flipped),
    search: (text) => page.search(text),
    zoomTo: (names) => page.zoom(find(names)),
  };
}

function open(raw) {
  if (raw.difference) return differenceInterfaceOf(new DifferencePage(new DifferenceModel(raw.difference)));
  return raw.slow ? slowInterfaceOf(new SlowPage(new SlowModel(raw))) : interfaceOf(new Page(new Model(raw)));
}

window.perfkit = {ready: readData().then((raw) => Object.assign(window.perfkit, open(raw)))};
window.perfkit.ready.catch((error) => {
  document.body.replaceChildren(make('p', `This profile cannot be shown: ${error.message}`, {className: 'failed'}));
});
