// A difference of two profiles (src/exporters/html_difference.cc): functions, and the call tree of both together. A value is
// a weight as the profile has it; of(side) makes it a share of the total, or a weight per iteration.
const SIDES = ['before', 'after'];

class DifferenceModel {
  constructor(raw) {
    Object.assign(this, raw);
    this.events = [{name: raw.event, unit: raw.unit}];
    const {name, module, kernel} = raw.functions, columns = raw.functions;
    this.functions = name.map((_, i) => ({name: name[i], module: module[i], kernel: kernel[i] === 1,
      self: this.changeOf(columns.self, columns.self_change, i), total: this.changeOf(columns.total, columns.total_change, i)}));
    this.readNodes();
  }

  // The factor from weights to values.
  of(side) {
    const {weight, whole} = this[side];
    return weight > 0 ? whole / weight : 0;
  }

  // One change: values, samples, the bounds of the interval, and the verdict.
  changeOf(values, bounds, i) {
    const low = bounds.low[i] * this.step, high = bounds.high[i] * this.step;
    const before = values.before[i] * this.of('before'), after = values.after[i] * this.of('after');
    return {before, after, change: after - before, low, high, verdict: low > 0 ? 1 : high < 0 ? -1 : 0,
      beforeWeight: values.before[i], afterWeight: values.after[i],
      beforeSamples: values.before_samples[i], afterSamples: values.after_samples[i]};
  }

  // A tree for each side; their nodes are the same, their boxes are not.
  readNodes() {
    const {up, function: fn, self, total_change: bounds} = this.nodes;
    const [before, after] = SIDES.map((side) => {
      const tree = new Tree(this);
      for (let i = 1; i < up.length; ++i) tree.add(i - up[i], {fn: fn[i], call: -1, inlined: false});
      self[side].forEach((weight, i) => tree.addSelf(i, weight, self[`${side}_samples`][i], 0));
      return tree.finish(true);
    });
    const columns = {before: before.total, after: after.total, before_samples: before.samples, after_samples: after.samples};
    // A difference without samples has no nodes; its tree has a root.
    this.changes = before.fn.map((_, i) => this.changeOf(columns, up.length > 0 ? bounds : {low: [0], high: [0]}, i));
    this.trees = {before, after};
    this.comparison = {value: this.changes.map(({after: value}) => value), usual: this.changes.map(({before: value}) => value),
      verdict: this.changes.map(({verdict}) => verdict)};
  }

  moduleName(module) {
    return module < 0 ? 'unknown' : this.modules[module];
  }

  // Source lines differ from build to build: they are not compared.
  place() {
    return '';
  }

  // The weight and the samples of all stacks that hold a function which `hit` has.
  matched(tree, hit) {
    const found = {weight: 0, samples: 0}, work = [0];
    while (work.length > 0) {
      const node = work.pop();
      if (node > 0 && hit[tree.fn[node]]) (found.weight += tree.total[node], found.samples += tree.samples[node]);
      else for (const child of tree.children(node)) work.push(child);
    }
    return found;
  }

  // Without weights, the shares of a side are not known.
  isKnown(side) {
    return this.per_iteration || this[side].weight > 0;
  }

  get isCompared() {
    return SIDES.every((side) => this.isKnown(side));
  }

  // A value as text: a share in percent, or a weight per iteration.
  valueText(value, side) {
    if (!this.isKnown(side)) return '–';
    return this.per_iteration ? amount(value, this.unit) : percent(value, 1);
  }

  // A change as text, without its unit: percentage points have none that is short.
  changeText(change) {
    if (!this.isCompared) return '–';
    if (change === 0) return '0';
    const sign = change > 0 ? '+' : '−', size = Math.abs(change);
    if (this.per_iteration) return sign + amount(size, this.unit);
    const points = size * 100;
    if (points < 0.0001) return `${sign}0.0000`;
    return sign + Number(points < 0.1 ? points.toPrecision(1) : points.toFixed(points < 10 ? 2 : 1));
  }

  get changeUnit() {
    return this.per_iteration ? '' : ' points';
  }
}
