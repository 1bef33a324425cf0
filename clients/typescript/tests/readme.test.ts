import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import { createMemoryService } from '../src/index.js';

let daemon: Daemon;
before(async () => {
  daemon = await startDaemon();
});
after(() => daemon.stop());

test('the examples of the README run', async () => {
  const readme = await readFile('README.md', 'utf8');
  const examples = [...readme.matchAll(/^```typescript\n(.*?)^```$/gms)].map((match) => match[1] ?? '');
  assert.equal(examples.length, 9);
  const opening = examples[0] ?? '';
  for (const [number, example] of examples.entries()) {
    const whole = /\bmemoryService\b/.test(example) && number > 0 ? `${opening}${example}` : example;
    const code = whole.replaceAll('@almanac/client', '../src/index.js').replaceAll('http://127.0.0.1:7311', daemon.url);
    const file = resolve('build/tests', `readme-${number}.mjs`);
    await writeFile(file, code);
    await import(pathToFileURL(file).href);
  }
  const service = createMemoryService({ url: daemon.url });
  const [message] = await service.search('messages', { messageType: 'greeting' });
  const [thought] = await service.search('cognitive-processes', { contextId: 'conversation-123' });
  assert.equal(message?.content, 'Hello, how can I help you today?');
  assert.deepEqual(thought?.metadata.tags, ['machine-learning', 'explanation-planning']);
});
