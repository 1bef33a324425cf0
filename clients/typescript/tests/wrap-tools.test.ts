import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import * as ai5 from 'ai-5';
import { MockLanguageModelV2 } from 'ai-5/test';
import * as ai6 from 'ai-6';
import { MockLanguageModelV3 } from 'ai-6/test';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import { createAlmanacClient, wrapTools } from '../src/index.js';

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
  const { tools, forMessage } = wrapTools({ web_search: search, ours: search }, almanac, { sessionId: 'ai5' });
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
  const { tools, forMessage } = wrapTools({ web_search: search }, almanac, { sessionId: 'ai6' });
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
  assert.deepEqual((await almanac.getSession({ path: { name: 'ai6' } })).toolHistory, ['web_search']);
});

test('how a call came out is told', async () => {
  const almanac = createAlmanacClient({ url: daemon.url });
  const failing = (name: string) => ({
    execute: async (_: unknown, __: unknown): Promise<never> => {
      throw Object.assign(new Error('no'), { name });
    },
  });
  const told: unknown[] = [];
  const recordExecutions = async ({ body }: { body: unknown }) => {
    told.push((body as { outcome: string }).outcome);
    return { recorded: 1 };
  };
  const { tools } = wrapTools({ a: failing('TimeoutError'), b: failing('AbortError'), c: failing('Error') }, {
    ...almanac,
    recordExecutions,
  } as typeof almanac);
  for (const tool of Object.values(tools)) await assert.rejects(tool.execute({}, {}), { message: 'no' });
  assert.deepEqual(told, ['timeout', 'cancelled', 'error']);
});

test('without a daemon tools run, and all are offered', async () => {
  const almanac = createAlmanacClient({ url: 'http://127.0.0.1:9', retries: 0 });
  const errors: unknown[] = [];
  const { tools, forMessage } = wrapTools({ a: { execute: async () => 1 } }, almanac, {
    onError: (error) => errors.push(error),
  });
  assert.equal(await tools.a.execute(), 1);
  assert.deepEqual(await forMessage('x'), ['a']);
  assert.equal(errors.length, 2);
});
