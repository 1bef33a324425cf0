/** Which operations may be asked for twice and are done once, beside those that are asked for with `GET`. */

import type { Operations } from './openapi.js';

/** They change nothing. */
export const READING = [
  'checkPlan',
  'checkTools',
  'enrich',
  'estimate',
  'getMetadata',
  'matchPresets',
  'qualify',
  'searchCognitiveProcesses',
  'searchDocuments',
  'searchMemories',
  'searchMessages',
  'searchTasks',
] as const satisfies readonly (keyof Operations)[];

/** They are done once under one `Idempotency-Key`. */
export const KEYED = [
  'addCognitiveProcess',
  'addDocument',
  'addMessage',
  'addTask',
  'recordExecutions',
] as const satisfies readonly (keyof Operations)[];

/** They may be asked for on the condition of a version, by `If-Match`. Repeated they would be refused for their own change. */
export const CONDITIONAL = [
  'deleteMemory',
  'restoreMemory',
  'updateMemory',
] as const satisfies readonly (keyof Operations)[];
