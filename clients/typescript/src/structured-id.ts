/**
 * Who and what a memory is about: ids that say their namespace and type, and that round-trip through their text.
 *
 * The text form is `namespace:type:id`, then `:version` if there is one. `:` and `%` inside a part are written `%3A` and
 * `%25`, and nothing else is escaped, so exactly one text stands for an id and exactly one id for a text.
 */

/** An entity's id. Two are the same if all parts are; no version and version 1 differ. */
export interface StructuredId {
  /** Such as `user`, `agent`, `chat` or `system`. */
  namespace: string;
  /** What it is of, such as `user` or `thread`. */
  type: string;
  /** The name inside namespace and type. */
  id: string;
  /** 1 or more, if the thing has versions. */
  version?: number;
}

/** An id wherever one is expected: its parts, or its text form. Both mean the same. */
export type StructuredIdLike = StructuredId | string;

/** What an id may be of. The vocabulary is open: any other word is an entity type as well. */
export const EntityType = {
  USER: 'user',
  AGENT: 'agent',
  CHAT: 'chat',
  MESSAGE: 'message',
  THOUGHT: 'thought',
  THREAD: 'thread',
} as const;
/** One of {@link EntityType}, or a word of your own. */
export type EntityType = (typeof EntityType)[keyof typeof EntityType] | (string & {});

/** Longest part of an id, in characters. */
export const MAX_ID_PART = 512;

/** `user:user:{id}`. Throws a RangeError if `id` can be no part of an id. */
export function createUserId(id: string): StructuredId {
  return structuredId('user', 'user', id);
}

/** `agent:agent:{id}`. Throws a RangeError if `id` can be no part of an id. */
export function createAgentId(id: string): StructuredId {
  return structuredId('agent', 'agent', id);
}

/** `chat:chat:{id}`. Throws a RangeError if `id` can be no part of an id. */
export function createChatId(id: string): StructuredId {
  return structuredId('chat', 'chat', id);
}

/** `chat:thread:{id}`: threads live in chats. Throws a RangeError if `id` can be no part of an id. */
export function createThreadId(id: string): StructuredId {
  return structuredId('chat', 'thread', id);
}

/** `system:{entityType}:{id}`. Throws a RangeError if either can be no part of an id. */
export function createSystemId(entityType: EntityType, id: string): StructuredId {
  return structuredId('system', entityType, id);
}

/** The text form of an id. Throws a RangeError if its parts are none of an id, so every text is read back. */
export function structuredIdToString(id: StructuredId): string {
  const { namespace, type, id: name, version } = id;
  const fault = faultOf(namespace, type, name, version);
  if (fault !== undefined) throw new RangeError(fault);
  const text = `${escaped(namespace)}:${escaped(type)}:${escaped(name)}`;
  return version === undefined ? text : `${text}:${version}`;
}

/**
 * The id of a text form; null if it is none. Exactly what {@link structuredIdToString} writes is read: a version is a whole
 * number of 1 or more without sign and leading zeros, up to `Number.MAX_SAFE_INTEGER`.
 */
export function parseStructuredId(idString: string): StructuredId | null {
  if (typeof idString !== 'string') return null;
  const parts = idString.split(':', 5);
  if (parts.length < 3 || parts.length > 4) return null;
  const [namespace, type, id] = parts.slice(0, 3).map(unescaped);
  if (namespace === undefined || type === undefined || id === undefined) return null;
  const text = parts[3];
  if (text !== undefined && !/^[1-9][0-9]*$/.test(text)) return null;
  const version = text === undefined ? undefined : Number(text);
  if (faultOf(namespace, type, id, version) !== undefined) return null;
  return version === undefined ? { namespace, type, id } : { namespace, type, id, version };
}

/** Are they the same? Text forms are parsed; a text that is no id equals nothing. */
export function areStructuredIdsEqual(a: StructuredIdLike, b: StructuredIdLike): boolean {
  const [left, right] = [a, b].map((id) => (typeof id === 'string' ? parseStructuredId(id) : id));
  return (
    left != null &&
    right != null &&
    left.namespace === right.namespace &&
    left.type === right.type &&
    left.id === right.id &&
    left.version === right.version
  );
}

/** Why a text can be no part of an id or name of a thread; undefined if it can. */
export function faultOfName(what: string, text: unknown): string | undefined {
  if (typeof text !== 'string') return `the ${what} is no string`;
  if (text === '') return `the ${what} is empty`;
  // The length first: counting the characters of a hostile text is work.
  if (text.length > 2 * MAX_ID_PART || [...text].length > MAX_ID_PART) {
    return `the ${what} is longer than ${MAX_ID_PART} characters`;
  }
  if (!text.isWellFormed()) return `the ${what} has half of a surrogate pair, which has no UTF-8`;
  const control = /\p{Cc}/u.exec(text);
  return control === null
    ? undefined
    : `the ${what} has the control character ${JSON.stringify(control[0])} at ${control.index}`;
}

function structuredId(namespace: string, type: string, id: string): StructuredId {
  const fault = faultOf(namespace, type, id, undefined);
  if (fault !== undefined) throw new RangeError(fault);
  return { namespace, type, id };
}

function faultOf(namespace: string, type: string, id: string, version: number | undefined): string | undefined {
  const fault = faultOfName('namespace', namespace) ?? faultOfName('type', type) ?? faultOfName('id', id);
  if (fault !== undefined || version === undefined) return fault;
  const isVersion = Number.isSafeInteger(version) && version >= 1;
  return isVersion ? undefined : `the version ${version} is no whole number of 1 or more`;
}

function escaped(part: string): string {
  return part.replaceAll('%', '%25').replaceAll(':', '%3A');
}

function unescaped(part: string): string | undefined {
  if (/%(?!3A|25)/.test(part)) return undefined;
  return part.replace(/%(3A|25)/g, (escape) => (escape === '%3A' ? ':' : '%'));
}
