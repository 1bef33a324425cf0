/** Are two builds the same? Compressed files are compared by what they hold, since compressors differ. */

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const [made = '', checkedIn = ''] = process.argv.slice(2);
const names = [...new Set([...(await readdir(made)), ...(await readdir(checkedIn))])].sort();
const different = [];
for (const name of names) {
  const [one, two] = await Promise.all([made, checkedIn].map((directory) => content(directory, name)));
  if (one === undefined || two === undefined || !one.equals(two)) different.push(name);
}
if (different.length > 0) {
  console.error(`${checkedIn} is not what the sources make; \`make console\` makes it anew: ${different.join(', ')}`);
  process.exitCode = 1;
}

async function content(directory, name) {
  const bytes = await readFile(join(directory, name)).catch(() => undefined);
  return bytes !== undefined && name.endsWith('.gz') ? gunzipSync(bytes) : bytes;
}
