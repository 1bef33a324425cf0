import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import { type OpenApi, render } from '../scripts/openapi.js';
import { createAlmanacClient } from '../src/index.js';
import { failure } from './failure.js';

let daemon: Daemon;
before(async () => {
  daemon = await startDaemon('', join('..', '..', 'tool_metadata'));
});
after(() => daemon.stop());

test('the types are what the daemon says of itself', async () => {
  const document = (await createAlmanacClient({ url: daemon.url }).getOpenapi()) as unknown as OpenApi;
  const committed = await readFile('src/openapi.ts', 'utf8');
  const isCurrent = render(document) === committed;
  assert.ok(isCurrent, 'src/openapi.ts is not of this daemon: run `make client`');
});

test('tools are found, read and checked', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  const page = await client.listTools({ query: { q: 'search the web', limit: 2 } });
  assert.equal(page.items.length, 2);
  assert.ok(page.total > 2 && page.items.some(({ name }) => name === 'web_search'), JSON.stringify(page));
  const tool = await client.getTool({ path: { name: 'web_search' } });
  assert.deepEqual([tool.name, Array.isArray(tool.use_cases)], ['web_search', true]);
  const check = await client.checkTools({ body: { tools: ['web_search', 'nope'] } });
  assert.deepEqual(
    check.unknown.map(({ tool }) => tool),
    ['nope'],
  );
});

test('durations are recorded, and estimates learn from them', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  const timestamp = '2026-01-31T12:00:00Z';
  const calls = Array.from({ length: 20 }, () => ({ tool_name: 'web_search', duration_ms: 1_200, timestamp }));
  assert.deepEqual(await client.recordExecutions({ body: calls }), { recorded: 20 });
  const { timing } = await client.estimate({ body: { tool_name: 'web_search', timeout_ms: 60_000 } });
  assert.deepEqual([timing.samples, timing.factory_timeout_ms], [20, 60_000]);
});

test('text is sent and answered as text', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  assert.match(await client.getMetrics(), /^# HELP almanac_/m);
  const read = await client.readStream({ query: { protocol: 'data-v1' }, body: '0:"hi"\n' });
  assert.deepEqual(read.faults, []);
});

test('a refusal names what was meant, and each fault where it is', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  const unknown = await failure(client.getTool({ path: { name: 'web_serch' } }));
  assert.deepEqual([unknown.status, unknown.code, unknown.near[0]], [404, 'unknown-tool', 'web_search']);
  assert.ok(unknown.requestId);
  const body = { utility: 'web_search', timeout_ms: 'long' } as unknown as { tool_name: string };
  const faulty = await failure(client.estimate({ body }));
  assert.deepEqual([faulty.status, faulty.code], [422, 'invalid-body']);
  assert.deepEqual(faulty.errors.map(({ pointer }) => pointer).sort(), ['/timeout_ms', '/tool_name', '/utility']);
  assert.match(faulty.message, /\n {2}\/timeout_ms: /);
});

test('the admin socket administers, and the address does not', async () => {
  assert.equal((await createAlmanacClient({ socket: daemon.socket }).getStatus()).ready, true);
  const refused = await failure(createAlmanacClient({ url: daemon.url }).getStatus());
  assert.ok([403, 404].includes(refused.status), refused.message);
});

test('tokens are asked for and taken', async () => {
  const tokens = join(daemon.root, 'tokens');
  const sha256 = createHash('sha256').update('secret').digest('hex');
  await writeFile(tokens, `tokens:\n  - {name: reader, sha256: ${sha256}, scopes: [read]}\n`, { mode: 0o600 });
  const guarded = await startDaemon(`auth: {tokens_file: ${tokens}}\n`);
  try {
    assert.equal((await failure(createAlmanacClient({ url: guarded.url }).getCatalog())).status, 401);
    assert.equal((await createAlmanacClient({ url: guarded.url, token: 'secret' }).getCatalog()).loaded, 0);
    const record = { body: { tool_name: 'a', duration_ms: 1 } };
    assert.equal(
      (await failure(createAlmanacClient({ url: guarded.url, token: 'secret' }).recordExecutions(record))).status,
      403,
    );
  } finally {
    await guarded.stop();
  }
});

test('a selection is read as events from either stream', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  const body = { message: 'search the web for news' };
  for (const stream of ['data-v1', 'ui-v1'] as const) {
    const events = await client.qualify({ query: { stream }, body });
    assert.deepEqual(
      events.map(({ type }) => type),
      ['reasoning', 'intent_context', 'dev_tools_info'],
      stream,
    );
  }
  assert.ok((await client.qualify({ body })).availableTools.includes('web_search'));
});

test('a stream is passed on as it arrives', async () => {
  for (const way of [{ url: daemon.url }, { socket: daemon.socket }]) {
    const client = createAlmanacClient({ ...way, timeoutMs: 500 });
    const { readable, writable } = new TransformStream<string, string>();
    const session_id = `live-${Object.keys(way)}`;
    const answer = client.readStream({ query: { protocol: 'data-v1', session_id }, body: readable });
    const writer = writable.getWriter();
    await writer.write('9:{"toolCallId":"c","toolName":"web_search","args":{}}\n');
    // Longer than a call may take, and long enough for the daemon to see two arrivals.
    await new Promise((done) => setTimeout(done, 600));
    await writer.write('a:{"toolCallId":"c","result":1}\n');
    await writer.close();
    const read = await answer;
    assert.deepEqual([read.recorded, read.calls[0]?.tool_name], [1, 'web_search'], JSON.stringify(read));
    assert.ok((read.calls[0]?.duration_ms ?? 0) >= 50, JSON.stringify(read));
  }
});

test('what happens is heard as it happens', { timeout: 20_000 }, async () => {
  for (const way of [{ url: daemon.url }, { socket: daemon.socket }]) {
    const client = createAlmanacClient(way);
    const tell = (tool_name: string) => client.recordExecutions({ body: { tool_name, duration_ms: 1 } });
    await tell('first');
    const controller = new AbortController();
    const query = { types: 'execution_recorded', last: 1 };
    const events = client.listenToEvents({ query, signal: controller.signal });
    const tools: unknown[] = [];
    for await (const { tool } of events) {
      tools.push(tool);
      if (tools.length === 2) break;
      await tell('second');
    }
    assert.deepEqual(tools, ['first', 'second'], JSON.stringify(way));
    assert.equal((await events.next()).done, true);
    const reason = new Error('enough');
    const others = client.listenToEvents({ query, signal: controller.signal });
    assert.equal((await others.next()).value.type, 'execution_recorded');
    const next = others.next();
    controller.abort(reason);
    await assert.rejects(next, (error) => error === reason);
  }
});

test('a list is walked by its cursors', async () => {
  const client = createAlmanacClient({ url: daemon.url });
  const names: string[] = [];
  let cursor: string | null | undefined;
  do {
    const page = await client.listTools({ query: { limit: 200, cursor, category: null } });
    names.push(...page.items.map(({ name }) => name));
    cursor = page.next_cursor;
  } while (cursor);
  assert.equal(new Set(names).size, (await client.listTools()).total);
});
