/**
 * One function to add and one to search for each kind of memory.
 *
 * What is added is `options.metadata` with the explicit arguments and options over it. The daemon knows the keys of each kind:
 * it refuses wrong values and near-misses of a key with all faults at once, and keeps any other key as it is.
 */

import type { CallOptions } from './connection.js';
import { defined } from './factories.js';
import type {
  CognitiveProcessCriteria,
  CognitiveProcessMemory,
  CriteriaOf,
  DocumentCriteria,
  DocumentMemory,
  Found,
  MemoryCollection,
  MessageCriteria,
  MessageMemory,
  SearchOptions,
  SearchResults,
  TaskCriteria,
  TaskMemory,
} from './memory.js';
import { type MessageAttachment, SCHEMA_VERSION, type ThreadInfo } from './metadata.js';
import type { AddOptions, MemoryService } from './service.js';
import type { StructuredIdLike } from './structured-id.js';
import type {
  CognitiveProcessType,
  DocumentSource,
  ImportanceLevel,
  MessageRole,
  TaskPriority,
  TaskStatus,
} from './vocabulary.js';

/** What a memory service must be able to do to be added to. */
export type MemoryWriter = Pick<MemoryService, 'add'>;

/** What a memory service must be able to do to be searched. */
export type MemorySearcher = Pick<MemoryService, 'search'>;

/** What all functions that add take beside the options of a kind. */
export interface AnyMemoryOptions extends AddOptions {
  /** How much it matters. */
  importance?: ImportanceLevel;
  /** Any other metadata: fields of the kind, and keys of your own. What is said explicitly wins. */
  metadata?: Record<string, unknown>;
}

/** What all functions that search take. */
export type WrapperSearchOptions = SearchOptions & CallOptions;

/** Options of {@link addMessageMemory}. */
export interface MessageMemoryOptions extends AnyMemoryOptions {
  /** Such as greeting. */
  messageType?: string;
  /** What came with it. */
  attachments?: MessageAttachment[];
}

/** Adds a message to memory. A position of a thread that is taken is refused with status 409. */
export async function addMessageMemory(
  memoryService: MemoryWriter,
  content: string,
  role: MessageRole | string,
  userId: StructuredIdLike,
  agentId: StructuredIdLike,
  chatId: StructuredIdLike,
  thread: ThreadInfo,
  options: MessageMemoryOptions = {},
): Promise<MessageMemory> {
  return add(memoryService, 'messages', content, { role, userId, agentId, chatId, thread }, options);
}

/** Searches for messages. */
export async function searchMessages(
  memoryService: MemorySearcher,
  criteria: MessageCriteria,
  options?: WrapperSearchOptions,
): Promise<SearchResults<Found<'messages'>>> {
  return search(memoryService, 'messages', criteria, options);
}

/** Options of {@link addCognitiveProcessMemory}. */
export interface CognitiveProcessMemoryOptions extends AnyMemoryOptions {
  /** What it was thought about, such as a conversation. */
  contextId?: string;
  /** Memories it has to do with. */
  relatedTo?: string | string[];
}

/** Adds a thought, reflection, insight, plan, evaluation or decision to memory. */
export async function addCognitiveProcessMemory(
  memoryService: MemoryWriter,
  content: string,
  processType: CognitiveProcessType,
  agentId: StructuredIdLike,
  options: CognitiveProcessMemoryOptions = {},
): Promise<CognitiveProcessMemory> {
  return add(memoryService, 'cognitive-processes', content, { processType, agentId }, options);
}

/** Searches for cognitive processes. */
export async function searchCognitiveProcesses(
  memoryService: MemorySearcher,
  criteria: CognitiveProcessCriteria,
  options?: WrapperSearchOptions,
): Promise<SearchResults<Found<'cognitive-processes'>>> {
  return search(memoryService, 'cognitive-processes', criteria, options);
}

/** Options of {@link addDocumentMemory}. */
export interface DocumentMemoryOptions extends AnyMemoryOptions {
  /** Its title. */
  title?: string;
  /** Its media type. */
  contentType?: string;
  /** Where it is. */
  url?: string;
  /** Its file's name. */
  fileName?: string;
  /** Who keeps it. */
  agentId: StructuredIdLike;
  /** The person it belongs to. */
  userId?: StructuredIdLike;
}

/** Adds a document to memory. Its agent is among the options, so these are not optional. */
export async function addDocumentMemory(
  memoryService: MemoryWriter,
  content: string,
  source: DocumentSource,
  options: DocumentMemoryOptions,
): Promise<DocumentMemory> {
  return add(memoryService, 'documents', content, { source }, options);
}

/** Searches for documents. */
export async function searchDocuments(
  memoryService: MemorySearcher,
  criteria: DocumentCriteria,
  options?: WrapperSearchOptions,
): Promise<SearchResults<Found<'documents'>>> {
  return search(memoryService, 'documents', criteria, options);
}

/** Options of {@link addTaskMemory}. */
export interface TaskMemoryOptions extends AnyMemoryOptions {
  /** What is to be done, at length. */
  description?: string;
  /** Who is to do it. */
  assignedTo?: StructuredIdLike;
  /** When it should be done, in RFC 3339. */
  dueDate?: string;
  /** The task it is a part of: a memory's id. */
  parentTaskId?: string;
}

/** Adds a task to memory. */
export async function addTaskMemory(
  memoryService: MemoryWriter,
  content: string,
  title: string,
  status: TaskStatus,
  priority: TaskPriority,
  agentId: StructuredIdLike,
  options: TaskMemoryOptions = {},
): Promise<TaskMemory> {
  return add(memoryService, 'tasks', content, { title, status, priority, agentId }, options);
}

/** Searches for tasks. */
export async function searchTasks(
  memoryService: MemorySearcher,
  criteria: TaskCriteria,
  options?: WrapperSearchOptions,
): Promise<SearchResults<Found<'tasks'>>> {
  return search(memoryService, 'tasks', criteria, options);
}

function add<C extends MemoryCollection>(
  memoryService: MemoryWriter,
  collection: C,
  content: string,
  required: object,
  { metadata, idempotencyKey, signal, retries, ...explicit }: AnyMemoryOptions,
) {
  const beside: Record<string, unknown> = { ...metadata };
  // The level that is said explicitly wins over a score as well: one is derived from the other.
  if (explicit.importance !== undefined) delete beside['importance_score'];
  const whole = { schemaVersion: SCHEMA_VERSION, ...beside, ...defined(explicit), ...required };
  return memoryService.add(collection, content, whole, defined({ idempotencyKey, signal, retries }) as AddOptions);
}

function search<C extends MemoryCollection>(
  memoryService: MemorySearcher,
  collection: C,
  criteria: CriteriaOf[C],
  { signal, retries, ...options }: WrapperSearchOptions = {},
) {
  return memoryService.search(collection, criteria, options, defined({ signal, retries }) as CallOptions);
}
