// Numbers as people read them, and the sentences about what is missing.
const UNITS = [['s', 1e9], ['ms', 1e6], ['µs', 1e3], ['ns', 1]];

function rounded(value, digits = 3) {
  if (value !== 0 && Math.abs(value) >= 10 ** digits) return Math.round(value).toLocaleString('en');
  return Number(value.toPrecision(digits)).toLocaleString('en', {maximumFractionDigits: 20});
}

// `step`: how far the labels of an axis are apart, so that each has as many digits as tell it from the next.
function duration(ns, step = 0) {
  if (ns === 0) return '0';
  const [unit, scale] = UNITS.find(([, size]) => Math.abs(ns) >= size) || UNITS[3];
  if (step > 0) return `${Number((ns / scale).toFixed(Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9))))} ${unit}`;
  return `${rounded(ns / scale)} ${unit}`;
}

function amount(value, unit) {
  if (unit === 'nanoseconds') return duration(value);
  const [scale, prefix] = [[1e9, 'G'], [1e6, 'M'], [1e4, 'k']].find(([size]) => Math.abs(value) >= size) || [1, ''];
  const number = rounded(value / (prefix === 'k' ? 1e3 : scale), prefix ? 3 : 4);
  return unit === 'bytes' ? `${number} ${prefix}B` : number + prefix;
}

function percent(part, whole) {
  if (!(whole > 0)) return '0 %';
  const share = (part / whole) * 100;
  return `${share === 0 ? 0 : share < 0.01 ? '< 0.01' : share < 10 ? Number(share.toFixed(2)) : Number(share.toFixed(1))} %`;
}

function count(number, noun) {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`;
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * ([1, 2, 5].find((factor) => factor * power >= least) || 10);
}

// What the kernel and the sampler said of one event, and what its stacks are worth: [text, is it a loss?].
function eventFacts(model, event, sum, leftOut) {
  const {name, unit, user_only, accounting} = model.events[event], facts = [];
  const lost = [['lost', 'lost: the kernel had no room'], ['malformed', 'malformed'], ['paused', 'while paused'],
                ['duplicates', 'dropped as duplicates']];
  for (const [key, text] of lost) {
    if (accounting[key]) facts.push([`${name}: ${count(accounting[key], 'sample')} ${text}`, true]);
  }
  if (accounting.foreign) facts.push([`${name}: ${count(accounting.foreign, 'sample')} prepared by the kernel for another sampler`, false]);
  if (accounting.throttled) facts.push([`${name}: throttled ${count(accounting.throttled, 'time')}`, true]);
  if (accounting.unsampled_ns) facts.push([`${name}: ${duration(accounting.unsampled_ns)} that no sample stands for`, true]);
  const notTaken = Object.entries(accounting.stacks_not_taken);
  if (notTaken.length > 0) {
    const stacks = notTaken.reduce((all, [, number]) => all + number, 0);
    const causes = notTaken.map(([cause, number]) => `${number.toLocaleString('en')} ${cause}`).join(', ');
    facts.push([`${name}: ${count(stacks, 'live stack')} not taken (${causes})`, true]);
  }
  if (accounting.counted_is_lower_bound) facts.push([`${name}: the kernel’s count is a lower bound`, true]);
  const exact = (value) => unit === 'nanoseconds' ? duration(value) : value.toLocaleString('en');
  if (accounting.counted) facts.push([`${name}: the kernel counted ${exact(accounting.counted)}`, false]);
  if (user_only) facts.push([`${name}: user space only`, true]);
  const all = sum.qualities.reduce((a, b) => a + b, 0);
  sum.qualities.forEach((samples, quality) => {
    if (samples > 0) {
      facts.push([`stacks ${model.qualities[quality]}: ${samples.toLocaleString('en')} (${percent(samples, all)})`, quality !== WHOLE]);
    }
  });
  if (leftOut.samples || leftOut.weight) {
    facts.push([`${count(leftOut.samples, 'merged sample')} without a time (${amount(leftOut.weight, model.events[event].unit)})` +
                ' are not in the selected range', true]);
  }
  return facts;
}

// The same of the whole profile.
function profileFacts(model) {
  const {accounting} = model, facts = [];
  const losses = [
    ['times_forgotten', 'samples merged: their times were given up'],
    ['stacks_forgotten', 'samples cut to their leaf or module: the tables were full'],
    ['dumps_dropped', 'samples cut to their leaf: dumps came faster than they could be unwound'],
    ['addresses_forgotten', 'samples at other addresses of a module: the tables were full'], ['waits_forgotten', 'waits in the totals only'],
    ['zones_forgotten', 'zones and frames without times'], ['frames_dropped', 'frames not kept: the room for them was used up'],
    ['zone_records_lost', 'begins and ends of zones lost'],
    ['task_parts_forgotten', 'parts of tasks without times'], ['task_records_lost', 'switches of tasks lost'],
    ['switches_lost', 'switches between threads lost'],
    ['side_band_lost', 'records of mappings and threads lost: names may be missing'], ['unattributed', 'samples of no known event: left out'],
  ];
  for (const [key, text] of losses) if (accounting[key]) facts.push([`${accounting[key].toLocaleString('en')} ${text}`, true]);
  if (model.merged_samples) {
    facts.push([`${count(model.merged_samples, 'sample')} without a time: in the graph, not on the time axis`, true]);
  }
  if (accounting.own_cpu_ns || accounting.kernel_cpu_ns) {
    const naming = accounting.naming_cpu_ns ? ` (${duration(accounting.naming_cpu_ns)} of it for names and tables)` : '';
    facts.push([`profiling took ${duration(accounting.own_cpu_ns)} of CPU${naming}, and about ${duration(accounting.kernel_cpu_ns)} in the kernel`, false]);
  }
  return facts;
}
