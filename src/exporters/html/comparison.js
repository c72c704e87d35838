// A flame graph of what became more and what less: the comparisons of a slow frame with usual ones, and of two profiles.
const MORE_HUE = 28, LESS_HUE = 245;

class ComparisonGraph extends Graph {
  constructor(model, palette, pane) {
    super(model, palette, pane);
    // By node: {value, usual, verdict}, the verdict 1 for more, -1 for less, 0 if that cannot be told; null: no comparison.
    this.comparison = null;
    const plain = this.colorOf;
    this.colorOf = (node) => (node > 0 && this.comparison ? this.differenceColor(node) : plain(node));
  }

  caption(node) {
    const isNoise = this.comparison && node > 0 && this.comparison.verdict[node] === 0;
    return (isNoise ? '~ ' : '') + super.caption(node);
  }

  differenceColor(node) {
    const {value, usual, verdict} = this.comparison;
    if (verdict[node] === 0) return cssColor('noise');
    const share = Math.min(1, Math.abs(value[node] - usual[node]) / (Math.max(value[0], usual[0]) || 1));
    const strength = 0.35 + 0.65 * Math.sqrt(share), hue = verdict[node] > 0 ? MORE_HUE : LESS_HUE;
    const light = dark.matches ? 0.36 + 0.16 * strength : 0.93 - 0.2 * strength;
    return `oklch(${light.toFixed(3)} ${(0.15 * strength).toFixed(3)} ${hue})`;
  }
}

// The colour of a verdict where there is no size to show.
function verdictColor(verdict) {
  if (verdict === 0) return cssColor('noise');
  return `oklch(${dark.matches ? 0.5 : 0.76} 0.13 ${verdict > 0 ? MORE_HUE : LESS_HUE})`;
}

// An entry of the legend.
function legendEntry(color, text) {
  const span = make('span', ''), dot = make('i', '');
  dot.style.background = color;
  span.append(dot, text);
  return span;
}
