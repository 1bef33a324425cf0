/**
 * What happens, as it happens: one stream for the page, read by `fetch` because a token never stands in an address.
 *
 * It is closed while the page is hidden, and opened again with the events of late; after a gap or a restart whoever shows
 * something asks again.
 */

import { useEffect, useRef, useState } from 'preact/hooks';

import { AlmanacError, authorization, ROOT } from './api.js';

/** An event, as the daemon tells it. */
export interface Happened {
  type: string;
  at: string;
  [field: string]: unknown;
}

export type Connection = 'connecting' | 'live' | 'lost' | 'refused';

/** Events that are kept: as many as the daemon keeps, of what happens often and of what happens now and then. */
const KEPT = 2000;
/** Between two attempts, in ms. */
const PAUSE_MS = 1000;

type Listener = (event: Happened | undefined) => void;

let kept: Happened[] = [];
let state: Connection = 'connecting';
let running: AbortController | undefined;
const listeners = new Set<Listener>();
const watchers = new Set<() => void>();

/** Starts listening, or begins anew, as with another token. */
export function listen(): void {
  running?.abort();
  running = new AbortController();
  void follow(running.signal);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) running?.abort();
  else if (running !== undefined) listen();
});

async function follow(signal: AbortSignal): Promise<void> {
  let isFirst = true;
  while (!signal.aborted) {
    set('connecting', isFirst);
    try {
      await read(signal, isFirst);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused) return set('refused');
    }
    isFirst = false;
    set('lost');
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}

class Refused extends Error {}

async function read(signal: AbortSignal, isFirst: boolean): Promise<void> {
  const address = new URL(`v1/events?last=${KEPT}`, ROOT);
  const answer = await fetch(address, { headers: authorization(), signal, cache: 'no-store' });
  if (answer.status === 401 || answer.status === 403) throw new Refused();
  if (!answer.ok || answer.body === null) throw new Error(`status ${answer.status}`);
  kept = [];
  set('live');
  // Whatever was shown is of before the gap.
  tell(undefined);
  if (isFirst) tell(undefined);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop() ?? '';
    const events = blocks.flatMap(parsed);
    if (events.length === 0) continue;
    kept = [...kept, ...events].slice(-KEPT);
    // The events of late come at once; who shows something asks once for all of them.
    if (events.length > 50) tell(undefined);
    else events.forEach(tell);
  }
}

function parsed(block: string): Happened[] {
  const data = block.split('\n').find((line) => line.startsWith('data: '));
  return data === undefined ? [] : [JSON.parse(data.slice(6)) as Happened];
}

function tell(event: Happened | undefined): void {
  for (const listener of [...listeners]) listener(event);
}

function set(next: Connection, isQuiet = false): void {
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
  return state;
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
  return error instanceof AlmanacError && (error.code === 'unreachable' || error.status === 503);
}
