import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import type { RequestListener } from 'node:http';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { type ConnectionOptions, createAlmanacClient, createMemoryService } from '../src/index.js';
import { failure } from './failure.js';
import { broken, busy, json, serving, servingSocket, silent } from './serving.js';

// None of the developer's own.
delete process.env['ALMANAC_TOKEN'];

const memory = { id: 'm', kind: 'document', content: 'c', metadata: {}, version: 1, createdAt: '', updatedAt: '' };

test('an add is repeated under one key, until it is acknowledged', async () => {
  const { url, asked } = await serving(broken, busy('0'), json(201, memory));
  assert.deepEqual(await createMemoryService({ url }).add('documents', 'c', {}), memory);
  const keys = asked.map((request) => request.headers['idempotency-key']);
  assert.equal(keys.length, 3);
  assert.match(String(keys[0]), /^[0-9a-f-]{36}$/);
  assert.equal(new Set(keys).size, 1);
});

test('what might be done twice is not repeated', async () => {
  const { url, asked } = await serving(broken, json(200, memory));
  const error = await failure(createMemoryService({ url }).update('m', { content: 'd' }));
  assert.deepEqual([error.code, error.status, asked.length], ['unreachable', 0, 1]);
  assert.ok(error.cause instanceof Error);
});

test('patience ends, after so many attempts or so long', async () => {
  const busyOnes = await serving(...Array<RequestListener>(9).fill(busy('0')));
  const refused = await failure(createMemoryService({ url: busyOnes.url }).search('documents'));
  assert.deepEqual([refused.code, refused.status, busyOnes.asked.length], ['store-unavailable', 503, 6]);
  await failure(createMemoryService({ url: busyOnes.url }).search('documents', {}, {}, { retries: 1 }));
  assert.equal(busyOnes.asked.length, 8);
  const deaf = await serving(silent);
  const timeout = await failure(createMemoryService({ url: deaf.url, timeoutMs: 50 }).get('m'));
  assert.deepEqual([timeout.code, timeout.status], ['timeout', 0]);
  // The daemon asks to wait longer than the caller is willing to.
  const later = await serving(busy('3600'));
  const waited = await failure(createMemoryService({ url: later.url, timeoutMs: 50 }).get('m'));
  assert.deepEqual([waited.code, later.asked.length], ['timeout', 1]);
  const once = await serving(busy('0'), json(200, memory));
  assert.equal((await failure(createMemoryService({ url: once.url, retries: 0 }).get('m'))).status, 503);
});

test('a caller may end a call, with a reason of its own', async () => {
  for (const answer of [silent, busy('3600')]) {
    const { url, asked } = await serving(answer);
    const controller = new AbortController();
    const reason = new Error('enough');
    const call = createMemoryService({ url }).get('m', { signal: controller.signal });
    setImmediate(() => controller.abort(reason));
    await assert.rejects(call, (error) => error === reason);
    const before = asked.length;
    await assert.rejects(
      createMemoryService({ url }).get('m', { signal: controller.signal }),
      (error) => error === reason,
    );
    assert.equal(asked.length, before, 'what is ended already is not sent');
  }
});

test('one signal ends any number of calls', async () => {
  const { url, asked } = await serving(...Array<RequestListener>(20).fill(silent));
  const warnings: Error[] = [];
  const warned = (warning: Error) => warnings.push(warning);
  process.on('warning', warned);
  const controller = new AbortController();
  const { signal } = controller;
  const service = createMemoryService({ url });
  const calls = Array.from({ length: 20 }, () => service.get('m', { signal }));
  const ends = calls.map((call) => assert.rejects(call, { name: 'AbortError' }));
  while (asked.length < calls.length) await new Promise(setImmediate);
  controller.abort();
  await Promise.all(ends);
  process.off('warning', warned);
  assert.deepEqual([warnings, getEventListeners(signal, 'abort')], [[], []]);
});

test('a problem document is carried whole', async () => {
  const problem = {
    title: 'Unprocessable Content',
    status: 422,
    code: 'invalid-body',
    detail: 'the body is faulty',
    errors: [{ pointer: '/metadata/role', code: 'bad-value', detail: 'no role' }],
    near: ['a', 'b'],
  };
  const { url } = await serving(json(422, problem, { 'x-request-id': 'r-1' }));
  const error = await failure(createMemoryService({ url }).add('messages', '', {}));
  assert.deepEqual(error.problem, problem);
  assert.deepEqual([error.errors, error.near, error.requestId], [problem.errors, problem.near, 'r-1']);
  assert.equal(error.message, 'the body is faulty\n  /metadata/role: no role\n  did you mean a or b?');
});

test('what is no daemon is told', async () => {
  const html: RequestListener = (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
  const moved: RequestListener = (_, response) => response.writeHead(302, { location: '/elsewhere' }).end();
  const lying: RequestListener = (_, response) =>
    response.writeHead(400, { 'content-type': 'application/problem+json' }).end('null');
  for (const [answer, status] of [
    [html, 200],
    [moved, 302],
    [lying, 400],
  ] as const) {
    const { url } = await serving(answer);
    const error = await failure(createMemoryService({ url }).get('m'));
    assert.deepEqual([error.code, error.status], ['not-almanac', status]);
  }
  const nobody = await failure(createMemoryService({ socket: '/nowhere/almanac.sock', retries: 0 }).get('m'));
  assert.equal(nobody.code, 'unreachable');
  assert.match(nobody.message, /ENOENT/);
});

test('JSON that is no answer is told', async () => {
  for (const body of [null, 7, 'text', [], [{}]]) {
    const { url } = await serving(...Array<RequestListener>(3).fill(json(200, body)));
    const client = createAlmanacClient({ url });
    for (const call of [
      () => client.listTools(),
      () => client.getMemory({ path: { id: 'm' } }),
      () => createMemoryService({ url }).get('m'),
    ]) {
      const error = await failure(call());
      assert.deepEqual([error.code, error.status], ['not-almanac', 200], JSON.stringify(body));
    }
  }
  for (const body of [null, {}, { memories: null, items: {} }]) {
    const { url } = await serving(...Array<RequestListener>(6).fill(json(200, body)));
    const service = createMemoryService({ url });
    for (const call of [
      () => service.search('documents'),
      () => service.searchAll(),
      () => service.each('documents').next(),
      () => service.history('m'),
      () => service.relations('m'),
      () => service.thread('t'),
    ]) {
      assert.equal((await failure(call())).code, 'not-almanac', JSON.stringify(body));
    }
  }
});

test('events that are none are told', async () => {
  const text =
    (body: string): RequestListener =>
    (_, response) =>
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(body);
  for (const body of ['2:{"a"\n', '2:{}\n', 'data: {"type"\n\n']) {
    const { url } = await serving(text(body));
    const call = createAlmanacClient({ url }).qualify({ query: { stream: 'ui-v1' }, body: { message: 'm' } });
    assert.equal((await failure(call)).code, 'not-almanac', body);
  }
  for (const body of ['data: no JSON\n\n', 'data: null\n\n']) {
    const { url } = await serving(text(body));
    assert.equal((await failure(createAlmanacClient({ url }).listenToEvents().next())).code, 'not-almanac', body);
  }
});

test('a problem that is none is told', async () => {
  const problem = { title: '', status: 422, code: 'invalid-body', detail: 'no' };
  for (const more of [{ errors: 7 }, { errors: [null] }, { near: 'a' }, { near: {} }]) {
    const { url } = await serving(json(422, { ...problem, ...more }));
    const error = await failure(createMemoryService({ url }).get('m'));
    assert.deepEqual([error.code, error.status], ['not-almanac', 422], JSON.stringify(more));
  }
});

test('a daemon that is not ready says what is missing', async () => {
  const answer = { ready: false, missing: ['catalog'] };
  const starting: RequestListener = (_, response) =>
    response.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  const { url } = await serving(starting, busy('0'), starting);
  const client = createAlmanacClient({ url });
  assert.deepEqual(await client.getReady(), answer);
  assert.deepEqual(await client.getReady(), answer, 'after a problem');
  const elsewhere = await serving(starting);
  const error = await failure(createAlmanacClient({ url: elsewhere.url, retries: 0 }).getLive());
  assert.deepEqual([error.code, error.status], ['not-almanac', 503]);
});

test('events that nobody sends, or that break off, are told', { timeout: 10_000 }, async () => {
  const cut: RequestListener = (request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"a"}\n\ndata: {"ty');
    setImmediate(() => request.socket.destroy());
  };
  for (const [answer, code, timeoutMs] of [
    [silent, 'timeout', 50],
    [cut, 'unreachable', 30_000],
    [json(403, { title: '', status: 403, code: 'missing-scope', detail: 'no' }), 'missing-scope', 30_000],
  ] as const) {
    const { url } = await serving(answer);
    const events = createAlmanacClient({ url, timeoutMs, retries: 0 }).listenToEvents();
    const all = async () => {
      for await (const { type } of events) assert.equal(type, 'a');
    };
    assert.equal((await failure(all())).code, code);
  }
});

test('the token, the prefix and the query arrive', async () => {
  const { url, asked } = await serving(json(200, memory), json(200, { items: [], total: 0 }));
  await createMemoryService({ url: `${url}/prefix/`, token: 'secret' }).get('a/b c', { includeDeleted: true });
  assert.equal(asked[0]?.url, '/prefix/v1/memories/a%2Fb%20c?includeDeleted=true');
  assert.equal(asked[0]?.headers.authorization, 'Bearer secret');
  await createAlmanacClient({ url }).listTools({ query: { q: 'a & b' } });
  assert.equal(asked[1]?.url, '/v1/tools?q=a+%26+b');
  assert.equal(asked[1]?.headers.authorization, undefined);
});

test('a name that no path can have is refused before it is sent', async () => {
  const service = createMemoryService({ url: 'http://127.0.0.1:9' });
  for (const name of ['', '.', '..']) {
    await assert.rejects(service.get(name), RangeError);
    await assert.rejects(service.thread(name), RangeError);
  }
  const client = createAlmanacClient({ url: 'http://127.0.0.1:9' });
  await assert.rejects(client.getTool({ path: { name: '' } }), RangeError);
});

test('the environment says where the daemon is, and who asks, unless it is said', async () => {
  const here = await serving(json(200, memory), json(200, memory), json(200, memory));
  const there = await serving(json(200, memory));
  try {
    process.env['ALMANAC_URL'] = here.url;
    process.env['ALMANAC_TOKEN'] = 'secret';
    await createMemoryService().get('m');
    await createMemoryService({ token: 'own' }).get('m');
    await createMemoryService({ url: there.url }).get('m');
    process.env['ALMANAC_TOKEN'] = '';
    await createMemoryService().get('m');
  } finally {
    delete process.env['ALMANAC_URL'];
    delete process.env['ALMANAC_TOKEN'];
  }
  const tokens = [...here.asked, ...there.asked].map(({ headers }) => headers.authorization);
  assert.deepEqual(tokens, ['Bearer secret', 'Bearer own', undefined, 'Bearer secret']);
});

test('what no header can have is not sent', async () => {
  const { url, asked } = await serving();
  await assert.rejects(
    createMemoryService({ url, token: 'qq\nzz' }).get('m'),
    (error) => error instanceof TypeError && !/qq|zz/.test(inspect(error)),
  );
  await assert.rejects(createMemoryService({ url }).add('documents', 'c', {}, { idempotencyKey: '東' }), TypeError);
  assert.equal(asked.length, 0);
});

test('a service is somewhere', async () => {
  const both: ConnectionOptions = { url: 'http://127.0.0.1:9', socket: '/x' };
  assert.throws(() => createMemoryService(both), TypeError);
  assert.throws(() => createMemoryService({ url: 'no url' }), TypeError);
  assert.throws(
    () => createMemoryService({ url: 'http://a:secret@127.0.0.1' }),
    (error) => error instanceof TypeError && !/secret/.test(inspect(error)),
  );
  for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
    assert.throws(() => createMemoryService({ timeoutMs }), RangeError, `${timeoutMs}`);
  }
  for (const retries of [-1, 0.5]) {
    assert.throws(() => createMemoryService({ retries }), RangeError);
    await assert.rejects(createMemoryService().get('m', { retries }), RangeError);
  }
});

test('a unix socket carries requests and answers whole', async () => {
  const bodies: string[] = [];
  const { socket } = await servingSocket(async (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(request, 'end');
    bodies.push(Buffer.concat(chunks).toString());
    json(201, { ...memory, content: 'é'.repeat(100_000) })(request, response);
  });
  const added = await createMemoryService({ socket }).add('documents', 'ü', {});
  assert.equal(added.content.length, 100_000);
  assert.deepEqual(bodies, ['{"content":"ü","metadata":{}}']);
});

test('a unix socket has connections left for others, and for calls beside streams', { timeout: 10_000 }, async () => {
  const heardOut: RequestListener = (request, response) =>
    request.once('end', () => json(200, memory)(request, response));
  const { socket, asked, server } = await servingSocket(...Array<RequestListener>(200).fill(heardOut));
  // Whatever is closed is by the client.
  server.keepAliveTimeout = 0;
  let opened = 0;
  let closed = 0;
  server.on('connection', (connection) => {
    opened += 1;
    connection.once('close', () => (closed += 1));
  });
  const service = createMemoryService({ socket });
  await Promise.all(Array.from({ length: 100 }, () => service.get('m')));
  assert.ok(opened <= 8, `${opened} connections`);
  while (opened - closed > 2) await new Promise(setImmediate);
  const client = createAlmanacClient({ socket });
  const streams = Array.from({ length: 20 }, () => new TransformStream<string, string>());
  const heard = streams.map(({ readable }) => client.readStream({ body: readable }));
  const writers = streams.map(({ writable }) => writable.getWriter());
  const written = writers.map((writer) => writer.write('0:"hi"\n'));
  while (asked.length < 120) await new Promise(setImmediate);
  await client.getMemory({ path: { id: 'm' } });
  await Promise.all([...written, ...writers.map((writer) => writer.close()), ...heard]);
});
