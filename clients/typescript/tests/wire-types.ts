/**
 * The types of memories are written by hand, so that they say more than the daemon does. Here the compiler holds them to what
 * the daemon says: the same words, the same keys, and no value of ours that it does not take.
 */

import type {
  CognitiveProcessMetadata,
  CognitiveProcessType,
  CommunicationType,
  DocumentMetadata,
  DocumentSource,
  Found,
  ImportanceLevel,
  Memory,
  MemoryPatch,
  MemoryVersion,
  MessageAttachment,
  MessageMetadata,
  MessagePriority,
  MessageRole,
  PointedError,
  ProblemDocument,
  RelatedMemory,
  SearchOptions,
  StructuredIdLike,
  TaskMetadata,
  TaskPriority,
  TaskStatus,
  ThreadInfo,
  wire,
} from '../src/index.js';

/** The keys of a type, without those that any text is. */
type Keys<T> = keyof { [K in keyof T as string extends K ? never : K]: true };
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
type SameKeys<A, B> = Same<Keys<A>, Keys<B>>;
type Taken<Ours, Wire> = Ours extends Wire ? true : false;

function holds<_ extends true>(): void {}

// Words.
holds<Same<MessageRole, wire.MessageRole>>();
holds<Same<ImportanceLevel, wire.ImportanceLevel>>();
holds<Same<CognitiveProcessType, wire.CognitiveProcessType>>();
holds<Same<DocumentSource, wire.DocumentSource>>();
holds<Same<TaskStatus, wire.TaskStatus>>();
holds<Same<TaskPriority, wire.TaskPriority>>();
holds<Same<MessagePriority, wire.MessagePriority>>();
holds<Same<CommunicationType, wire.CommunicationType>>();

// Keys.
holds<SameKeys<MessageMetadata, wire.MessageMetadata>>();
holds<SameKeys<CognitiveProcessMetadata, wire.CognitiveProcessMetadata>>();
holds<SameKeys<DocumentMetadata, wire.DocumentMetadata>>();
holds<SameKeys<TaskMetadata, wire.TaskMetadata>>();
holds<SameKeys<ThreadInfo, wire.ThreadInfo>>();
holds<SameKeys<MessageAttachment, wire.MessageAttachment>>();
holds<SameKeys<Found, wire.MemoryAnswer>>();
holds<SameKeys<MemoryVersion, wire.VersionAnswer>>();
holds<SameKeys<RelatedMemory, wire.RelatedAnswer>>();
holds<SameKeys<SearchOptions, wire.SearchOptions>>();
holds<SameKeys<ProblemDocument, wire.ProblemDocument>>();
holds<SameKeys<PointedError, wire.PointedError>>();

// Values.
type Own = { [key: string]: unknown };
holds<Taken<MessageMetadata & Own, wire.MessageMetadata>>();
holds<Taken<CognitiveProcessMetadata & Own, wire.CognitiveProcessMetadata>>();
holds<Taken<DocumentMetadata & Own, wire.DocumentMetadata>>();
holds<Taken<TaskMetadata & Own, wire.TaskMetadata>>();
holds<Taken<StructuredIdLike, wire.StructuredId>>();
holds<Taken<SearchOptions, wire.SearchOptions>>();
holds<Taken<MemoryPatch, wire.PatchRequest>>();
holds<Taken<Memory, wire.MemoryAnswer>>();
