/**
 * What happens, as it happens: one stream for the page. It is an `EventSource` where no token was given, which the browser
 * itself opens again; else it is read by `fetch`, because an `EventSource` sends no header and a token never stands in an
 * address.
 *
 * It is closed while the page is hidden, and opened again with the events of late; after a gap or a restart whoever shows
 * something asks again.
 */

import { useEffect, useRef, useState } from 'preact/hooks';

import { AlmanacError, authorization, hasToken, ROOT } from './api.js';

/** An event, as the daemon tells it. */
export interface Happened {
  type: string;
  at: string;
  [field: string]: unknown;
}

/** All types, as the daemon names them. */
export const TYPES = [
  'catalog_reloaded',
  'config_reloaded',
  'tokens_loaded',
  'watch_changed',
  'presets_loaded',
  'plugin_state_changed',
  'plugin_faulted',
  'plugin_replaced',
  'plugin_update_refused',
  'plugin_gone',
  'llm_breaker_changed',
  'execution_recorded',
  'message_qualified',
  'tool_missed',
  'tools_suggested',
  'memory_operated',
  'tool_relayed',
];

/** `refused` is who has no known token, `forbidden` who may not read; a daemon that is `silent` does not answer. */
export type Connection = 'connecting' | 'live' | 'lost' | 'refused' | 'forbidden' | 'silent';

/** Events that are kept: as many as the daemon keeps, of what happens often and of what happens now and then. */
const KEPT = 2000;
/** Between two attempts, in ms. */
const PAUSE_MS = 1000;
/** Between two looks at whether the daemon answers, and how long it may take to, in ms. */
const PULSE_MS = 5000;
const ANSWER_MS = 4000;
/** Events that come together are told as one from this many on: those of late, when the stream begins. */
const MANY = 50;

type Listener = (event: Happened | undefined) => void;

let kept: Happened[] = [];
let state: Exclude<Connection, 'silent'> = 'connecting';
let isSilent = false;
let running: AbortController | undefined;
const listeners = new Set<Listener>();
const watchers = new Set<() => void>();

/** Starts listening, or begins anew, as with another token. */
export function listen(): void {
  running?.abort();
  running = new AbortController();
  isSilent = false;
  if (document.hidden) return;
  set('connecting', state === 'lost');
  void heedSilence(running.signal);
  if (hasToken()) void follow(running.signal);
  else heed(running.signal);
}

/** Listens no more and forgets what was told: whoever comes next may not be allowed to know it. */
export function stopListening(): void {
  running?.abort();
  running = undefined;
  refuse('refused');
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) running?.abort();
  else if (running !== undefined) listen();
});

const ADDRESS = new URL(`v1/events?last=${KEPT}`, ROOT);

/** Listens as browsers do. */
function heed(signal: AbortSignal): void {
  const source = new EventSource(ADDRESS);
  let together: Happened[] = [];
  const take = ({ data }: MessageEvent<string>) => {
    together.push(JSON.parse(data) as Happened);
    if (together.length === 1) setTimeout(() => (signal.aborted || came(together), (together = [])));
  };
  for (const type of [...TYPES, 'missed']) source.addEventListener(type, take);
  source.onopen = begin;
  source.onerror = () => {
    // While it connects it tries by itself; it gives up where the answer is no stream, and then that answer tells why.
    if (source.readyState === EventSource.CLOSED) void giveUp(signal);
    else set('lost');
  };
  signal.addEventListener('abort', () => source.close());
}

/** A stream of a daemon that hangs is open, like one on which nothing happens: so it is asked whether it lives. */
async function heedSilence(signal: AbortSignal): Promise<void> {
  for (;;) {
    await new Promise((done) => setTimeout(done, PULSE_MS));
    if (signal.aborted) return;
    const wasSilent = isSilent;
    isSilent = await isLate(signal);
    if (signal.aborted || isSilent === wasSilent) continue;
    set(state);
    // What was asked meanwhile may have been given up.
    if (!isSilent) tell(undefined);
  }
}

async function isLate(signal: AbortSignal): Promise<boolean> {
  const late = AbortSignal.timeout(ANSWER_MS);
  const question = fetch(new URL('live', ROOT), { signal: AbortSignal.any([signal, late]), cache: 'no-store' });
  return question.then(
    () => false,
    () => late.aborted,
  );
}

async function giveUp(signal: AbortSignal): Promise<void> {
  const status = await fetch(new URL('v1/overview', ROOT), { signal, cache: 'no-store' }).then(
    (answer) => answer.status,
    () => 0,
  );
  if (signal.aborted) return;
  const refusal = refusalOf(status);
  if (refusal !== undefined) return foundRefused(refusal);
  set('lost');
  setTimeout(() => signal.aborted || listen(), PAUSE_MS);
}

/** Listens with the token. */
async function follow(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await read(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) return foundRefused(error.refusal);
    }
    set('lost');
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

type Refusal = 'refused' | 'forbidden';

class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal);
  }
}

function refusalOf(status: number): Refusal | undefined {
  return status === 401 ? 'refused' : status === 403 ? 'forbidden' : undefined;
}

function refuse(refusal: Refusal): void {
  kept = [];
  set(refusal);
}

/** Whoever shows something asks again, and so finds out that it may not. */
function foundRefused(refusal: Refusal): void {
  refuse(refusal);
  tell(undefined);
}

async function read(signal: AbortSignal): Promise<void> {
  const answer = await fetch(ADDRESS, { headers: authorization(), signal, cache: 'no-store' });
  const refusal = refusalOf(answer.status);
  if (refusal !== undefined) throw new Refused(refusal);
  if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
  begin();
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    came(blocks.flatMap(parsed));
  }
}

function parsed(block: string): Happened[] {
  const data = block.split('\n').find((line) => line.startsWith('data: '));
  return data === undefined ? [] : [JSON.parse(data.slice(6)) as Happened];
}

/** The stream begins, with the events of late: whatever is shown is of before the gap. */
function begin(): void {
  kept = [];
  set('live');
  tell(undefined);
}

function came(events: readonly Happened[]): void {
  if (events.length === 0) return;
  kept = [...kept, ...events].slice(-KEPT);
  if (events.length > MANY) tell(undefined);
  else events.forEach(tell);
}

function tell(event: Happened | undefined): void {
  for (const listener of [...listeners]) listener(event);
}

function set(next: typeof state, isQuiet = false): void {
  state = next;
  if (!isQuiet) for (const watcher of [...watchers]) watcher();
}

/** How the stream is. */
export function useConnection(): Connection {
  const [, setCount] = useState(0);
  useEffect(() => {
    const watcher = () => setCount((count) => count + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
  const isAnswered = state === 'refused' || state === 'forbidden';
  return isSilent && !isAnswered ? 'silent' : state;
}

/** The events of late, oldest first; of these types only if any is named. */
export function useEvents(types?: readonly string[]): readonly Happened[] {
  const [, setCount] = useState(0);
  const wanted = types?.join();
  useEffect(() => {
    let waiting = 0;
    const listener: Listener = () => {
      if (waiting === 0) waiting = window.setTimeout(() => ((waiting = 0), setCount((count) => count + 1)), 100);
    };
    listeners.add(listener);
    return () => (clearTimeout(waiting), void listeners.delete(listener));
  }, [wanted]);
  return types === undefined ? kept : kept.filter((event) => types.includes(event.type));
}

/** Calls `back` when events of these types come, or may have been missed; at once, and then every `everyMs` at most. */
export function useOnEvent(types: readonly string[], everyMs: number, back: () => void): void {
  const latest = useRef(back);
  latest.current = back;
  const wanted = types.join();
  useEffect(() => {
    let waiting = 0;
    let last = -Infinity;
    const call = () => {
      waiting = 0;
      last = performance.now();
      latest.current();
    };
    const listener: Listener = (event) => {
      if (event !== undefined && event.type !== 'missed' && !types.includes(event.type)) return;
      const wait = last + everyMs - performance.now();
      if (waiting === 0) waiting = window.setTimeout(call, Math.max(0, wait));
    };
    listeners.add(listener);
    return () => (clearTimeout(waiting), void listeners.delete(listener));
  }, [wanted, everyMs]);
}

/** Is the error one that a stream that was lost explains? */
export function isGap(error: unknown): boolean {
  if (!(error instanceof AlmanacError)) return false;
  return error.code === 'unreachable' || error.code === 'timeout' || error.status === 503;
}
