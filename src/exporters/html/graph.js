// The flame graph: boxes of a tree on a canvas that is as large as what can be seen of it.
const ROW = 21, FONT = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

const dark = matchMedia('(prefers-color-scheme: dark)');

const cssColors = new Map();
dark.addEventListener('change', () => cssColors.clear());

function cssColor(name) {
  if (!cssColors.has(name)) {
    cssColors.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  }
  return cssColors.get(name);
}

// Fits a canvas to a size in CSS pixels. Returns its context, scaled and cleared.
function fitCanvas(canvas, width, height) {
  const scale = devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext('2d');
  context.setTransform(scale, 0, 0, scale, 0, 0);
  return context;
}

// A colour for each module: the kernel's is reserved, and so is grey, for code without a known module.
class Palette {
  constructor(model) {
    this.model = model;
    const hues = [245, 165, 80, 300, 200, 130, 335, 60, 275, 105];
    this.hues = new Map();
    for (const fn of model.functions) {
      const name = model.moduleName(fn.module);
      if (!fn.kernel && fn.module >= 0 && !this.hues.has(name)) this.hues.set(name, hues[this.hues.size % hues.length]);
    }
    this.cache = new Map();
    dark.addEventListener('change', () => this.cache.clear());
  }

  // `step`: from -1 to 1, to tell neighbours apart.
  shade(hue, chroma, step) {
    return dark.matches ? `oklch(${(0.425 + step * 0.028).toFixed(3)} ${chroma * 0.95} ${hue})`
                        : `oklch(${(0.855 + step * 0.022).toFixed(3)} ${chroma} ${hue})`;
  }

  ofModule(module, kernel, step = 0) {
    if (kernel) return this.shade(28, 0.085, step);
    const hue = this.hues.get(this.model.moduleName(module));
    return hue === undefined ? this.shade(0, 0, step) : this.shade(hue, 0.065, step);
  }

  ofFunction(fn) {
    if (!this.cache.has(fn)) {
      const {name, module, kernel} = this.model.functions[fn];
      let hash = 7;
      for (let i = 0; i < name.length; ++i) hash = (hash * 31 + name.charCodeAt(i)) | 0;
      this.cache.set(fn, this.ofModule(module, kernel, ((hash >>> 3) % 9) / 4 - 1));
    }
    return this.cache.get(fn);
  }
}

class Graph {
  constructor(model, palette, pane) {
    Object.assign(this, {model, palette, pane, tree: null, zoom: 0, hovered: -1, flipped: false, hit: null});
    this.spacer = pane.firstElementChild;
    this.canvas = pane.querySelector('canvas');
    // The colour of a box. ComparisonGraph has its own.
    this.colorOf = (node) => (node === 0 ? cssColor('line') : palette.ofFunction(this.tree.fn[node]));
    pane.addEventListener('scroll', () => this.draw());
  }

  show(tree, zoom) {
    this.tree = tree;
    this.zoom = zoom;
    this.hovered = -1;
    this.resize();
  }

  resize() {
    if (!this.tree) return;
    this.width = this.pane.clientWidth;
    this.height = this.pane.clientHeight;
    this.rows = Math.max((this.tree.deepest + 1) * ROW + 4, this.height);
    this.spacer.style.height = `${this.rows}px`;
    if (this.flipped) this.pane.scrollTop = this.rows;
    this.draw();
  }

  // Where a box is, in pixels of the pane; its ancestors are as wide as the zoomed box.
  box(node) {
    const {tree, zoom} = this, scale = this.width / (tree.total[zoom] || 1);
    const above = tree.depth[node] < tree.depth[zoom] || node === zoom;
    const top = this.flipped ? this.rows - (tree.depth[node] + 1) * ROW - 2 : tree.depth[node] * ROW + 2;
    return {
      x: above ? 0 : (tree.x[node] - tree.x[zoom]) * scale,
      y: top - this.pane.scrollTop,
      width: above ? this.width : tree.total[node] * scale,
      height: ROW - 1,
    };
  }

  // The node whose box is at this point of the pane; -1 if there is none.
  at(x, y) {
    const {tree} = this;
    const from = y + this.pane.scrollTop;
    const depth = Math.floor((this.flipped ? this.rows - from - 2 : from - 2) / ROW);
    if (depth < 0 || depth > tree.deepest) return -1;
    const path = tree.path(this.zoom);
    if (depth < path.length) return path[depth];
    let node = this.zoom;
    while (tree.depth[node] < depth) {
      const next = tree.children(node).find((child) => {
        const box = this.box(child);
        return x >= box.x && x < box.x + box.width;
      });
      if (next === undefined) return -1;
      node = next;
    }
    return node;
  }

  draw() {
    if (!this.tree) return;
    const context = fitCanvas(this.canvas, this.width, this.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    this.ink = cssColor('ink');
    this.pale = cssColor('pane');
    this.letter = context.measureText('m').width;
    const path = this.tree.path(this.zoom);
    for (const node of path) this.drawBox(context, node, this.box(node), node !== this.zoom);
    const work = [this.zoom];
    while (work.length > 0) {
      const node = work.pop();
      let slivers = null;
      for (const child of this.tree.children(node)) {
        const box = this.box(child);
        if (box.width === 0) continue;
        if (box.width >= 1) {
          this.drawBox(context, child, box, false);
          work.push(child);
          continue;
        }
        // What is too narrow for a box of its own is one pale box together, so that no weight looks absent.
        if (slivers && box.x - slivers.end < 0.5) slivers.end = box.x + box.width;
        else slivers = (this.drawSlivers(context, slivers), {...box, end: box.x + box.width});
      }
      this.drawSlivers(context, slivers);
    }
  }

  drawSlivers(context, slivers) {
    if (!slivers || slivers.y > this.height || slivers.y < -ROW) return;
    context.globalAlpha = 0.5;
    context.fillStyle = cssColor('wait');
    context.fillRect(slivers.x, slivers.y, Math.max(slivers.end - slivers.x, 0.5), slivers.height);
    context.globalAlpha = 1;
  }

  drawBox(context, node, {x, y, width, height}, isAbove) {
    if (y > this.height || y < -ROW) return;
    const {tree, hit} = this;
    const inner = Math.max(width - (width > 3 ? 1 : 0), 0.6);
    const misses = hit && node > 0 && !hit[tree.fn[node]];
    context.globalAlpha = misses ? 0.32 : isAbove ? 0.6 : 1;
    context.fillStyle = this.colorOf(node);
    context.beginPath();
    context.roundRect(x, y, inner, height, width > 8 ? 3 : 0);
    context.fill();
    this.drawMarks(context, node, x, y, inner, height);
    if (hit && !misses && node > 0) this.outline(context, cssColor('accent'), x, y, inner, height, 1.5);
    if (node === this.hovered) this.outline(context, this.ink, x, y, inner, height, 1.5);
    if (inner > 26) {
      const room = Math.floor((inner - 12) / this.letter), name = this.caption(node);
      context.fillStyle = this.ink;
      context.fillText(name.length <= room ? name : `${name.slice(0, Math.max(room - 1, 0))}…`, x + 6, y + height / 2 + 0.5);
    }
    context.globalAlpha = 1;
  }

  label(node) {
    if (node === 0) return 'all';
    return (this.tree.inlined[node] ? '↳ ' : '') + this.model.functions[this.tree.fn[node]].name;
  }

  // What stands in a box.
  caption(node) {
    return this.label(node);
  }

  outline(context, color, x, y, width, height, line, dash = []) {
    context.strokeStyle = color;
    context.lineWidth = line;
    context.setLineDash(dash);
    context.beginPath();
    context.roundRect(x + 0.75, y + 0.75, Math.max(width - 1.5, 0.2), height - 1.5, width > 8 ? 2.5 : 0);
    context.stroke();
    context.setLineDash([]);
  }

  // Inlined: a stripe on the left. Guess: dashed. Stitched: dotted. Mostly of incomplete stacks: hatched.
  drawMarks(context, node, x, y, width, height) {
    const {tree} = this;
    if (node === 0 || width < 4) return;
    const mostly = (weight) => weight > 0 && weight * 2 > tree.total[node];
    context.save();
    context.beginPath();
    context.roundRect(x, y, width, height, 3);
    context.clip();
    if (mostly(tree.part[node])) {
      context.strokeStyle = this.pale;
      context.lineWidth = 1.2;
      context.beginPath();
      for (let at = x - height; at < x + width; at += 6) {
        context.moveTo(at, y + height);
        context.lineTo(at + height, y);
      }
      context.stroke();
    }
    context.fillStyle = this.ink;
    context.globalAlpha *= 0.35;
    if (tree.inlined[node]) context.fillRect(x, y, 2.5, height);
    context.restore();
    if (mostly(tree.guess[node])) this.outline(context, this.ink, x, y, width, height, 1, [5, 3]);
    else if (mostly(tree.stitched[node])) this.outline(context, this.ink, x, y, width, height, 1, [1.5, 2.5]);
  }

  // The next box in a direction from the zoomed one: its caller, its heaviest callee, its neighbours.
  neighbour(key) {
    const {tree, zoom} = this;
    const inward = this.flipped ? 'ArrowUp' : 'ArrowDown', outward = this.flipped ? 'ArrowDown' : 'ArrowUp';
    if (key === outward) return Math.max(tree.parent[zoom], 0);
    if (key === inward) {
      return tree.children(zoom).reduce((best, child) => (best < 0 || tree.total[child] > tree.total[best] ? child : best), -1);
    }
    const siblings = zoom === 0 ? [0] : tree.children(tree.parent[zoom]);
    return siblings[siblings.indexOf(zoom) + (key === 'ArrowLeft' ? -1 : 1)] ?? -1;
  }

  scrollTo(node) {
    const {y} = this.box(node);
    if (y < 0 || y > this.height - ROW) this.pane.scrollTop += y - this.height / 3;
  }
}
