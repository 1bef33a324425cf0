/**
 * Client of Almanac, the metadata daemon for AI agents.
 *
 * Memories: {@link createMemoryService}, the functions that add and search, and factories of ids and metadata. Everything else:
 * {@link createAlmanacClient}.
 */

export * from './vocabulary.js';
export * from './importance.js';
export * from './metadata.js';
export * from './memory.js';
export * from './service.js';
export * from './wrappers.js';
export * from './error.js';
export {
  areStructuredIdsEqual,
  createAgentId,
  createChatId,
  createSystemId,
  createThreadId,
  createUserId,
  EntityType,
  MAX_ID_PART,
  parseStructuredId,
  type StructuredId,
  type StructuredIdLike,
  structuredIdToString,
} from './structured-id.js';
export {
  type CognitiveProcessDetails,
  type Communication,
  createCognitiveProcessMetadata,
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
  type MessageDetails,
} from './factories.js';
export type { CallOptions, ConnectionOptions } from './connection.js';
export { type AlmanacClient, createAlmanacClient } from './client.js';
export type { DaemonEvent, QualifyEvent } from './events.js';
export { type WrappedTools, type WrapOptions, wrapTools } from './wrap-tools.js';
export type * as wire from './openapi.js';
