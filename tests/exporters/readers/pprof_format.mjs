// node pprof_format.mjs <file>...: what npm's pprof-format reads in files of pprof's format, as JSON: of each file, the
// values of the samples that have the same labels and calls. Run in the folder of its node_modules.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {gunzipSync} from 'node:zlib';

const {Profile} = createRequire(process.cwd() + '/')('pprof-format');

function read(path) {
  const profile = Profile.decode(gunzipSync(readFileSync(path)));
  const text = (index) => profile.stringTable.strings[Number(index)];
  const byId = (entries) => new Map(entries.map((entry) => [Number(entry.id), entry]));
  const mappings = byId(profile.mapping), locations = byId(profile.location), functions = byId(profile.function);

  function locationText(id) {
    const location = locations.get(Number(id));
    const mapping = mappings.get(Number(location.mappingId)) ?? {filename: 0, buildId: 0};
    const lines = location.line.map((line) => {
      const called = functions.get(Number(line.functionId));
      return `, ${text(called.name)} ${text(called.filename)}:${line.line}`;
    });
    return ` | ${text(mapping.filename)} ${text(mapping.buildId)} ${location.address.toString(16)}${lines.join('')}`;
  }

  function key(sample) {
    const labels = sample.label.map((label) => [text(label.key), Number(label.str) ? text(label.str) : `${label.num}`]);
    labels.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    return labels.map(([name, value]) => `${name}=${value} `).join('') + sample.locationId.map(locationText).join('');
  }

  const totals = {};
  for (const sample of profile.sample) {
    const sums = (totals[key(sample)] ??= sample.value.map(() => 0n));
    sample.value.forEach((value, i) => (sums[i] += BigInt(value)));
  }
  for (const sums of Object.values(totals)) sums.forEach((sum, i) => (sums[i] = `${sum}`));
  return {
    types: profile.sampleType.map((type) => `${text(type.type)}/${text(type.unit)}`),
    comments: profile.comment.map(text),
    totals,
  };
}

console.log(JSON.stringify(process.argv.slice(2).map(read)));
