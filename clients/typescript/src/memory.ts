/** Memories as they come back, and what can be asked of them. */

import type { CognitiveProcessMetadata, DocumentMetadata, MessageMetadata, TaskMetadata } from './metadata.js';
import type { StructuredId, StructuredIdLike } from './structured-id.js';
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

/** The kinds of memories, as paths spell them. */
export type MemoryCollection = 'messages' | 'cognitive-processes' | 'documents' | 'tasks';

/** The metadata of each kind. */
export interface MetadataOf {
  messages: MessageMetadata;
  'cognitive-processes': CognitiveProcessMetadata;
  documents: DocumentMetadata;
  tasks: TaskMetadata;
}

/** The word for each kind in a memory. */
export interface KindOf {
  messages: 'message';
  'cognitive-processes': 'cognitive_process';
  documents: 'document';
  tasks: 'task';
}

/** A memory of one kind; of any kind if nobody says which. */
export type Memory<C extends MemoryCollection = MemoryCollection> = { [K in C]: MemoryOf<K> }[C];

interface MemoryOf<C extends MemoryCollection> {
  /** Its id, a UUIDv7. */
  id: string;
  /** What kind of memory it is. */
  kind: KindOf[C];
  /** The text. */
  content: string;
  /** The typed metadata, and the writer's own keys as they were given; whole numbers beyond ±(2^53 − 1) are rounded. */
  metadata: MetadataOf[C] & { [key: string]: unknown };
  /** 1 when it is added, one more with each change. */
  version: number;
  /** When it was added, in RFC 3339. */
  createdAt: string;
  /** When it was last changed, in RFC 3339. */
  updatedAt: string;
}

/** A message. */
export type MessageMemory = Memory<'messages'>;
/** A thought, reflection, insight, plan, evaluation or decision. */
export type CognitiveProcessMemory = Memory<'cognitive-processes'>;
/** A document. */
export type DocumentMemory = Memory<'documents'>;
/** A task. */
export type TaskMemory = Memory<'tasks'>;

/** A memory that was searched for. */
export type Found<C extends MemoryCollection = MemoryCollection> = Memory<C> & {
  /** How well it matches; only with a `query`, and comparable within one search only. */
  score?: number;
  /** The terms of the `query` that it has itself in any form, stemmed. */
  matched?: string[];
  /** What the score is made of, if `explain` asks for it. */
  explanation?: {
    /** BM25 of its words and its speaker's name. */
    words: number;
    /** Likeness of its meaning, -1 to 1. */
    meaning: number;
    /** The sum of `words` of the messages beside it in its thread. */
    nearWords: number;
    /** The sum of `meaning` of the messages beside it. */
    nearMeaning: number;
    /** Was it added on a day, or in a month of a year, that the text names? */
    ofNamedDate?: boolean;
    /** Does it name a time, where the text asks when something was? */
    namesTime?: boolean;
  };
};

/** A page: an array that knows how many there are. */
export interface SearchResults<T> extends Array<T> {
  /** How many there are on all pages. */
  readonly total: number;
  /** Where the next page starts, for `options.cursor`; undefined on the last. */
  readonly nextCursor: string | undefined;
}

/** What memories of any kind can be searched for by. All that is given holds. */
export interface AnyCriteria {
  /** With all of these tags. */
  tags?: string | string[];
  /** At least so important: a level, or a score of 0 to 1. */
  minImportance?: ImportanceLevel | number;
  /** Added then or later, in RFC 3339. */
  from?: string;
  /** Added then or before, in RFC 3339. */
  to?: string;
  /** Of exactly this level. */
  importance?: ImportanceLevel;
  /** With this in a key of the writer's own, by its path. */
  [own: `metadata.${string}`]: string | number | boolean;
}

/** What memories of all kinds are searched for by at once. */
export interface CommonCriteria extends AnyCriteria {
  userId?: StructuredIdLike;
  agentId?: StructuredIdLike;
}

/** What messages are searched for by. */
export interface MessageCriteria extends AnyCriteria {
  userId?: StructuredIdLike;
  agentId?: StructuredIdLike;
  chatId?: StructuredIdLike;
  role?: MessageRole | string;
  threadId?: string;
  messageType?: string;
  source?: string;
  category?: string;
  senderAgentId?: StructuredIdLike;
  receiverAgentId?: StructuredIdLike;
  communicationType?: CommunicationType;
  priority?: MessagePriority;
  requiresResponse?: boolean;
}

/** What cognitive processes are searched for by. A name matches if it is in the list. */
export interface CognitiveProcessCriteria extends AnyCriteria {
  agentId?: StructuredIdLike;
  processType?: CognitiveProcessType;
  contextId?: string;
  relatedTo?: string;
  influences?: string;
  influencedBy?: string;
  source?: string;
  category?: string;
}

/** What documents are searched for by. */
export interface DocumentCriteria extends AnyCriteria {
  source?: DocumentSource;
  agentId?: StructuredIdLike;
  userId?: StructuredIdLike;
  title?: string;
  contentType?: string;
  url?: string;
  fileName?: string;
  authors?: string;
}

/** What tasks are searched for by. */
export interface TaskCriteria extends AnyCriteria {
  agentId?: StructuredIdLike;
  assignedTo?: StructuredIdLike;
  status?: TaskStatus;
  priority?: TaskPriority;
  parentTaskId?: string;
  title?: string;
}

/** The criteria of each kind. */
export interface CriteriaOf {
  messages: MessageCriteria;
  'cognitive-processes': CognitiveProcessCriteria;
  documents: DocumentCriteria;
  tasks: TaskCriteria;
}

/** How memories are searched for. */
export interface SearchOptions {
  /** What they are about; then only those that match are found, best first. */
  query?: string;
  /** At most so many on a page, 1 to 200; 10 by default. */
  limit?: number;
  /** So many left out. */
  offset?: number;
  /** Path of a field of the metadata, such as `thread.position`, or `createdAt`, `updatedAt` or `score`. */
  sortBy?: string;
  /** Smallest or largest first; `asc` for a `sortBy` other than the score. Without either, the newest are first. */
  sortDirection?: 'asc' | 'desc';
  /** `nextCursor` of the page before, with everything else unchanged. */
  cursor?: string;
  /** Also those that were deleted. */
  includeDeleted?: boolean;
  /** Say what each score is made of. */
  explain?: boolean;
}

/** An earlier version of a memory. */
export interface MemoryVersion {
  /** 1 or more. */
  version: number;
  /** The text then. */
  content: string;
  /** The metadata then. */
  metadata: Record<string, unknown>;
  /** When it became so, in RFC 3339. */
  updatedAt: string;
}

/** A change of a memory: a JSON Merge Patch (RFC 7396). */
export interface MemoryPatch {
  /** Another text. */
  content?: string;
  /** Merged into the metadata; null removes a key. */
  metadata?: Record<string, unknown>;
}

/** What a memory led to and came from. */
export interface Relations {
  /** The memories, nearest first. */
  items: RelatedMemory[];
  /** References to what is not there. */
  dangling: { from: string; relation: string; target: string }[];
  /** Were there more than the 1,000 that are listed? */
  truncated: boolean;
}

/** A memory that another leads to. */
export interface RelatedMemory {
  /** Its id. */
  id: string;
  /** Its kind. */
  kind: KindOf[MemoryCollection];
  /** What it is to `via`: `via` led to it, came from it, or neither. */
  direction: 'ledTo' | 'cameFrom' | 'related';
  /** The key that says so, on either side. */
  relation: 'relatedTo' | 'influences' | 'influencedBy' | 'parentTaskId';
  /** References between it and the memory that was asked about. */
  depth: number;
  /** The memory it was reached from. */
  via: string;
}

/** A page of a thread. */
export interface Thread {
  /** The thread. */
  id: string;
  /** The chat it is in. */
  chatId: StructuredId;
  /** Its messages, in order of their positions. */
  items: SearchResults<MessageMemory>;
  /** Ranges of positions before the last that no message has, both ends included; at most 1,000. */
  gaps: { from: number; to: number }[];
}
