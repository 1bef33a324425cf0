import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { createAlmanacClient } from '../src/index.js';
import { failure } from './failure.js';
import { json, nobody, serving, servingSocket, silent } from './serving.js';

const forbidden = json(403, { title: 'Forbidden', status: 403, code: 'missing-scope', detail: 'no' });

/** Listens to a stream in a process of its own, which may end before anybody awaits what was heard. */
async function listenAndLeave(way: object): Promise<void> {
  const index = new URL('../src/index.js', import.meta.url);
  const script = `
    import { createAlmanacClient } from ${JSON.stringify(index)};
    const body = new Blob(['0:"hi"\\n']).stream();
    createAlmanacClient(${JSON.stringify(way)}).readStream({ body });`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]);
}

test('a stream whose call fails ends no process', async () => {
  const { url, asked } = await serving(forbidden);
  await listenAndLeave({ url });
  assert.equal(asked.length, 1);
  for (const away of [{ url: await nobody() }, { socket: '/nowhere/almanac.sock' }]) await listenAndLeave(away);
});

test('a stream whose call fails is cancelled, and its promise still says why', { timeout: 10_000 }, async () => {
  const refusing = await serving(forbidden);
  for (const [way, code] of [
    [{ url: await nobody() }, 'unreachable'],
    [{ socket: '/nowhere/almanac.sock' }, 'unreachable'],
    [{ url: refusing.url }, 'missing-scope'],
  ] as const) {
    let cancelled = () => {};
    const isCancelled = new Promise<void>((done) => (cancelled = done));
    const start = (controller: ReadableStreamDefaultController<string>) => controller.enqueue('0:"hi"\n');
    const body = new ReadableStream<string>({ start, cancel: () => cancelled() });
    const heard = createAlmanacClient(way).readStream({ body });
    await isCancelled;
    assert.equal((await failure(heard)).code, code);
  }
});

test('the time of a stream runs from its end on', { timeout: 10_000 }, async () => {
  const { url } = await serving(silent);
  const body = new Blob(['0:"hi"\n']).stream();
  assert.equal((await failure(createAlmanacClient({ url, timeoutMs: 50 }).readStream({ body }))).code, 'timeout');
});

test('a stream that fails ends its call with its own error', { timeout: 10_000 }, async () => {
  const died = new Error('agent died');
  const failing = () =>
    new ReadableStream<string>({
      start: (controller) => controller.enqueue('0:"hi"\n'),
      pull: (controller) => controller.error(died),
    });
  const tcp = await serving(silent);
  const unix = await servingSocket(silent);
  for (const way of [{ url: tcp.url }, { socket: unix.socket }]) {
    const client = createAlmanacClient(way);
    await assert.rejects(client.readStream({ body: failing() }), (error) => error === died, JSON.stringify(way));
  }
});

test('text and bytes arrive as UTF-8', async () => {
  const chunks: Buffer[] = [];
  const { url } = await serving((request, response) => {
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => json(200, { calls: [] })(request, response));
  });
  const parts = ['é', new TextEncoder().encode('東')] as unknown as string[];
  const body = new ReadableStream<string>({
    pull: (controller) => (parts.length === 0 ? controller.close() : controller.enqueue(parts.shift()!)),
  });
  await createAlmanacClient({ url }).readStream({ body });
  assert.equal(Buffer.concat(chunks).toString(), 'é東');
});
