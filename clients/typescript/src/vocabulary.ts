/** The words of a memory's metadata. Each vocabulary is closed: the daemon refuses other words, and lists the known ones. */

/** Who speaks. */
export const MessageRole = { USER: 'user', ASSISTANT: 'assistant', SYSTEM: 'system', TOOL: 'tool' } as const;
/** One of {@link MessageRole}. */
export type MessageRole = (typeof MessageRole)[keyof typeof MessageRole];

/** How much a memory matters; `importanceToScore` has the number of each. */
export const ImportanceLevel = { LOW: 'low', MEDIUM: 'medium', HIGH: 'high', CRITICAL: 'critical' } as const;
/** One of {@link ImportanceLevel}. */
export type ImportanceLevel = (typeof ImportanceLevel)[keyof typeof ImportanceLevel];

/** What kind of thinking it was. */
export const CognitiveProcessType = {
  THOUGHT: 'thought',
  REFLECTION: 'reflection',
  INSIGHT: 'insight',
  PLANNING: 'planning',
  EVALUATION: 'evaluation',
  DECISION: 'decision',
} as const;
/** One of {@link CognitiveProcessType}. */
export type CognitiveProcessType = (typeof CognitiveProcessType)[keyof typeof CognitiveProcessType];

/** Where a document came from. */
export const DocumentSource = {
  FILE: 'file',
  WEB: 'web',
  API: 'api',
  USER: 'user',
  AGENT: 'agent',
  TOOL: 'tool',
  SYSTEM: 'system',
} as const;
/** One of {@link DocumentSource}. */
export type DocumentSource = (typeof DocumentSource)[keyof typeof DocumentSource];

/** How far a task is. */
export const TaskStatus = {
  PENDING: 'pending',
  IN_PROGRESS: 'in_progress',
  COMPLETED: 'completed',
  CANCELLED: 'cancelled',
  FAILED: 'failed',
} as const;
/** One of {@link TaskStatus}. */
export type TaskStatus = (typeof TaskStatus)[keyof typeof TaskStatus];

/** How pressing a task is. */
export const TaskPriority = { LOW: 'low', MEDIUM: 'medium', HIGH: 'high', URGENT: 'urgent' } as const;
/** One of {@link TaskPriority}. */
export type TaskPriority = (typeof TaskPriority)[keyof typeof TaskPriority];

/** How pressing a message is. */
export const MessagePriority = { LOW: 'low', NORMAL: 'normal', HIGH: 'high', URGENT: 'urgent' } as const;
/** One of {@link MessagePriority}. */
export type MessagePriority = (typeof MessagePriority)[keyof typeof MessagePriority];

/** What a message between agents is for. */
export const CommunicationType = {
  REQUEST: 'request',
  RESPONSE: 'response',
  NOTIFICATION: 'notification',
  BROADCAST: 'broadcast',
} as const;
/** One of {@link CommunicationType}. */
export type CommunicationType = (typeof CommunicationType)[keyof typeof CommunicationType];
