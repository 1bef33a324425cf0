/**
 * Factories of metadata. They fill the schema's version and the missing half of the importance, and leave out what is
 * undefined. What they cannot know to be wrong, the daemon says, with all faults at once.
 */

import { settleImportance } from './importance.js';
import type {
  BaseMetadata,
  CognitiveProcessMetadata,
  DocumentMetadata,
  MessageMetadata,
  TaskMetadata,
  ThreadInfo,
} from './metadata.js';
import { SCHEMA_VERSION } from './metadata.js';
import type { StructuredId } from './structured-id.js';
import { faultOfName } from './structured-id.js';
import type { CommunicationType, DocumentSource, MessagePriority, TaskPriority, TaskStatus } from './vocabulary.js';
import { CognitiveProcessType, MessageRole } from './vocabulary.js';

/**
 * Where a message stands: 0 is the first position. Throws a RangeError if a name is empty, longer than 512 characters or has
 * control characters, or if the position is no whole number of 0 or more.
 */
export function createThreadInfo(threadId: string, position: number, parentId?: string): ThreadInfo {
  const fault =
    faultOfName('thread', threadId) ?? (parentId === undefined ? undefined : faultOfName('parent', parentId));
  if (fault !== undefined) throw new RangeError(fault);
  if (!Number.isSafeInteger(position) || position < 0) {
    throw new RangeError(`a position is a whole number of 0 or more, not ${position}`);
  }
  return parentId === undefined ? { id: threadId, position } : { id: threadId, position, parentId };
}

/** What a factory of messages takes beside its arguments. */
export type MessageDetails = Partial<MessageMetadata>;

/** What a factory of cognitive processes takes beside its arguments. */
export type CognitiveProcessDetails = Partial<Omit<CognitiveProcessMetadata, 'processType' | 'agentId'>>;

/** Metadata of a message. Throws a RangeError if level and score of the importance disagree. */
export function createMessageMetadata(
  role: MessageRole | string,
  userId: StructuredId,
  agentId: StructuredId,
  chatId: StructuredId,
  thread: ThreadInfo,
  options: MessageDetails = {},
): MessageMetadata {
  // A word that is no role is for the daemon to refuse, among all other faults.
  return whole({ ...options, role: role as MessageRole, userId, agentId, chatId, thread });
}

/** What a message between agents has beside the rest. */
export interface Communication {
  /** Who speaks. */
  senderAgentId: StructuredId;
  /** Who is spoken to; nobody in particular if absent. */
  receiverAgentId?: StructuredId;
  /** What it is for; a notification by default. */
  communicationType?: CommunicationType;
  /** How pressing it is; normal by default. */
  priority?: MessagePriority;
  /** Does the sender wait for an answer? By default not. */
  requiresResponse?: boolean;
}

/** Metadata of a message between agents. Throws a RangeError if level and score of the importance disagree. */
export function createEnhancedMessageMetadata(
  role: MessageRole | string,
  userId: StructuredId,
  agentId: StructuredId,
  chatId: StructuredId,
  thread: ThreadInfo,
  communication: Communication,
  options: MessageDetails = {},
): MessageMetadata {
  const defaults = { communicationType: 'notification', priority: 'normal', requiresResponse: false } as const;
  return createMessageMetadata(role, userId, agentId, chatId, thread, {
    ...options,
    ...defaults,
    ...defined(communication),
  });
}

/** Metadata of any cognitive process. Throws a RangeError if level and score of the importance disagree. */
export function createCognitiveProcessMetadata(
  processType: CognitiveProcessType,
  agentId: StructuredId,
  options: CognitiveProcessDetails = {},
): CognitiveProcessMetadata {
  return whole({ ...options, processType, agentId });
}

/** Metadata of a thought. */
export function createThoughtMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.THOUGHT, agentId, options);
}

/** Metadata of a reflection. */
export function createReflectionMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.REFLECTION, agentId, options);
}

/** Metadata of an insight. */
export function createInsightMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.INSIGHT, agentId, options);
}

/** Metadata of a plan. */
export function createPlanningMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.PLANNING, agentId, options);
}

/** Metadata of an evaluation. */
export function createEvaluationMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.EVALUATION, agentId, options);
}

/** Metadata of a decision. */
export function createDecisionMetadata(
  agentId: StructuredId,
  options?: CognitiveProcessDetails,
): CognitiveProcessMetadata {
  return createCognitiveProcessMetadata(CognitiveProcessType.DECISION, agentId, options);
}

/** Metadata of a document. Throws a RangeError if level and score of the importance disagree. */
export function createDocumentMetadata(
  source: DocumentSource,
  options: Partial<Omit<DocumentMetadata, 'source'>> & { agentId: StructuredId },
): DocumentMetadata {
  return whole({ ...options, source });
}

/** Metadata of a task. Throws a RangeError if level and score of the importance disagree. */
export function createTaskMetadata(
  title: string,
  status: TaskStatus,
  priority: TaskPriority,
  agentId: StructuredId,
  options: Partial<Omit<TaskMetadata, 'title' | 'status' | 'priority' | 'agentId'>> = {},
): TaskMetadata {
  return whole({ ...options, title, status, priority, agentId });
}

/** An object without the keys that are undefined: a spread of it overrides with what is said, and nothing else. */
export function defined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T;
}

function whole<T extends Partial<BaseMetadata>>(metadata: T): T & { schemaVersion: string } {
  const given = defined(metadata);
  return { schemaVersion: SCHEMA_VERSION, ...given, ...settleImportance(given) };
}
