/** Writes src/openapi.ts from what a daemon says of itself. */

import { writeFile } from 'node:fs/promises';

import { startDaemon } from './daemon.js';
import { type OpenApi, render } from './openapi.js';

const daemon = await startDaemon();
try {
  const answer = await fetch(`${daemon.url}/openapi.json`);
  await writeFile('src/openapi.ts', render((await answer.json()) as OpenApi));
} finally {
  await daemon.stop();
}
