import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  CognitiveProcessType,
  createAgentId,
  createChatId,
  createDecisionMetadata,
  createDocumentMetadata,
  createEnhancedMessageMetadata,
  createEvaluationMetadata,
  createInsightMetadata,
  createMessageMetadata,
  createPlanningMetadata,
  createReflectionMetadata,
  createTaskMetadata,
  createThoughtMetadata,
  createThreadInfo,
  createUserId,
  DocumentSource,
  ImportanceLevel,
  importanceToScore,
  MessageRole,
  SCHEMA_VERSION,
  scoreToImportance,
  TaskPriority,
  TaskStatus,
} from '../src/index.js';

const [user, agent, chat] = [createUserId('u'), createAgentId('a'), createChatId('c')];

test('threads have names, and positions that are whole', () => {
  assert.deepEqual(createThreadInfo('t', 0), { id: 't', position: 0 });
  assert.deepEqual(createThreadInfo('t', 3, 'p'), { id: 't', position: 3, parentId: 'p' });
  for (const position of [-1, 1.5, Number.NaN, 2 ** 53, undefined as unknown as number]) {
    assert.throws(() => createThreadInfo('t', position), RangeError);
  }
  for (const name of ['', 'a\0', 'x'.repeat(513)]) {
    assert.throws(() => createThreadInfo(name, 0), RangeError);
    assert.throws(() => createThreadInfo('t', 0, name), RangeError);
  }
});

test('metadata is whole', () => {
  const thread = createThreadInfo('t', 0);
  const message = createMessageMetadata(MessageRole.USER, user, agent, chat, thread, {
    tags: ['x'],
    importance: 'high',
  });
  const expected = { role: 'user', userId: user, agentId: agent, chatId: chat, thread, tags: ['x'] };
  assert.deepEqual(message, { ...expected, importance: 'high', importance_score: 0.75, schemaVersion: SCHEMA_VERSION });
  const document = createDocumentMetadata(DocumentSource.FILE, { agentId: agent, title: 'T' });
  assert.deepEqual(document, { source: 'file', agentId: agent, title: 'T', schemaVersion: '1.0.0' });
  const task = createTaskMetadata('T', TaskStatus.PENDING, TaskPriority.LOW, agent, { progress: 0.5 });
  assert.deepEqual(task, {
    title: 'T',
    status: 'pending',
    priority: 'low',
    agentId: agent,
    progress: 0.5,
    schemaVersion: '1.0.0',
  });
});

test('arguments win over options, and what is undefined is left out', () => {
  const thread = createThreadInfo('t', 0);
  const options = { role: 'tool', source: undefined, schemaVersion: '1.2.3' } as unknown as { messageType: string };
  const message = createMessageMetadata('user', user, agent, chat, thread, options);
  const expected = { role: 'user', userId: user, agentId: agent, chatId: chat, thread, schemaVersion: '1.2.3' };
  assert.deepEqual(message, expected);
  assert.equal(Object.hasOwn(message, 'source'), false);
});

test('messages between agents have defaults', () => {
  const make = (communication: object) =>
    createEnhancedMessageMetadata('assistant', user, agent, chat, createThreadInfo('t', 0), {
      senderAgentId: agent,
      ...communication,
    });
  const { communicationType, priority, requiresResponse, receiverAgentId } = make({ priority: undefined });
  assert.deepEqual(
    [communicationType, priority, requiresResponse, receiverAgentId],
    ['notification', 'normal', false, undefined],
  );
  const asked = make({ communicationType: 'request', requiresResponse: true, receiverAgentId: agent });
  assert.deepEqual([asked.communicationType, asked.requiresResponse, asked.receiverAgentId], ['request', true, agent]);
});

test('each cognitive process has its factory', () => {
  const factories = [
    createThoughtMetadata,
    createReflectionMetadata,
    createInsightMetadata,
    createPlanningMetadata,
    createEvaluationMetadata,
    createDecisionMetadata,
  ];
  const types = factories.map((create) => create(agent, { contextId: 'c' }).processType);
  assert.deepEqual(types, Object.values(CognitiveProcessType));
  assert.deepEqual(createThoughtMetadata(agent), { processType: 'thought', agentId: agent, schemaVersion: '1.0.0' });
});

test('levels and scores of the importance are one scale', () => {
  const scale: [number, string][] = [
    [0, 'low'],
    [0.29, 'low'],
    [0.3, 'medium'],
    [0.59, 'medium'],
    [0.6, 'high'],
    [0.89, 'high'],
    [0.9, 'critical'],
    [1, 'critical'],
  ];
  for (const [score, level] of scale) assert.equal(scoreToImportance(score), level, `${score}`);
  const levels = Object.values(ImportanceLevel);
  assert.deepEqual(levels.map(importanceToScore), [0.25, 0.5, 0.75, 0.95]);
  for (const level of levels) assert.equal(scoreToImportance(importanceToScore(level)), level);
  for (const score of [-0.1, 1.1, Number.NaN]) assert.throws(() => scoreToImportance(score), RangeError);
  for (const word of ['very_high', 'toString']) assert.throws(() => importanceToScore(word as 'low'), RangeError);
  assert.equal(createThoughtMetadata(agent, { importance_score: 0.7 }).importance, 'high');
  assert.equal(createThoughtMetadata(agent, { importance: 'high', importance_score: 0.8 }).importance_score, 0.8);
  assert.throws(() => createThoughtMetadata(agent, { importance: 'low', importance_score: 0.8 }), /0.8 is high/);
});
