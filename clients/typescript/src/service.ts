/** The service that keeps memories and finds them again: the daemon, seen through its HTTP door. */

import { listIn } from './answer.js';
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
import { toJson } from './json.js';
import type {
  CommonCriteria,
  CriteriaOf,
  Found,
  Memory,
  MemoryCollection,
  MemoryPatch,
  MemoryVersion,
  MessageMemory,
  RelatedMemory,
  Relations,
  SearchOptions,
  SearchResults,
  Thread,
} from './memory.js';
import { type StructuredId, type StructuredIdLike, structuredIdToString } from './structured-id.js';

/** What can be said when a memory is added. */
export interface AddOptions extends KeyOptions {}

/** What can be said when a memory is changed. */
export interface ChangeOptions extends VersionOptions {}

/** Which page of a list. */
export interface PageOptions extends CallOptions {
  /** At most so many, 1 to 200; 100 by default. */
  limit?: number;
  /** `nextCursor` of the page before. */
  cursor?: string;
}

/** Keeps memories and finds them again. Every method throws an `AlmanacError` when the daemon refuses, or does not answer. */
export interface MemoryService {
  /** Adds a memory. It is durable when the promise is fulfilled. */
  add<C extends MemoryCollection>(
    collection: C,
    content: string,
    metadata: object,
    options?: AddOptions,
  ): Promise<Memory<C>>;
  /** A page of what is looked for. */
  search<C extends MemoryCollection>(
    collection: C,
    criteria?: CriteriaOf[C],
    options?: SearchOptions,
    call?: CallOptions,
  ): Promise<SearchResults<Found<C>>>;
  /** A page of what is looked for among all kinds. */
  searchAll(criteria?: CommonCriteria, options?: SearchOptions, call?: CallOptions): Promise<SearchResults<Found>>;
  /** All that is looked for, page by page as it is needed; `limit` is the size of a page, 200 by default. */
  each<C extends MemoryCollection>(
    collection: C,
    criteria?: CriteriaOf[C],
    options?: Omit<SearchOptions, 'offset' | 'cursor'>,
    call?: CallOptions,
  ): AsyncIterableIterator<Found<C>>;
  /** One memory; status 404 if there is none, or if it is deleted and `includeDeleted` does not say that this is meant. */
  get(id: string, options?: CallOptions & { includeDeleted?: boolean }): Promise<Memory>;
  /** Changes a memory; the version before is kept in its history. */
  update(id: string, patch: MemoryPatch, options?: ChangeOptions): Promise<Memory>;
  /** Deletes a memory softly: nothing finds it any more that does not ask for deleted ones. */
  delete(id: string, options?: ChangeOptions): Promise<Memory>;
  /** Takes a deletion back. */
  restore(id: string, options?: ChangeOptions): Promise<Memory>;
  /** Earlier versions of a memory, latest first. */
  history(id: string, options?: PageOptions & { includeDeleted?: boolean }): Promise<SearchResults<MemoryVersion>>;
  /** What a memory led to and came from, up to `depth` references far: 1 to 10, 1 by default. */
  relations(id: string, options?: CallOptions & { depth?: number }): Promise<Relations>;
  /** A thread in order; status 409 if several chats have one of that id and `chatId` does not say which is meant. */
  thread(id: string, options?: PageOptions & { chatId?: StructuredIdLike }): Promise<Thread>;
}

/** A service of the daemon at `options`. */
export function createMemoryService(options?: ConnectionOptions): MemoryService {
  return new DaemonMemoryService(new Connection(options));
}

/** A list of the daemon's. */
interface List<T> {
  items: T[];
  total: number;
  nextCursor?: string;
}

function itemsOf<T>({ items }: List<T>): T[] {
  return listIn(items, '`items` of the answer');
}

class DaemonMemoryService implements MemoryService {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async add<C extends MemoryCollection>(
    collection: C,
    content: string,
    metadata: object,
    options: AddOptions = {},
  ): Promise<Memory<C>> {
    const { idempotencyKey = globalThis.crypto.randomUUID(), ...call } = options;
    return this.#call('POST', `memories/${segment(collection, 'a collection')}`, call, {
      headers: { 'idempotency-key': idempotencyKey },
      body: toJson({ content, metadata }),
      isRepeatable: true,
    });
  }

  async search<C extends MemoryCollection>(
    collection: C,
    criteria?: CriteriaOf[C],
    options?: SearchOptions,
    call: CallOptions = {},
  ): Promise<SearchResults<Found<C>>> {
    return this.#search(`memories/${segment(collection, 'a collection')}/search`, criteria, options, call);
  }

  async searchAll(
    criteria?: CommonCriteria,
    options?: SearchOptions,
    call: CallOptions = {},
  ): Promise<SearchResults<Found>> {
    return this.#search('memories/search', criteria, options, call);
  }

  async #search<C extends MemoryCollection>(
    path: string,
    criteria: object | undefined,
    options: SearchOptions | undefined,
    call: CallOptions,
  ): Promise<SearchResults<Found<C>>> {
    const request = { body: toJson({ criteria: whole(criteria), options }), isRepeatable: true };
    type Answer = { memories: Found<C>[]; total: number; nextCursor?: string };
    const found = await this.#call<Answer>('POST', path, call, request);
    return page(listIn(found.memories, '`memories` of the answer'), found.total, found.nextCursor);
  }

  async *each<C extends MemoryCollection>(
    collection: C,
    criteria?: CriteriaOf[C],
    options: Omit<SearchOptions, 'offset' | 'cursor'> = {},
    call?: CallOptions,
  ): AsyncIterableIterator<Found<C>> {
    let next: SearchOptions | undefined = { limit: 200, ...options };
    while (next !== undefined) {
      const found: SearchResults<Found<C>> = await this.search(collection, criteria, next, call);
      yield* found;
      next = found.nextCursor === undefined ? undefined : { ...next, cursor: found.nextCursor };
    }
  }

  async get(id: string, { includeDeleted, ...call }: CallOptions & { includeDeleted?: boolean } = {}): Promise<Memory> {
    return this.#call('GET', memory(id), call, { query: { includeDeleted } });
  }

  async update(id: string, patch: MemoryPatch, options: ChangeOptions = {}): Promise<Memory> {
    return this.#change('PATCH', memory(id), options, toJson(patch));
  }

  async delete(id: string, options: ChangeOptions = {}): Promise<Memory> {
    return this.#change('DELETE', memory(id), options);
  }

  async restore(id: string, options: ChangeOptions = {}): Promise<Memory> {
    return this.#change('POST', `${memory(id)}/restore`, options);
  }

  async history(
    id: string,
    options: PageOptions & { includeDeleted?: boolean } = {},
  ): Promise<SearchResults<MemoryVersion>> {
    const { limit, cursor, includeDeleted, ...call } = options;
    const query = { limit, cursor, includeDeleted };
    const list = await this.#call<List<MemoryVersion>>('GET', `${memory(id)}/history`, call, { query });
    return page(itemsOf(list), list.total, list.nextCursor);
  }

  async relations(id: string, { depth, ...call }: CallOptions & { depth?: number } = {}): Promise<Relations> {
    type Answer = List<RelatedMemory> & Omit<Relations, 'items'>;
    const found = await this.#call<Answer>('GET', `${memory(id)}/relations`, call, { query: { depth } });
    return { items: itemsOf(found), dangling: found.dangling, truncated: found.truncated };
  }

  async thread(id: string, options: PageOptions & { chatId?: StructuredIdLike } = {}): Promise<Thread> {
    const { chatId: chat, limit, cursor, ...call } = options;
    const query = { chatId: typeof chat === 'object' ? structuredIdToString(chat) : chat, limit, cursor };
    type Answer = List<MessageMemory> & { chatId: StructuredId; gaps: Thread['gaps'] };
    const found = await this.#call<Answer>('GET', `threads/${segment(id, 'a thread')}`, call, { query });
    const items = page(itemsOf(found), found.total, found.nextCursor);
    return { id, chatId: found.chatId, items, gaps: found.gaps };
  }

  #change(method: string, path: string, { ifVersion, ...call }: ChangeOptions, body?: string): Promise<Memory> {
    return this.#call(method, path, call, { headers: { 'if-match': ifMatch(ifVersion) }, body });
  }

  #call<T extends object>(
    method: string,
    path: string,
    call: CallOptions,
    request: Omit<Request, 'method' | 'path' | keyof CallOptions>,
  ): Promise<T> {
    return this.#connection.json({ method, path: `/v1/${path}`, ...request, ...call });
  }
}

function memory(id: string): string {
  return `memories/${segment(id, "a memory's id")}`;
}

/**
 * The criteria as they are. JSON leaves out what is undefined, and without a value that was lost on the way everybody's
 * memories would be found.
 */
function whole<T extends object>(criteria: T | undefined): T | undefined {
  for (const [key, value] of Object.entries(criteria ?? {})) {
    if (value === undefined) throw new TypeError(`criteria.${key} is undefined; leave the key out to find any`);
  }
  return criteria;
}

/** Not enumerable, so that a page compares and prints as the plain array that it also is. */
function page<T>(items: T[], total: number, nextCursor: string | undefined): SearchResults<T> {
  const also = { total: { value: total }, nextCursor: { value: nextCursor } };
  return Object.defineProperties(items, also) as SearchResults<T>;
}
