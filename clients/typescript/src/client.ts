/**
 * Every call of the daemon, typed by what the daemon says of itself.
 *
 * There is one method per operation of `GET /openapi.json`, under its `operationId`. It takes `{path, query, body}`, as far as
 * the operation has them, and answers with what the operation answers. What changes nothing is repeated, and so are adds and
 * records, which are sent under a key.
 */

import {
  type CallOptions,
  Connection,
  type ConnectionOptions,
  ifMatch,
  type KeyOptions,
  type Request,
  segment,
  type VersionOptions,
} from './connection.js';
import { type DaemonEvent, daemonEvents, eventsOf, type QualifyEvent } from './events.js';
import { OPERATIONS, type Operations, type QualifyAnswer, type QualifyRequest } from './openapi.js';
import { toJson } from './json.js';
import { CONDITIONAL, KEYED, READING } from './repetition.js';

/** A method for each operation. */
export type AlmanacClient = Described & {
  /** Which tools fit this message, and why; as the events of a chat stream if a stream is named. */
  readonly qualify: {
    (request: { query: { stream: 'data-v1' | 'ui-v1' }; body: QualifyRequest } & CallOptions): Promise<QualifyEvent[]>;
    (request: { query?: { stream?: null | undefined }; body: QualifyRequest } & CallOptions): Promise<QualifyAnswer>;
  };
  /**
   * What happens, from now on, until `signal` or a `break` ends it: for await (const event of client.listenToEvents()). It
   * throws when the connection breaks, and does not begin anew by itself.
   */
  readonly listenToEvents: (
    request?: Operations['listenToEvents']['request'] & CallOptions,
  ) => AsyncIterableIterator<DaemonEvent>;
  /**
   * Listen to an agent's chat stream: what a ReadableStream gives is passed on as it arrives. The call's `timeoutMs` runs from
   * the stream's end on; a stream that fails ends the call with its own error, and one whose call fails is cancelled. The
   * promise of a ReadableStream may be awaited late: until then its rejection harms nobody.
   */
  readonly readStream: (
    request: Omit<Operations['readStream']['request'], 'body'> & {
      body: string | ReadableStream<Uint8Array> | ReadableStream<string>;
    } & CallOptions,
  ) => Promise<Operations['readStream']['answer']>;
};

type Described = {
  readonly [Name in Exclude<keyof Operations, 'listenToEvents' | 'qualify' | 'readStream'>]: (
    ...request: Record<never, never> extends Operations[Name]['request']
      ? [request?: Operations[Name]['request'] & OptionsOf<Name>]
      : [request: Operations[Name]['request'] & OptionsOf<Name>]
  ) => Promise<Operations[Name]['answer']>;
};

type OptionsOf<Name> = Name extends (typeof KEYED)[number]
  ? KeyOptions
  : Name extends (typeof CONDITIONAL)[number]
    ? VersionOptions
    : CallOptions;

/** What any of the methods may be given. */
interface AnyRequest extends KeyOptions, VersionOptions {
  path?: Record<string, string>;
  query?: NonNullable<Request['query']>;
  body?: unknown;
}

/** One operation's place in the table. */
interface Place {
  method: string;
  path: string;
  /** The body's media type, if there is one. */
  sends?: string;
  /** Is the answer text, not JSON? */
  isText?: boolean;
  /** Is it a stream of events that does not end by itself? */
  isEvents?: boolean;
  /** Statuses of 300 and more that are answers as well. */
  answers?: readonly number[];
}

/** A client of the daemon at `options`. Operations of the admin socket answer through `socket` only. */
export function createAlmanacClient(options?: ConnectionOptions): AlmanacClient {
  const connection = new Connection(options);
  const methods = Object.entries<Place>(OPERATIONS).map(([name, place]) => {
    const method = (request: AnyRequest = {}) => {
      if (place.isEvents)
        return daemonEvents(connection.lines({ ...requestOf(name, place, request), body: undefined }));
      const answer = call(connection, name, place, request);
      // It is awaited only when the stream went to its user, and Node ends a process over a rejection that nobody awaits yet.
      if (request.body instanceof ReadableStream) answer.catch(() => {});
      return answer;
    };
    return [name, method];
  });
  return Object.freeze(Object.fromEntries(methods)) as AlmanacClient;
}

async function call(connection: Connection, name: string, place: Place, request: AnyRequest): Promise<unknown> {
  const sent = requestOf(name, place, request);
  if (request.query?.['stream'] != null) return eventsOf(await connection.text(sent));
  return place.isText ? connection.text(sent) : connection.json(sent);
}

function requestOf(name: string, place: Place, request: AnyRequest): Request {
  const { path, query, body, idempotencyKey, ifVersion, ...options } = request;
  const isKeyed = isAmong(KEYED, name);
  return {
    ...options,
    method: place.method,
    path: place.path.replace(/\{(\w+)\}/g, (_, part: string) => segment(path?.[part], part)),
    query,
    headers: {
      'content-type': place.sends,
      'idempotency-key': isKeyed ? (idempotencyKey ?? globalThis.crypto.randomUUID()) : undefined,
      'if-match': isAmong(CONDITIONAL, name) ? ifMatch(ifVersion) : undefined,
    },
    body: place.sends?.includes('json') ? toJson(body) : (body as Request['body']),
    isRepeatable: place.method === 'GET' || isKeyed || isAmong(READING, name),
    answers: place.answers,
  };
}

function isAmong(names: readonly string[], name: string): boolean {
  return names.includes(name);
}
