import assert from 'node:assert/strict';
import { test } from 'node:test';

import { addDocumentMemory, createAlmanacClient, createMemoryService, searchDocuments } from '../src/index.js';
import { OPERATIONS, type Operations } from '../src/openapi.js';
import { failure } from './failure.js';
import { busy, json, serving } from './serving.js';

type Name = keyof Operations;
type Method = (request: object) => Promise<unknown>;

const reading = ['checkPlan', 'checkTools', 'enrich', 'estimate', 'getMetadata', 'matchPresets', 'qualify'];
const searching = ['searchCognitiveProcesses', 'searchDocuments', 'searchMemories', 'searchMessages', 'searchTasks'];
const keyed: Name[] = ['addCognitiveProcess', 'addDocument', 'addMessage', 'addTask', 'recordExecutions'];
const conditional: Name[] = ['deleteMemory', 'restoreMemory', 'updateMemory'];

const changing = (Object.keys(OPERATIONS) as Name[]).filter((name) => OPERATIONS[name].method !== 'GET');
const method = (url: string, name: Name) => createAlmanacClient({ url })[name] as unknown as Method;
const requestOf = (name: Name) => ({
  path: { name: 'a', id: 'a' },
  ...('sends' in OPERATIONS[name] && { body: name === 'readStream' ? 'a' : {} }),
});

test('what changes nothing is repeated, and what has a key', async () => {
  const repeated: string[] = [];
  for (const name of changing) {
    const { url, asked } = await serving(busy('0'), json(200, {}));
    await method(url, name)(requestOf(name)).catch(() => {});
    if (asked.length === 2) repeated.push(name);
    const keys = asked.map(({ headers }) => headers['idempotency-key']);
    assert.equal(keys[0] !== undefined, keyed.includes(name), name);
    assert.equal(new Set(keys).size, 1, name);
  }
  assert.deepEqual(repeated.sort(), [...reading, ...searching, ...keyed].sort());
});

test('a key and a version of the caller’s are sent where the daemon takes them', async () => {
  for (const name of changing) {
    const { url, asked } = await serving(json(200, {}));
    await method(url, name)({ ...requestOf(name), idempotencyKey: 'k', ifVersion: 7 }).catch(() => {});
    assert.equal(asked[0]?.headers['idempotency-key'], keyed.includes(name) ? 'k' : undefined, name);
    assert.equal(asked[0]?.headers['if-match'], conditional.includes(name) ? '"7"' : undefined, name);
  }
});

test('the functions for a kind take what any call does', async () => {
  const { url, asked } = await serving(busy('0'), busy('0'), json(200, {}));
  const service = createMemoryService({ url });
  await failure(addDocumentMemory(service, 'c', 'file', { agentId: 'agent:a:b', retries: 0 }));
  await failure(searchDocuments(service, {}, { retries: 0 }));
  assert.equal(asked.length, 2);
});

test('their types are known', () => {
  const client = createAlmanacClient();
  const typed = () => [
    client.addDocument({ body: { content: 'c', metadata: {} as never }, idempotencyKey: 'k', retries: 1 }),
    client.updateMemory({ path: { id: 'm' }, body: {}, ifVersion: 1 }),
    // @ts-expect-error: nothing is remembered under a key of a search.
    client.searchTasks({ body: {}, idempotencyKey: 'k' }),
  ];
  assert.equal(typed.length, 0);
});
