import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import {
  addCognitiveProcessMemory,
  addDocumentMemory,
  addMessageMemory,
  addTaskMemory,
  CognitiveProcessType,
  createAgentId,
  createAlmanacClient,
  createChatId,
  createMemoryService,
  createMessageMetadata,
  createThoughtMetadata,
  createThreadId,
  createThreadInfo,
  createUserId,
  DocumentSource,
  ImportanceLevel,
  type MemoryService,
  type MessageCriteria,
  MessageRole,
  searchCognitiveProcesses,
  searchDocuments,
  searchMessages,
  searchTasks,
  type StructuredId,
  structuredIdToString,
  TaskPriority,
  TaskStatus,
} from '../src/index.js';
import { failure } from './failure.js';

let daemon: Daemon;
let memoryService: MemoryService;
before(async () => {
  daemon = await startDaemon();
  memoryService = createMemoryService({ url: daemon.url });
});
after(() => daemon.stop());

const [userId, agentId, chatId] = [createUserId('john-doe'), createAgentId('assistant'), createChatId('general')];

/** Says something at a position of a thread. */
function say(thread: string, position: number, content: string, options?: Parameters<typeof addMessageMemory>[7]) {
  const info = createThreadInfo(thread, position);
  return addMessageMemory(memoryService, content, MessageRole.USER, userId, agentId, chatId, info, options);
}

test('creating and storing a message', async () => {
  const threadInfo = createThreadInfo(`thread_${Date.now()}`, 0);
  const added = await addMessageMemory(
    memoryService,
    'Hello, how can I help you today?',
    MessageRole.ASSISTANT,
    userId,
    agentId,
    chatId,
    threadInfo,
    {
      importance: ImportanceLevel.MEDIUM,
      messageType: 'greeting',
      metadata: {
        tags: ['initial-contact', 'greeting'],
      },
    },
  );
  assert.deepEqual(added.metadata, {
    role: 'assistant',
    userId,
    agentId,
    chatId,
    thread: threadInfo,
    importance: 'medium',
    importance_score: 0.5,
    tags: ['initial-contact', 'greeting'],
    schemaVersion: '1.0.0',
    messageType: 'greeting',
  });
  assert.deepEqual([added.kind, added.version, added.content], ['message', 1, 'Hello, how can I help you today?']);
  assert.match(added.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/);
  const found = await searchMessages(memoryService, { threadId: threadInfo.id });
  assert.deepEqual(found, [added] as typeof found);
});

test('creating and storing a thought', async () => {
  const added = await addCognitiveProcessMemory(
    memoryService,
    'The user seems to be asking about machine learning concepts. I should provide a clear explanation with examples.',
    CognitiveProcessType.THOUGHT,
    agentId,
    {
      contextId: 'conversation-123',
      importance: ImportanceLevel.MEDIUM,
      metadata: {
        category: 'reasoning',
        tags: ['machine-learning', 'explanation-planning'],
      },
    },
  );
  const { processType, contextId, category, tags } = added.metadata;
  assert.deepEqual(
    [added.kind, processType, contextId, category],
    ['cognitive_process', 'thought', 'conversation-123', 'reasoning'],
  );
  assert.deepEqual(tags, ['machine-learning', 'explanation-planning']);
  const found = await searchCognitiveProcesses(memoryService, {
    agentId,
    processType: 'thought',
    contextId: 'conversation-123',
  });
  assert.deepEqual(
    found.map(({ id }) => id),
    [added.id],
  );
});

test('searching for related messages', async () => {
  for (const position of [3, 0, 11, 2, 1]) await say('thread-123', position, `message ${position}`);
  const messagesInThread = await searchMessages(
    memoryService,
    {
      threadId: 'thread-123',
    },
    {
      limit: 10,
      sortBy: 'thread.position',
      sortDirection: 'asc',
    },
  );
  const lines: string[] = [];
  messagesInThread.forEach((message) => {
    lines.push(`[${message.metadata.role}]: ${message.content}`);
  });
  assert.deepEqual(
    lines,
    [0, 1, 2, 3, 11].map((position) => `[user]: message ${position}`),
  );
  assert.deepEqual([messagesInThread.total, messagesInThread.nextCursor], [5, undefined]);
  const thread = await memoryService.thread('thread-123', { chatId });
  assert.deepEqual(
    thread.items.map(({ metadata }) => metadata.thread.position),
    [0, 1, 2, 3, 11],
  );
  assert.deepEqual([thread.gaps, thread.chatId, thread.items.total], [[{ from: 4, to: 10 }], chatId, 5]);
  const taken = await failure(say('thread-123', 3, 'again'));
  assert.deepEqual([taken.status, taken.code], [409, 'position-taken']);
});

test('every other kind of thinking is stored and found', async () => {
  const types = Object.values(CognitiveProcessType);
  for (const type of types) await addCognitiveProcessMemory(memoryService, type, type, agentId, { contextId: 'kinds' });
  for (const processType of types) {
    const found = await searchCognitiveProcesses(memoryService, { contextId: 'kinds', processType });
    assert.deepEqual(
      found.map(({ content }) => content),
      [processType],
    );
  }
});

test('documents and tasks are stored and found', async () => {
  const manual = await addDocumentMemory(memoryService, 'Turn it off and on.', DocumentSource.FILE, {
    title: 'Manual',
    fileName: 'manual.txt',
    contentType: 'text/plain',
    agentId,
    userId,
    metadata: { authors: ['A', 'B'] },
  });
  const byAuthor = await searchDocuments(memoryService, { authors: 'B', contentType: 'text/plain' });
  assert.deepEqual(
    byAuthor.map(({ id }) => id),
    [manual.id],
  );
  assert.deepEqual(manual.metadata.authors, ['A', 'B']);
  const [parent, other] = [TaskStatus.IN_PROGRESS, TaskStatus.PENDING];
  const whole = await addTaskMemory(memoryService, 'Ship it', 'Ship', parent, TaskPriority.HIGH, agentId);
  const part = await addTaskMemory(memoryService, 'Pack it', 'Pack', other, TaskPriority.URGENT, agentId, {
    parentTaskId: whole.id,
    assignedTo: userId,
    dueDate: '2026-12-24T18:00:00Z',
    metadata: { progress: 0.25 },
  });
  const parts = await searchTasks(memoryService, { parentTaskId: whole.id, assignedTo: structuredIdToString(userId) });
  assert.deepEqual(
    parts.map(({ id, metadata }) => [id, metadata.progress]),
    [[part.id, 0.25]],
  );
  const { items: related } = await memoryService.relations(part.id);
  assert.deepEqual(
    related.map(({ id, direction, relation }) => [id, direction, relation]),
    [[whole.id, 'cameFrom', 'parentTaskId']],
  );
});

test('what is said explicitly wins over metadata, and keys of one’s own come back', async () => {
  const own = { mood: 'curious', nested: { list: [1, null, { deep: true }] } };
  const added = await say('merge', 0, 'hi', {
    messageType: 'greeting',
    importance: 'high',
    metadata: {
      messageType: 'other',
      importance: 'low',
      importance_score: 0.1,
      role: 'tool',
      thread: { id: 'x', position: 9 },
      ...own,
    },
  });
  const { messageType, importance, importance_score, role, thread, mood, nested } = added.metadata;
  assert.deepEqual([messageType, importance, importance_score, role], ['greeting', 'high', 0.75, 'user']);
  assert.deepEqual([thread, { mood, nested }], [{ id: 'merge', position: 0 }, own]);
  const found = await searchMessages(memoryService, { 'metadata.mood': 'curious' });
  assert.deepEqual(
    found.map(({ id }) => id),
    [added.id],
  );
});

test('all faults come at once, with pointers', async () => {
  const thread = { id: 'faulty', position: -1 };
  const options = { metadata: { tagz: ['x'], importance_score: 2 } };
  const error = await failure(addMessageMemory(memoryService, 'x', 'robot', userId, 'no id', chatId, thread, options));
  assert.deepEqual([error.status, error.code], [422, 'invalid-body']);
  const pointers = ['agentId', 'importance_score', 'role', 'tagz', 'thread/position'].map((key) => `/metadata/${key}`);
  assert.deepEqual(error.errors.map(({ pointer }) => pointer).sort(), pointers);
  assert.match(error.errors.find(({ pointer }) => pointer === '/metadata/tagz')?.detail ?? '', /did you mean `tags`\?/);
  assert.equal((await searchMessages(memoryService, { threadId: 'faulty' })).total, 0);
  const words = await failure(
    searchTasks(memoryService, { status: 'done' as 'failed' }, { sortDirection: 'up' as 'asc' }),
  );
  assert.deepEqual(words.errors.map(({ pointer }) => pointer).sort(), ['/criteria/status', '/options/sortDirection']);
  const missing = await failure(addDocumentMemory(memoryService, 'x', 'web', {} as { agentId: StructuredId }));
  assert.deepEqual(
    missing.errors.map(({ pointer }) => pointer),
    ['/metadata'],
  );
  assert.match(missing.errors[0]?.detail ?? '', /agentId/);
});

test('ids come back as they went in', async () => {
  const names = ['a:b', '100%', '%3A', 'é東😀', ' ', '"\\', '../x', 'x'.repeat(512)];
  for (const [position, name] of names.entries()) {
    const id: StructuredId = position % 2 === 0 ? createUserId(name) : { ...createThreadId(name), version: position };
    const thread = createThreadInfo('ids', position);
    const added = await addMessageMemory(
      memoryService,
      name,
      'user',
      id,
      agentId,
      structuredIdToString(chatId),
      thread,
    );
    assert.deepEqual([added.metadata.userId, added.metadata.chatId], [id, chatId]);
    for (const asked of [id, structuredIdToString(id)]) {
      const found = await searchMessages(memoryService, { userId: asked });
      assert.deepEqual(
        found.map((message) => message.id),
        [added.id],
        name,
      );
    }
  }
});

test('pages follow each other to the end', async () => {
  for (let position = 0; position < 25; position += 1) await say('pages', position, `page ${position}`);
  const options = { sortBy: 'thread.position', sortDirection: 'desc', limit: 10 } as const;
  const expected = Array.from({ length: 25 }, (_, index) => 24 - index);
  const first = await searchMessages(memoryService, { threadId: 'pages' }, options);
  assert.deepEqual([first.length, first.total], [10, 25]);
  const second = await searchMessages(memoryService, { threadId: 'pages' }, { ...options, cursor: first.nextCursor! });
  assert.deepEqual(
    second.map(({ metadata }) => metadata.thread.position),
    expected.slice(10, 20),
  );
  const third = await searchMessages(memoryService, { threadId: 'pages' }, { ...options, offset: 20 });
  assert.deepEqual([third.length, third.total, third.nextCursor], [5, 25, undefined]);
  const positions: number[] = [];
  for await (const { metadata } of memoryService.each('messages', { threadId: 'pages' }, options))
    positions.push(metadata.thread.position);
  assert.deepEqual(positions, expected);
  assert.deepEqual(Object.keys(first), [...Array(10).keys()].map(String), 'a page prints as an array');
});

test('all kinds are searched at once', async () => {
  const tags = ['of every kind'];
  await addDocumentMemory(memoryService, 'Whales sing.', 'web', { agentId, metadata: { tags } });
  await addTaskMemory(memoryService, 'Listen to whales.', 'Whales', TaskStatus.PENDING, TaskPriority.LOW, agentId, {
    metadata: { tags },
  });
  const found = await memoryService.searchAll({ tags, agentId }, { query: 'whales', limit: 5 });
  assert.deepEqual([found.map(({ kind }) => kind).sort(), found.total], [['document', 'task'], 2]);
});

test('a loop that puts off what it reads meets each once', async () => {
  const contextId = createThreadId('loop').id;
  const due = (day: number) => new Date(Date.UTC(2027, 0, day)).toISOString();
  for (let day = 1; day <= 12; day += 1) {
    const own = { dueDate: due(day), metadata: { project: contextId } };
    await addTaskMemory(memoryService, `task ${day}`, `${day}`, TaskStatus.PENDING, TaskPriority.LOW, agentId, own);
  }
  const met: string[] = [];
  const criteria = { 'metadata.project': contextId } as const;
  for await (const task of memoryService.each('tasks', criteria, { sortBy: 'dueDate', limit: 5 })) {
    met.push(task.content);
    const later = new Date(Date.parse(task.metadata.dueDate ?? '') + 40 * 86_400_000).toISOString();
    await memoryService.update(task.id, { metadata: { dueDate: later } });
  }
  assert.deepEqual(
    met,
    Array.from({ length: 12 }, (_, index) => `task ${index + 1}`),
  );
});

test('a criterion that was lost on the way finds nobody’s', async () => {
  const lost: { userId?: StructuredId } = {};
  await assert.rejects(
    searchMessages(memoryService, { userId: lost.userId } as MessageCriteria),
    /criteria\.userId is undefined/,
  );
  const { status, errors } = await failure(memoryService.search('messages', null as unknown as MessageCriteria));
  assert.deepEqual([status, errors.map(({ pointer }) => pointer)], [422, ['/criteria']]);
});

test('a text finds what is about it, with a score', async () => {
  await addDocumentMemory(memoryService, 'Tomatoes need sun, warmth and water.', 'web', {
    agentId,
    metadata: { tags: ['garden'] },
  });
  await addDocumentMemory(memoryService, 'The train to Basel leaves at noon.', 'web', {
    agentId,
    metadata: { tags: ['travel'] },
  });
  const [best] = await searchDocuments(memoryService, { source: 'web' }, { query: 'when does the train leave?' });
  assert.match(best?.content ?? '', /Basel/);
  assert.ok((best?.score ?? 0) > 0);
  const tagged = await searchDocuments(memoryService, { tags: 'garden' });
  assert.deepEqual(
    tagged.map(({ content, score }) => [content.slice(0, 8), score]),
    [['Tomatoes', undefined]],
  );
});

test('a memory is changed, deleted and restored, and its history kept', async () => {
  const added = await memoryService.add(
    'cognitive-processes',
    'first',
    createThoughtMetadata(agentId, { tags: ['a'], source: 's' }),
  );
  const changed = await memoryService.update(
    added.id,
    { content: 'second', metadata: { source: null, tags: ['b'] } },
    { ifVersion: 1 },
  );
  assert.deepEqual([changed.content, changed.version, changed.metadata.tags], ['second', 2, ['b']]);
  assert.ok(!Object.hasOwn(changed.metadata, 'source'));
  const late = await failure(memoryService.update(added.id, { content: 'lost' }, { ifVersion: 1 }));
  assert.deepEqual([late.status, late.code], [412, 'version-changed']);
  const history = await memoryService.history(added.id);
  assert.deepEqual([history.total, history[0]?.version, history[0]?.content], [1, 1, 'first']);
  const deleted = await memoryService.delete(added.id);
  assert.equal(deleted.metadata.is_deleted, true);
  assert.equal((await failure(memoryService.get(added.id))).status, 404);
  assert.equal((await memoryService.get(added.id, { includeDeleted: true })).id, added.id);
  const restored = await memoryService.restore(added.id);
  assert.equal(restored.metadata.is_deleted, undefined);
  assert.equal((await memoryService.get(added.id)).content, 'second');
  const [unknown, thread] = await Promise.all([
    failure(memoryService.get('nope')),
    failure(memoryService.thread('nope')),
  ]);
  assert.deepEqual([unknown.code, thread.code], ['unknown-memory', 'unknown-thread']);
});

test('threads, histories and relations are read as far as is asked', async () => {
  for (const position of [0, 1, 2]) await say('far', position, `far ${position}`);
  const first = await memoryService.thread('far', { limit: 2 });
  const rest = await memoryService.thread('far', { limit: 2, cursor: first.items.nextCursor! });
  assert.deepEqual([first.items.length, rest.items.map(({ content }) => content)], [2, ['far 2']]);
  const { id } = first.items[0]!;
  for (const content of ['again', 'and again']) await memoryService.update(id, { content });
  const [latest, ...more] = await memoryService.history(id, { limit: 1 });
  assert.deepEqual([latest?.version, more], [2, []]);
  const earlier = await memoryService.history(id, { limit: 1, cursor: '2' });
  assert.deepEqual([earlier[0]?.content, earlier.total], ['far 0', 2]);
  await memoryService.delete(id);
  assert.equal((await failure(memoryService.history(id))).status, 404);
  assert.equal((await memoryService.history(id, { includeDeleted: true })).total, 3);
  let before: string[] = [];
  for (const content of ['root', 'child', 'grandchild']) {
    const options = { metadata: { influencedBy: before } };
    before = [(await addCognitiveProcessMemory(memoryService, content, 'thought', agentId, options)).id];
  }
  const depths = await Promise.all([{}, { depth: 2 }].map((options) => memoryService.relations(before[0]!, options)));
  assert.deepEqual(
    depths.map(({ items }) => items.length),
    [1, 2],
  );
});

test('told twice under one key, it is added once', async () => {
  const tell = (content: string) => say('once', 0, content, { idempotencyKey: 'key-1' });
  const [first, again] = [await tell('x'), await tell('x')];
  assert.deepEqual(again, first);
  assert.equal((await failure(tell('y'))).code, 'idempotency-key-reused');
  assert.equal((await searchMessages(memoryService, { threadId: 'once' })).total, 1);
});

test('a service through the socket sees the same', async () => {
  const { id } = await say('socket', 0, 'é');
  const service = createMemoryService({ socket: daemon.socket });
  assert.equal((await service.get(id)).content, 'é');
  const metadata = createMessageMetadata(MessageRole.TOOL, userId, agentId, chatId, createThreadInfo('socket', 1));
  await service.add('messages', 'ü', metadata);
  assert.deepEqual(
    (await memoryService.thread('socket')).items.map(({ content }) => content),
    ['é', 'ü'],
  );
  const client = createAlmanacClient({ url: daemon.url });
  assert.equal((await client.getMemory({ path: { id } })).id, id);
});

test('a text that was cut inside a character is kept', async () => {
  const service = createMemoryService({ url: daemon.url });
  const { id } = await service.add('documents', 'whale 🐳'.slice(0, 7), { source: 'user', agentId: 'agent:a:b' });
  assert.equal((await service.get(id)).content, 'whale \ufffd');
});
