import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import { createMemoryService } from '../src/index.js';
import { nobody } from './serving.js';

const run = promisify(execFile);
const root = resolve('build/readme');
const count = 9;
/** Places of the examples with a stream, and with tools. */
const [stream, wrapped] = [7, 8];

let daemon: Daemon;
before(async () => {
  daemon = await startDaemon();
  await compile();
});
after(() => daemon.stop());

/** Compiles the examples as a program of their reader, which is strict, would. */
async function compile(): Promise<void> {
  const readme = await readFile('README.md', 'utf8');
  const examples = [...readme.matchAll(/^```typescript\n(.*?)^```$/gms)].map((match) => match[1] ?? '');
  assert.equal(examples.length, count);
  const opening = examples[0] ?? '';
  await mkdir(root, { recursive: true });
  for (const [number, example] of examples.entries()) {
    const whole = /\bmemoryService\b/.test(example) && number > 0 ? `${opening}${example}` : example;
    await writeFile(join(root, `example-${number}.ts`), whole.replaceAll('@almanac/client', '../../src/index.js'));
  }
  const compilerOptions = { rootDir: '../..', outDir: 'out', noEmit: false, noUnusedLocals: false };
  const project = { extends: '../../tsconfig.json', compilerOptions, include: ['*.ts'] };
  await writeFile(join(root, 'tsconfig.json'), JSON.stringify(project));
  const tsc = resolve('node_modules/.bin/tsc');
  await run(tsc, ['-p', root]).catch(({ stdout }: { stdout: string }) => assert.fail(stdout));
}

/** An example, with the daemon elsewhere. */
async function example(number: number, url: string): Promise<string> {
  const compiled = join(root, 'out/build/readme', `example-${number}.js`);
  const file = compiled.replace(/\.js$/, `-at-${new URL(url).port}.js`);
  await writeFile(file, (await readFile(compiled, 'utf8')).replaceAll('http://127.0.0.1:7311', url));
  return file;
}

test('the examples of the README run', async () => {
  for (let number = 0; number < count; number += 1) {
    await import(pathToFileURL(await example(number, daemon.url)).href);
  }
  const service = createMemoryService({ url: daemon.url });
  const [message] = await service.search('messages', { messageType: 'greeting' });
  const [thought] = await service.search('cognitive-processes', { contextId: 'conversation-123' });
  assert.equal(message?.content, 'Hello, how can I help you today?');
  assert.deepEqual(thought?.metadata.tags, ['machine-learning', 'explanation-planning']);
});

test('a daemon that is away ends no process that listens to a stream or wraps tools', async () => {
  const url = await nobody();
  for (const number of [stream, wrapped]) {
    const { stderr } = await run(process.execPath, [await example(number, url)]);
    assert.match(stderr, /cannot be reached/);
  }
});
