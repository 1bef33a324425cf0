/** Every option and every criterion of the wrappers, each by itself. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { type Daemon, startDaemon } from '../scripts/daemon.js';
import {
  addCognitiveProcessMemory,
  addDocumentMemory,
  addMessageMemory,
  addTaskMemory,
  type CognitiveProcessCriteria,
  CognitiveProcessType,
  createAgentId,
  createChatId,
  createMemoryService,
  createThreadInfo,
  createUserId,
  type DocumentCriteria,
  DocumentSource,
  ImportanceLevel,
  type MemoryService,
  type MessageCriteria,
  MessageRole,
  searchCognitiveProcesses,
  searchDocuments,
  searchMessages,
  searchTasks,
  type TaskCriteria,
  TaskPriority,
  TaskStatus,
} from '../src/index.js';

let daemon: Daemon;
let memoryService: MemoryService;
before(async () => {
  daemon = await startDaemon();
  memoryService = createMemoryService({ url: daemon.url });
});
after(() => daemon.stop());

const NAMES = ['one', 'two'] as const;

/** Each criterion alone finds the second of two memories. */
async function check<C extends object>(criteria: C[], search: (criteria: C) => Promise<{ content: string }[]>) {
  for (const asked of criteria) {
    const found = await search(asked);
    assert.deepEqual(
      found.map(({ content }) => content),
      ['two'],
      JSON.stringify(asked),
    );
  }
}

test('messages', async () => {
  const roles = [MessageRole.SYSTEM, MessageRole.TOOL];
  for (const [number, name] of NAMES.entries()) {
    const { metadata } = await addMessageMemory(
      memoryService,
      name,
      roles[number]!,
      createUserId(name),
      createAgentId(name),
      createChatId(name),
      createThreadInfo(name, 0, 'parent'),
      {
        messageType: name,
        importance: ImportanceLevel.HIGH,
        attachments: [{ type: 'image', url: 'u' }],
        metadata: { category: 'c', agentId: 'agent:agent:other', attachments: [] },
      },
    );
    assert.deepEqual(metadata.attachments, [{ type: 'image', url: 'u' }]);
    assert.deepEqual(metadata.thread, { id: name, position: 0, parentId: 'parent' });
    const { messageType, importance, importance_score, category, schemaVersion } = metadata;
    const said = [messageType, importance, importance_score, category, schemaVersion];
    assert.deepEqual(said, [name, 'high', 0.75, 'c', '1.0.0']);
  }
  await check<MessageCriteria>(
    [
      { userId: createUserId('two') },
      { agentId: createAgentId('two') },
      { chatId: createChatId('two') },
      { role: 'tool' },
      { threadId: 'two' },
      { messageType: 'two' },
    ],
    (criteria) => searchMessages(memoryService, criteria),
  );
});

test('cognitive processes', async () => {
  const types = [CognitiveProcessType.EVALUATION, CognitiveProcessType.DECISION];
  for (const [number, name] of NAMES.entries()) {
    const agentId = createAgentId(name);
    const { metadata } = await addCognitiveProcessMemory(memoryService, name, types[number]!, agentId, {
      contextId: name,
      relatedTo: number === 0 ? name : [name, 'both'],
      importance: ImportanceLevel.LOW,
      metadata: { contextId: 'other', relevance: 0.5, processType: 'thought' },
    });
    assert.deepEqual(metadata.relatedTo, number === 0 ? ['one'] : ['two', 'both'], 'a list comes back');
    assert.deepEqual([metadata.importance, metadata.relevance, metadata.schemaVersion], ['low', 0.5, '1.0.0']);
  }
  await check<CognitiveProcessCriteria>(
    [{ agentId: createAgentId('two') }, { processType: 'decision' }, { contextId: 'two' }, { relatedTo: 'two' }],
    (criteria) => searchCognitiveProcesses(memoryService, criteria),
  );
});

test('documents', async () => {
  const sources = [DocumentSource.FILE, DocumentSource.WEB];
  for (const [number, name] of NAMES.entries()) {
    const { metadata } = await addDocumentMemory(memoryService, name, sources[number]!, {
      title: name,
      contentType: name,
      url: 'u',
      fileName: 'f',
      agentId: createAgentId(name),
      userId: createUserId(name),
      importance: ImportanceLevel.CRITICAL,
      metadata: { title: 'other', fileSize: 7, source: 'api' },
    });
    const { url, fileName, importance, fileSize, source, schemaVersion } = metadata;
    const said = [url, fileName, importance, fileSize, source, schemaVersion];
    assert.deepEqual(said, ['u', 'f', 'critical', 7, sources[number], '1.0.0']);
  }
  await check<DocumentCriteria>(
    [
      { source: 'web' },
      { agentId: createAgentId('two') },
      { userId: createUserId('two') },
      { title: 'two' },
      { contentType: 'two' },
    ],
    (criteria) => searchDocuments(memoryService, criteria),
  );
});

test('tasks, and how all kinds are searched', async () => {
  const [statuses, priorities] = [
    [TaskStatus.PENDING, TaskStatus.FAILED],
    [TaskPriority.LOW, TaskPriority.URGENT],
  ];
  for (const [number, name] of NAMES.entries()) {
    const agentId = createAgentId(name);
    const { metadata } = await addTaskMemory(
      memoryService,
      name,
      'title',
      statuses[number]!,
      priorities[number]!,
      agentId,
      {
        description: 'd',
        assignedTo: createUserId(name),
        dueDate: '2026-12-24T18:00:00Z',
        parentTaskId: name,
        importance: ImportanceLevel.MEDIUM,
        metadata: { description: 'other', attemptCount: 2, title: 'other' },
      },
    );
    const { title, description, dueDate, importance, attemptCount, schemaVersion } = metadata;
    const said = [title, description, dueDate, importance, attemptCount, schemaVersion];
    assert.deepEqual(said, ['title', 'd', '2026-12-24T18:00:00Z', 'medium', 2, '1.0.0']);
  }
  await check<TaskCriteria>(
    [
      { agentId: createAgentId('two') },
      { assignedTo: createUserId('two') },
      { status: 'failed' },
      { priority: 'urgent' },
      { parentTaskId: 'two' },
    ],
    (criteria) => searchTasks(memoryService, criteria),
  );
  const [one, two] = NAMES;
  const searches: [Parameters<typeof searchTasks>[2], string[]][] = [
    [undefined, [two, one]],
    [{ query: 'one' }, [one, two]],
    [{ limit: 1 }, [two]],
    [{ offset: 1 }, [one]],
    [{ sortBy: 'parentTaskId' }, [one, two]],
    [{ sortBy: 'parentTaskId', sortDirection: 'asc' }, [one, two]],
    [{ sortBy: 'parentTaskId', sortDirection: 'desc' }, [two, one]],
  ];
  for (const [options, expected] of searches) {
    const found = await searchTasks(memoryService, {}, options);
    assert.deepEqual(
      found.map(({ content }) => content),
      expected,
      JSON.stringify(options),
    );
  }
});

test('what is sent says its schema version, and an older one is left to the daemon', async () => {
  const sent: object[] = [];
  const add: MemoryService['add'] = (_collection, _content, metadata) => {
    sent.push(metadata);
    return Promise.reject(new Error('nowhere'));
  };
  const agentId = createAgentId('a');
  for (const metadata of [{}, { schemaVersion: '0.9.0' }]) {
    await assert.rejects(addCognitiveProcessMemory({ add }, 'x', 'thought', agentId, { metadata }), /nowhere/);
  }
  const whole = { processType: 'thought', agentId };
  assert.deepEqual(sent, [
    { schemaVersion: '1.0.0', ...whole },
    { schemaVersion: '0.9.0', ...whole },
  ]);
});
