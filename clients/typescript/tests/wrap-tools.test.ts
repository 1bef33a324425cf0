import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import * as ai5 from 'ai-5';
import { MockLanguageModelV2 } from 'ai-5/test';
import * as ai6 from 'ai-6';
import { MockLanguageModelV3 } from 'ai-6/test';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import { type AlmanacError, createAlmanacClient, wrapTools } from '../src/index.js';
import { nobody, serving, silent } from './serving.js';

let daemon: Daemon;
before(async () => {
  daemon = await startDaemon('', join('..', '..', 'tool_metadata'));
});
after(() => daemon.stop());

const call = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 'web_search', input: '{"query":"whales"}' };

test('with the AI SDK 5, calls are recorded and tools narrowed', async () => {
  const almanac = createAlmanacClient({ url: daemon.url });
  const search = ai5.tool({
    inputSchema: ai5.jsonSchema<{ query: string }>({ type: 'object', properties: { query: { type: 'string' } } }),
    execute: async ({ query }) => `about ${query}`,
  });
  const { tools, forMessage, settled } = wrapTools({ web_search: search, ours: search }, almanac, { sessionId: 'ai5' });
  const activeTools = await forMessage('search the web for news about whales');
  assert.deepEqual(activeTools, ['web_search', 'ours']);
  const model = new MockLanguageModelV2({
    doGenerate: async () => ({
      finishReason: 'tool-calls',
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      content: [call],
      warnings: [],
    }),
  });
  const { toolResults } = await ai5.generateText({ model, tools, activeTools, prompt: 'whales' });
  assert.deepEqual(
    toolResults.map(({ output }) => output),
    ['about whales'],
  );
  await settled();
  assert.deepEqual((await almanac.getSession({ path: { name: 'ai5' } })).toolHistory, ['web_search']);
});

test('with the AI SDK 6, they are as well', async () => {
  const almanac = createAlmanacClient({ url: daemon.url });
  const search = ai6.tool({
    inputSchema: ai6.jsonSchema<{ query: string }>({ type: 'object', properties: { query: { type: 'string' } } }),
    execute: async function* ({ query }) {
      yield 'searching';
      yield `about ${query}`;
    },
  });
  const { tools, forMessage, settled } = wrapTools({ web_search: search }, almanac, { sessionId: 'ai6' });
  const activeTools = await forMessage('search the web for news about whales');
  const model = new MockLanguageModelV3({
    doGenerate: async () => ({
      finishReason: { unified: 'tool-calls', raw: undefined },
      usage: {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 },
      },
      content: [call],
      warnings: [],
    }),
  });
  const { toolResults } = await ai6.generateText({ model, tools, activeTools, prompt: 'whales' });
  assert.deepEqual(
    toolResults.map(({ output }) => output),
    ['about whales'],
  );
  await settled();
  assert.deepEqual((await almanac.getSession({ path: { name: 'ai6' } })).toolHistory, ['web_search']);
});

type Told = { tool_name: string; outcome: string; timestamp: number; idempotency_key: string };

/** A daemon that is told of calls, and answers when `answer` does. */
function recording(answer: () => Promise<unknown> = async () => ({ recorded: 1 })) {
  const told: Told[] = [];
  const recordExecutions = ({ body }: { body: unknown }) => {
    told.push(body as Told);
    return answer();
  };
  const almanac = createAlmanacClient({ url: daemon.url });
  return { told, almanac: { ...almanac, recordExecutions } as typeof almanac };
}

test('how a call came out is told, however it failed', async () => {
  const { told, almanac } = recording();
  const fail = (name: string): never => {
    throw Object.assign(new Error('no'), { name });
  };
  const later = (name: string) => ({ execute: async () => fail(name) });
  const wrapped = wrapTools(
    {
      a: later('TimeoutError'),
      b: later('AbortError'),
      c: later('Error'),
      d: { execute: () => fail('TimeoutError') },
      e: { execute: () => fail('Error') },
      f: {
        execute: async function* () {
          yield fail('Error');
        },
      },
    },
    almanac,
  );
  const { f, ...plain } = wrapped.tools;
  for (const tool of Object.values(plain)) await assert.rejects(async () => tool.execute(), { message: 'no' });
  await assert.rejects(f.execute().next(), { message: 'no' });
  await wrapped.settled();
  assert.deepEqual(
    told.map(({ tool_name, outcome }) => [tool_name, outcome]),
    [
      ['a', 'timeout'],
      ['b', 'cancelled'],
      ['c', 'error'],
      ['d', 'timeout'],
      ['e', 'error'],
      ['f', 'error'],
    ],
  );
});

test('each call has a record of its own, whatever ids the model gives', async () => {
  const almanac = createAlmanacClient({ url: daemon.url });
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  const execute = async (_: unknown, __: unknown) => 1;
  const before = await almanac.listExecutions();
  for (const options of [{ onError }, { onError, sessionId: 'repeats' }]) {
    for (let turn = 0; turn < 2; turn += 1) {
      const { tools, settled } = wrapTools({ web_search: { execute }, read_file: { execute } }, almanac, options);
      for (const tool of Object.values(tools)) {
        for (let step = 0; step < 2; step += 1) await tool.execute({}, { toolCallId: 'call_0' });
      }
      await settled();
    }
  }
  assert.deepEqual(errors, []);
  assert.equal((await almanac.listExecutions()).items.length - before.items.length, 16);
});

test('no result waits for its record, and who asks does', { timeout: 10_000 }, async () => {
  let answered = () => {};
  const hung = new Promise<void>((done) => (answered = done));
  const { told, almanac } = recording(() => hung);
  const errors: unknown[] = [];
  const { tools, forMessage, settled } = wrapTools(
    {
      a: { execute: async () => 1 },
      b: {
        execute: async function* () {
          yield 2;
        },
      },
    },
    almanac,
    { choiceTimeoutMs: 20, onError: (error) => errors.push(error) },
  );
  assert.equal(await tools.a.execute(), 1);
  for await (const part of tools.b.execute()) assert.equal(part, 2);
  assert.deepEqual(await forMessage('x'), ['a', 'b']);
  assert.deepEqual(
    errors.map((error) => (error as AlmanacError).code),
    ['timeout'],
  );
  let isSettled = false;
  const all = settled().then(() => (isSettled = true));
  await new Promise(setImmediate);
  assert.deepEqual([told.length, isSettled], [1, false], 'one after the other');
  answered();
  await all;
});

test('records keep the order of the calls, and when they ended', async () => {
  const errors: unknown[] = [];
  const { told, almanac } = recording(async () => {
    // The first of them is told to come again, which takes longer than any other.
    if (told.length === 1) for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    ended.push(told.length);
    if (told.length === 2) throw new Error('gone');
  });
  const ended: number[] = [];
  const { tools, settled } = wrapTools(
    { a: { execute: async () => 1 }, b: { execute: async () => 1 }, c: { execute: async () => 1 } },
    almanac,
    { onError: (error) => errors.push(error) },
  );
  const before = Date.now();
  for (const tool of Object.values(tools)) await tool.execute();
  const after = Date.now();
  await settled();
  assert.deepEqual(ended, [1, 2, 3]);
  assert.deepEqual(
    told.map(({ tool_name }) => tool_name),
    ['a', 'b', 'c'],
  );
  assert.ok(told.every(({ timestamp }) => before <= timestamp && timestamp <= after));
  assert.equal(errors.length, 1);
});

test('a call counts for the message before it', async () => {
  const order: string[] = [];
  const { almanac } = recording(async () => {
    await new Promise(setImmediate);
    order.push('recorded');
  });
  const qualify = async () => {
    order.push('qualified');
    return { availableTools: [] };
  };
  const { tools, forMessage } = wrapTools({ a: { execute: async () => 1 } }, {
    ...almanac,
    qualify,
  } as unknown as typeof almanac);
  await tools.a.execute();
  await forMessage('x');
  assert.deepEqual(order, ['recorded', 'qualified']);
});

test('a message does not wait long for records', { timeout: 10_000 }, async () => {
  const { almanac } = recording(() => new Promise(() => {}));
  const errors: unknown[] = [];
  const { tools, forMessage } = wrapTools({ web_search: { execute: async () => 1 } }, almanac, {
    onError: (error) => errors.push(error),
  });
  await tools.web_search.execute();
  assert.deepEqual(await forMessage('search the web for news'), ['web_search']);
  assert.deepEqual(errors, []);
});

test('a daemon that hangs holds no message for longer than it may', { timeout: 10_000 }, async () => {
  const { url } = await serving(silent, silent);
  const errors: unknown[] = [];
  const { forMessage } = wrapTools({ a: { execute: async () => 1 } }, createAlmanacClient({ url }), {
    choiceTimeoutMs: 20,
    onError: (error) => errors.push(error),
  });
  assert.deepEqual(await forMessage('x'), ['a']);
  assert.deepEqual(
    errors.map((error) => (error as AlmanacError).code),
    ['timeout'],
  );
  for (const choiceTimeoutMs of [0, Number.NaN, 2 ** 31]) {
    assert.throws(() => wrapTools({}, createAlmanacClient(), { choiceTimeoutMs }), RangeError);
  }
});

test('without a daemon tools run, and all are offered, even if nobody can be told', async () => {
  const almanac = createAlmanacClient({ url: await nobody(), retries: 0 });
  const errors: unknown[] = [];
  const { tools, forMessage, settled } = wrapTools({ a: { execute: async () => 1 } }, almanac, {
    onError: (error) => {
      errors.push(error);
      throw error;
    },
  });
  assert.equal(await tools.a.execute(), 1);
  assert.deepEqual(await forMessage('x'), ['a']);
  await settled();
  assert.equal(errors.length, 2);
});
