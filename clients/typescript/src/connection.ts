/**
 * The way to the daemon: over TCP, or through a unix socket.
 *
 * A call that may be repeated without harm is: when the connection breaks, and when the daemon says that it is busy. All
 * others fail at once, because nobody knows whether they were done.
 */

import { isObject, objectIn } from './answer.js';
import { checkTimeout, Deadline } from './deadline.js';
import { AlmanacError, type ProblemDocument } from './error.js';
import { SourceStream } from './source-stream.js';
import { overTcp, type Reply, type Send, type Sent, throughSocket } from './transport.js';

/** Where the daemon is, and how it is talked to. */
export interface ConnectionOptions {
  /**
   * Where it listens; by default `ALMANAC_URL` of the environment, else `http://127.0.0.1:7311`. A path is a prefix of all
   * paths, as behind a proxy.
   */
  url?: string | URL;
  /** Path of a unix socket of the daemon, instead of `url`. At most 8 calls go through it at once, beside streams. */
  socket?: string;
  /** A token of the daemon's file of tokens; `ALMANAC_TOKEN` of the environment by default. */
  token?: string;
  /** How long a call may take, repetitions included, in ms, 1 to 2147483647; 30000 by default. */
  timeoutMs?: number;
  /** How often a call that may be repeated is; 5 by default, with growing pauses of about 4 s in all. */
  retries?: number;
}

/** What can be said with any call. */
export interface CallOptions {
  /** Ends the call. */
  signal?: AbortSignal;
  /** How often the call is repeated, if it may be; that of the connection by default. */
  retries?: number;
}

/** What can be said with what is done once under one key. */
export interface KeyOptions extends CallOptions {
  /** Under one key it is done once, however often it is asked for; a random one by default. 1 to 256 printable characters. */
  idempotencyKey?: string;
}

/** What can be said when a memory is changed. */
export interface VersionOptions extends CallOptions {
  /** Only if it is still at this version; refused with status 412 otherwise. */
  ifVersion?: number;
}

/** The header for a version. */
export function ifMatch(version: number | undefined): string | undefined {
  return version === undefined ? undefined : `"${version}"`;
}

/** A call. */
export interface Request extends CallOptions {
  /** Such as `GET`. */
  method: string;
  /** The path, percent-encoded. */
  path: string;
  /** The query; what is null or undefined is left out. */
  query?: Readonly<Record<string, string | number | boolean | null | undefined>> | undefined;
  /** Header fields, in lower case; what is undefined is left out. */
  headers?: Readonly<Record<string, string | undefined>>;
  /** The body, as it is sent. A stream can take as long as it wants: the call's time runs from its end on. */
  body?: string | ReadableStream<string | Uint8Array> | undefined;
  /** May it be done twice? By default only a `GET` may. */
  isRepeatable?: boolean;
  /** Statuses of 300 and more whose JSON is an answer as well. */
  answers?: readonly number[] | undefined;
}

/** What the daemon listens on unless it is told otherwise. */
const DEFAULT_URL = 'http://127.0.0.1:7311';
/** Longest silence of what does not end by itself, in ms: the daemon says something every 15 s. */
const LONGEST_SILENCE_MS = 45_000;
/** Longest wait before a call is repeated, whatever the daemon asks for, in ms. */
const LONGEST_WAIT_MS = 5_000;

/** A way to a daemon. Connections are kept and used again. */
export class Connection {
  readonly #send: Send;
  readonly #token: string | undefined;
  readonly #timeoutMs: number;
  readonly #retries: number;

  /**
   * Throws a TypeError if the URL is none, has credentials, or there is a socket as well, and a RangeError if `timeoutMs` is
   * not 1 to 2147483647 or `retries` is no whole number.
   */
  constructor({ url, socket, token, timeoutMs = 30_000, retries = 5 }: ConnectionOptions = {}) {
    if (url !== undefined && socket !== undefined) throw new TypeError('either url or socket says where the daemon is');
    checkTimeout('timeoutMs', timeoutMs);
    checkRetries(retries);
    this.#send = socket === undefined ? overTcp(locator(url)) : throughSocket(socket);
    this.#token = token ?? fromEnvironment('ALMANAC_TOKEN');
    this.#timeoutMs = timeoutMs;
    this.#retries = retries;
  }

  /**
   * The text of a good answer; throws an AlmanacError for any other, and the signal's reason or the body's own error if that
   * ended it.
   */
  async text(request: Request): Promise<string> {
    request.signal?.throwIfAborted();
    const deadline = new Deadline(this.#timeoutMs, request.signal);
    try {
      if (!(request.body instanceof ReadableStream)) {
        deadline.start();
        return (await this.#attempts(request, request.body, deadline.signal)).text;
      }
      const source = new SourceStream(request.body, () => deadline.start());
      return (await this.#attempts(request, source, deadline.signal).finally(() => source.cancel())).text;
    } finally {
      deadline.clear();
    }
  }

  /**
   * The lines of an answer that does not end by itself, as they come. Throws as {@link text} does, also later: when the
   * connection breaks, and when nothing comes for `timeoutMs` or {@link LONGEST_SILENCE_MS}, whichever is longer.
   */
  async *lines(request: Request & { body?: undefined }): AsyncIterableIterator<string> {
    request.signal?.throwIfAborted();
    const silence = Math.max(this.#timeoutMs, LONGEST_SILENCE_MS);
    const deadline = new Deadline(this.#timeoutMs, request.signal);
    deadline.start();
    try {
      const { chunks = [] } = await this.#attempts(request, undefined, deadline.signal, true);
      deadline.start(silence);
      try {
        for await (const line of linesOf(chunks, () => deadline.start(silence))) {
          // What its reader does with a line may take as long as it wants.
          deadline.pause();
          yield line;
          deadline.start(silence);
        }
      } catch (cause) {
        request.signal?.throwIfAborted();
        if (deadline.signal.aborted) throw AlmanacError.local('timeout', `nothing came for ${silence} ms`);
        throw failure(new Unanswered(cause));
      }
    } finally {
      deadline.clear();
    }
  }

  /** Tries until there is a good answer, or no hope of one. `ended` says that time is up, or that the caller gave up. */
  async #attempts(
    request: Request,
    body: string | SourceStream | undefined,
    ended: AbortSignal,
    isOpen = false,
  ): Promise<Reply> {
    const { retries = this.#retries } = request;
    checkRetries(retries);
    const source = body instanceof SourceStream ? body : undefined;
    const sent: Sent = {
      method: request.method,
      path: request.path + search(request.query),
      headers: this.#headers(request),
      body: body instanceof SourceStream ? body.readable : body,
      signal: ended,
      isOpen,
    };
    const isRepeatable = source === undefined && (request.isRepeatable ?? request.method === 'GET');
    const attempts = isRepeatable ? retries + 1 : 1;
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await this.#send(sent).catch((cause: unknown) => new Unanswered(cause));
      // First, because an acknowledgement that came too late is one nevertheless.
      if (!(outcome instanceof Unanswered) && isAnswer(outcome, request)) return outcome;
      request.signal?.throwIfAborted();
      source?.throwIfFailed();
      if (ended.aborted) throw AlmanacError.local('timeout', `no answer within ${this.#timeoutMs} ms`);
      const wait = attempt < attempts ? pause(outcome, attempt) : undefined;
      if (wait === undefined) throw failure(outcome);
      await sleep(wait, ended);
    }
  }

  /** The JSON of a good answer, which is an object; throws as {@link text} does. */
  async json<T extends object>(request: Request): Promise<T> {
    return objectIn(await this.text(request), 'the answer');
  }

  /** Throws a TypeError for a token or key that no header can have. */
  #headers({ headers, body }: Request): Record<string, string> {
    const all = {
      accept: 'application/json, application/problem+json;q=0.9, */*;q=0.1',
      authorization: this.#token === undefined ? undefined : `Bearer ${this.#token}`,
      ...headers,
      'content-type': body === undefined ? undefined : (headers?.['content-type'] ?? 'application/json'),
    };
    const given = new Headers();
    for (const [name, value] of Object.entries(all)) if (value !== undefined) setHeader(given, name, value);
    return Object.fromEntries(given);
  }
}

/** Where a daemon listens. */
function locator(url: string | URL | undefined): URL {
  const whole = new URL(url ?? fromEnvironment('ALMANAC_URL') ?? DEFAULT_URL);
  // fetch refuses them as well, and shows them.
  if (whole.username || whole.password) throw new TypeError('a URL has no credentials here; give a token');
  return whole;
}

/** What a variable of the environment says; there may be no environment, and an empty variable says nothing. */
function fromEnvironment(name: string): string | undefined {
  return globalThis.process?.env[name] || undefined;
}

/** Sets a header; the platform's error would show the value, which may be a token. */
function setHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.set(name, value);
  } catch {
    throw new TypeError(`${name} has a character that no header can have`);
  }
}

function isAnswer({ status, header }: Reply, { answers }: Request): boolean {
  if (status < 300) return true;
  return answers?.includes(status) === true && header('content-type')?.startsWith('application/json') === true;
}

async function* linesOf(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, heard: () => void) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of chunks) {
    heard();
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

function checkRetries(retries: number): void {
  if (!Number.isSafeInteger(retries) || retries < 0) throw new RangeError(`retries cannot be ${retries}`);
}

/** There was no answer. */
class Unanswered {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}

/** Waits, but not beyond the signal. */
function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/** How long to wait before the call is repeated, in ms; undefined if it should not be. */
function pause(outcome: Reply | Unanswered, attempt: number): number | undefined {
  // Not all clients of a daemon that starts again at the same moment.
  const usual = 50 * 2 ** attempt * (1 + Math.random() / 2);
  if (outcome instanceof Unanswered) return usual;
  if (outcome.status !== 429 && outcome.status !== 503) return undefined;
  const asked = Number(outcome.header('retry-after') ?? Number.NaN) * 1000;
  return Number.isFinite(asked) && asked >= 0 ? Math.min(asked, LONGEST_WAIT_MS) : usual;
}

function failure(outcome: Reply | Unanswered): AlmanacError {
  if (outcome instanceof Unanswered) {
    const why = reasons(outcome.cause).join(': ');
    return AlmanacError.local('unreachable', `the daemon cannot be reached: ${why}`, 0, outcome.cause);
  }
  const problem = problemOf(outcome);
  if (problem !== undefined) return AlmanacError.refused(problem, outcome.header('x-request-id') ?? undefined);
  return AlmanacError.local(
    'not-almanac',
    `status ${outcome.status} without a reason; is that the daemon?`,
    outcome.status,
  );
}

function problemOf({ header, text }: Reply): ProblemDocument | undefined {
  if (!header('content-type')?.startsWith('application/problem+json')) return undefined;
  try {
    const document: unknown = JSON.parse(text);
    return isProblem(document) ? document : undefined;
  } catch {
    return undefined;
  }
}

function isProblem(document: unknown): document is ProblemDocument & Record<string, unknown> {
  if (!isObject(document)) return false;
  const { code, detail, errors, near } = document;
  if (typeof code !== 'string' || typeof detail !== 'string') return false;
  return areAll(errors, isObject) && areAll(near, (name) => typeof name === 'string');
}

/** A list of such, or nothing? */
function areAll(list: unknown, isSuch: (item: unknown) => boolean): boolean {
  return list == null || (Array.isArray(list) && list.every(isSuch));
}

/** An error's message and those of its causes; fetch says only in the cause what happened. */
function reasons(error: unknown): string[] {
  if (!(error instanceof Error)) return error === undefined ? [] : [String(error)];
  const own = error.message || (error as NodeJS.ErrnoException).code;
  return [...(own ? [own] : []), ...reasons(error.cause)];
}

/** A name as a segment of a path. Throws a RangeError for what no URL can have there: nothing, `.` and `..`. */
export function segment(name: string | undefined, what: string): string {
  if (name === undefined || name === '' || name === '.' || name === '..') {
    throw new RangeError(`${what} cannot be ${JSON.stringify(name)}`);
  }
  return encodeURIComponent(name.toWellFormed());
}

function search(query: Request['query']): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) if (value != null) given.append(name, String(value));
  return given.size === 0 ? '' : `?${given}`;
}
