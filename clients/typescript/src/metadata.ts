/** Metadata of the four kinds of memories, as they are written and as they come back. */

import type { StructuredId } from './structured-id.js';
import type {
  CognitiveProcessType,
  CommunicationType,
  DocumentSource,
  ImportanceLevel,
  MessagePriority,
  MessageRole,
  TaskPriority,
  TaskStatus,
} from './vocabulary.js';

/** The version of the metadata's format. */
export const SCHEMA_VERSION = '1.0.0';

/**
 * What all metadata has. Keys beside those of a kind are the writer's own: they are kept and come back as they were. Only whole
 * numbers beyond ±(2^53 − 1), such as ids that another program wrote, are rounded when they are read, as all of JavaScript's
 * are; writing one is refused with a RangeError. As strings they are kept.
 */
export interface BaseMetadata {
  /** How much it matters; derived from the score if only that is given. */
  importance?: ImportanceLevel;
  /** The same as a number of 0 to 1; derived from the level if only that is given. */
  importance_score?: number;
  /** Words to find it by. */
  tags?: string[];
  /** Set by a soft delete; writers may not. */
  is_deleted?: boolean;
  /** When it was deleted, in RFC 3339; writers may not set it. */
  deletion_time?: string;
  /** Semantic version of the format. */
  schemaVersion: string;
}

/** Where a message stands in its thread. */
export interface ThreadInfo {
  /** The thread. */
  id: string;
  /** 0 for the first message; each position of a thread is taken once. */
  position: number;
  /** The thread that this one branched off. */
  parentId?: string;
}

/** What came with a message. */
export interface MessageAttachment {
  /** What it is, such as image or file. */
  type: string;
  /** Where it is. */
  url?: string;
  /** Itself, as text. */
  data?: string;
  /** Its file's name. */
  filename?: string;
  /** Its media type. */
  contentType?: string;
  /** Whatever else is to be said of it. */
  metadata?: Record<string, unknown>;
}

/** Metadata of a message. */
export interface MessageMetadata extends BaseMetadata {
  /** Who speaks. */
  role: MessageRole;
  /** The person. */
  userId: StructuredId;
  /** The agent. */
  agentId: StructuredId;
  /** The chat. */
  chatId: StructuredId;
  /** Such as greeting. */
  messageType?: string;
  /** Where it stands in its thread. */
  thread: ThreadInfo;
  /** What came with it. */
  attachments?: MessageAttachment[];
  /** Where it came from. */
  source?: string;
  /** What it belongs to. */
  category?: string;
  /** The agent that speaks, between agents. */
  senderAgentId?: StructuredId;
  /** The agent that is spoken to. */
  receiverAgentId?: StructuredId;
  /** What it is for, between agents. */
  communicationType?: CommunicationType;
  /** How pressing it is. */
  priority?: MessagePriority;
  /** Does the sender wait for an answer? */
  requiresResponse?: boolean;
}

/** Metadata of a thought, reflection, insight, plan, evaluation or decision. */
export interface CognitiveProcessMetadata extends BaseMetadata {
  /** What kind of thinking it was. */
  processType: CognitiveProcessType;
  /** Who thought. */
  agentId: StructuredId;
  /** What it was thought about, such as a conversation. */
  contextId?: string;
  /** Memories it has to do with. One or a list is taken, a list comes back. */
  relatedTo?: string | string[];
  /** Memories it led to. One or a list is taken, a list comes back. */
  influences?: string | string[];
  /** Memories it came from. One or a list is taken, a list comes back. */
  influencedBy?: string | string[];
  /** How much it is to the point, 0 to 1. */
  relevance?: number;
  /** Where it came from. */
  source?: string;
  /** What it belongs to. */
  category?: string;
}

/** Metadata of a document. Moments are in RFC 3339. */
export interface DocumentMetadata extends BaseMetadata {
  /** Where it came from. */
  source: DocumentSource;
  /** Its title. */
  title?: string;
  /** Where it is. */
  url?: string;
  /** Its media type. */
  contentType?: string;
  /** Its file's name. */
  fileName?: string;
  /** Its size in bytes. */
  fileSize?: number;
  /** When it was made. */
  creationDate?: string;
  /** When it was last changed. */
  lastModified?: string;
  /** Who wrote it. */
  authors?: string[];
  /** The person it belongs to. */
  userId?: StructuredId;
  /** Who keeps it. */
  agentId: StructuredId;
}

/** Metadata of a task. Moments are in RFC 3339. */
export interface TaskMetadata extends BaseMetadata {
  /** What is to be done, in short. */
  title: string;
  /** How far it is. */
  status: TaskStatus;
  /** How pressing it is. */
  priority: TaskPriority;
  /** Who keeps it. */
  agentId: StructuredId;
  /** What is to be done, at length. */
  description?: string;
  /** Who is to do it. */
  assignedTo?: StructuredId;
  /** When it should be done. */
  dueDate?: string;
  /** When it was done. */
  completedDate?: string;
  /** The task it is a part of: a memory's id. */
  parentTaskId?: string;
  /** How far it is, 0 to 1. */
  progress?: number;
  /** How long it should take, in ms. */
  estimatedDuration?: number;
  /** How long it took, in ms. */
  actualDuration?: number;
  /** How often it was tried. */
  attemptCount?: number;
}
