// The tree of calls: columns by node, callers before callees, node 0 the root.
class Tree {
  constructor(model) {
    this.model = model;
    this.fn = [-1];
    this.parent = [-1];
    this.depth = [0];
    this.call = [-1];
    this.total = [0];
    this.self = [0];
    this.samples = [0];
    this.selfSamples = [0];
    this.part = [0];  // of `total`, what samples without their whole stack say
    this.guess = [0];
    this.stitched = [0];
    this.inlined = [0];
    this.begin = [];  // children in `kids`
    this.x = [];
  }

  add(parent, frame) {
    const node = this.fn.length;
    this.fn.push(frame.fn);
    this.parent.push(parent);
    this.depth.push(this.depth[parent] + 1);
    this.call.push(frame.call);
    for (const column of [this.total, this.self, this.samples, this.selfSamples, this.part, this.guess, this.stitched]) {
      column.push(0);
    }
    this.inlined.push(frame.inlined ? 1 : 0);
    return node;
  }

  addSelf(node, weight, samples, part) {
    this.self[node] += weight;
    this.selfSamples[node] += samples;
    this.total[node] += weight;
    this.samples[node] += samples;
    this.part[node] += part;
  }

  // One node for each function that the same callers called. `isUsed`: which stacks have nodes, also without weight.
  static merged(model, sum, isUsed = (i) => sum.samples[i] > 0 || sum.weight[i] > 0) {
    const tree = new Tree(model), none = model.parent.length, children = new Map();
    const child = (parent, frame) => {
      const key = parent * (model.noStack + 1) * 2 + frame.fn * 2 + (frame.inlined ? 1 : 0);
      let node = children.get(key);
      if (node === undefined) children.set(key, (node = tree.add(parent, frame)));
      return node;
    };
    // A stack counts if it, or one that it called, has samples.
    const total = Float64Array.from(sum.weight), used = Uint8Array.from(sum.samples, (_, i) => (isUsed(i) ? 1 : 0));
    for (let i = none - 1; i >= 0; --i) {
      const up = model.parent[i];
      if (up >= 0 && used[i]) (total[up] += total[i], used[up] = 1);
    }
    tree.nodeOf = new Int32Array(none).fill(-1);
    tree.stackTotal = total;
    for (let i = 0; i < none; ++i) {
      if (!used[i]) continue;
      let node = model.parent[i] < 0 ? 0 : tree.nodeOf[model.parent[i]];
      for (const frame of model.frames[model.stacks.location[i]]) {
        node = child(node, frame);
        if (model.stacks.flags[i] & 1) tree.guess[node] += total[i];
        if (model.stacks.flags[i] & 2) tree.stitched[node] += total[i];
      }
      tree.nodeOf[i] = node;
      tree.addSelf(node, sum.weight[i], sum.samples[i], sum.part[i]);
    }
    if (used[none]) {
      const node = tree.nodeOfNone = child(0, {fn: model.noStack, call: -1, inlined: false});
      tree.addSelf(node, sum.weight[none], sum.samples[none], sum.part[none]);
    }
    return tree.finish(true);
  }

  // From left to right as it happened, thread after thread: a node lasts as long as its function stays in the stack.
  static inTime(model, filter) {
    const tree = new Tree(model), order = [], weights = new Map();
    model.visit(filter, (i, weight) => (order.push(i), weights.set(i, weight)));
    order.sort((a, b) => model.thread[a] - model.thread[b] || a - b);
    let open = [0], thread = -1;
    for (const i of order) {
      if (model.thread[i] !== thread) (open = [0], (thread = model.thread[i]));
      const path = [], weight = weights.get(i);
      for (let at = model.stack[i]; at >= 0; at = model.parent[at]) path.push(at);
      let depth = 0;
      const step = (frame, flags) => {
        const same = open[depth + 1];
        if (same === undefined || tree.fn[same] !== frame.fn) {
          open.length = depth + 1;
          open.push(tree.add(open[depth], frame));
        }
        const node = open[++depth];
        if (flags & 1) tree.guess[node] += weight;
        if (flags & 2) tree.stitched[node] += weight;
      };
      for (let k = path.length - 1; k >= 0; --k) {
        for (const frame of model.frames[model.stacks.location[path[k]]]) step(frame, model.stacks.flags[path[k]]);
      }
      if (path.length === 0) step({fn: model.noStack, call: -1, inlined: false}, 0);
      open.length = depth + 1;
      tree.addSelf(open[depth], weight, model.count[i], model.quality[i] === WHOLE ? 0 : weight);
    }
    return tree.finish(false);
  }

  // Totals of callers, the order of children, and where each box begins.
  finish(heaviestFirst) {
    const size = this.fn.length, {functions} = this.model;
    for (let i = size - 1; i > 0; --i) {
      const up = this.parent[i];
      this.total[up] += this.total[i];
      this.samples[up] += this.samples[i];
      this.part[up] += this.part[i];
    }
    this.begin = new Int32Array(size + 2);
    for (let i = 1; i < size; ++i) ++this.begin[this.parent[i] + 2];
    for (let i = 2; i < size + 2; ++i) this.begin[i] += this.begin[i - 1];
    this.kids = new Int32Array(size);
    for (let i = 1; i < size; ++i) this.kids[this.begin[this.parent[i] + 1]++] = i;
    this.x = new Float64Array(size);
    this.deepest = 0;
    for (let i = 0; i < size; ++i) {
      const children = this.children(i);
      if (heaviestFirst && children.length > 1) {
        const name = (node) => functions[this.fn[node]].name;
        children.sort((a, b) => this.total[b] - this.total[a] || (name(a) < name(b) ? -1 : 1));
      }
      let x = this.x[i];
      for (const child of children) (this.x[child] = x, x += this.total[child]);
      this.deepest = Math.max(this.deepest, this.depth[i]);
    }
    return this;
  }

  // Other weights by stack, the last one of samples without a stack, summed up over the nodes of a merged tree.
  totalsOf(weights) {
    const totals = new Float64Array(this.fn.length);
    this.nodeOf.forEach((node, i) => node >= 0 && (totals[node] += weights[i]));
    if (this.nodeOfNone) totals[this.nodeOfNone] += weights[this.nodeOf.length];
    for (let i = totals.length - 1; i > 0; --i) totals[this.parent[i]] += totals[i];
    return totals;
  }

  children(node) {
    return this.kids.subarray(this.begin[node], this.begin[node + 1]);
  }

  path(node) {
    const path = [];
    for (let at = node; at >= 0; at = this.parent[at]) path.unshift(at);
    return path;
  }

  // The node that these functions lead to from the root, or the last one on the way that is there.
  find(functions) {
    let node = 0;
    for (const fn of functions) {
      const next = this.children(node).find((child) => this.fn[child] === fn);
      if (next === undefined) return node;
      node = next;
    }
    return node;
  }

  // Self and total of each function. What calls itself counts once.
  table() {
    const rows = this.model.functions.map((_, fn) => ({fn, self: 0, total: 0, selfSamples: 0, samples: 0}));
    const open = new Int32Array(rows.length), work = [0];
    while (work.length > 0) {
      const node = work.pop();
      if (node < 0) {
        --open[this.fn[~node]];
        continue;
      }
      if (node > 0) {
        const row = rows[this.fn[node]];
        row.self += this.self[node];
        row.selfSamples += this.selfSamples[node];
        if (open[row.fn]++ === 0) (row.total += this.total[node], row.samples += this.samples[node]);
        work.push(~node);
      }
      for (const child of this.children(node)) work.push(child);
    }
    return rows.filter((row) => row.total > 0 || row.samples > 0);
  }

  // The source lines of a node, the heaviest first.
  lines(node) {
    const {model} = this;
    if (!this.nodeOf) return [model.place(this.call[node])].filter(Boolean);
    const weights = new Map();
    for (let i = 0; i < this.nodeOf.length; ++i) {
      if (this.nodeOf[i] < 0) continue;
      const frames = model.frames[model.stacks.location[i]];
      for (let k = frames.length - 1, at = this.nodeOf[i]; k >= 0; --k, at = this.parent[at]) {
        const place = at === node ? model.place(frames[k].call) : '';
        if (place) weights.set(place, (weights.get(place) || 0) + this.stackTotal[i]);
      }
    }
    return [...weights].sort((a, b) => b[1] - a[1]).map(([place]) => place);
  }
}
