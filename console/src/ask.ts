/** What a page asks the daemon, and what came of it. What was shown stays until the next answer is there. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';

import { needsToken } from './api.js';
import { isGap } from './live.js';

export interface Asked<T> {
  answer: T | undefined;
  error: unknown;
  isBusy: boolean;
  again: () => void;
}

let onTokenNeeded: () => void = () => undefined;

/** What to do when the daemon wants a token. */
export function whenTokenNeeded(then: () => void): void {
  onTokenNeeded = then;
}

/** Asks at once, and again when `key` changes. */
export function useAsk<T>(key: string, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [state, setState] = useState<{ key: string; answer?: T; error?: unknown; isBusy: boolean }>({
    key,
    isBusy: true,
  });
  const [round, setRound] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    const controller = new AbortController();
    setState((before) => (before.key === key ? { ...before, isBusy: true } : { key, isBusy: true }));
    latest
      .current(controller.signal)
      .then((answer) => {
        if (!controller.signal.aborted) setState({ key, answer, isBusy: false });
      })
      .catch((error: unknown) => {
        if (controller.signal.aborted) return;
        if (needsToken(error)) onTokenNeeded();
        // The head of the page says that the daemon is away; what it said before is still worth reading.
        setState((before) => ({
          ...(isGap(error) && before.key === key ? before : { key }),
          key,
          error,
          isBusy: false,
        }));
      });
    return () => controller.abort();
  }, [key, round]);
  const again = useCallback(() => setRound((count) => count + 1), []);
  return { answer: state.key === key ? state.answer : undefined, error: state.error, isBusy: state.isBusy, again };
}

export interface Pages<T> extends Asked<T> {
  /** Asks for one page more. */
  more: () => void;
}

/** Asks for the first page of a list, and for one more each time that somebody says so. */
export function usePages<T extends { items: readonly unknown[]; nextCursor?: string | null }>(
  key: string,
  ask: (cursor: string | undefined, signal: AbortSignal) => Promise<T>,
): Pages<T> {
  const pages = useRef(1);
  const asked = useAsk(key, async (signal) => {
    let answer = await ask(undefined, signal);
    for (let page = 1; page < pages.current && answer.nextCursor != null; page += 1) {
      const next = await ask(answer.nextCursor, signal);
      answer = { ...next, items: [...answer.items, ...next.items] };
    }
    return answer;
  });
  const more = () => {
    pages.current += 1;
    asked.again();
  };
  return { ...asked, more };
}

/** Items that one question may ask for. */
const LARGEST_PAGE = 1000;

interface Listed {
  items: readonly unknown[];
  next_cursor?: string | null;
  nextCursor?: string | null;
}

/** The first items of a list, so many at most, by as many questions as that takes; the rest is of the last answer. */
export async function gather<T extends Listed>(
  most: number,
  ask: (page: { limit: number; cursor?: string }) => Promise<T>,
): Promise<T> {
  let answer = await ask({ limit: Math.min(most, LARGEST_PAGE) });
  for (;;) {
    const cursor = answer.next_cursor ?? answer.nextCursor;
    const missing = most - answer.items.length;
    if (cursor == null || missing <= 0) return answer;
    const next = await ask({ limit: Math.min(missing, LARGEST_PAGE), cursor });
    answer = { ...next, items: [...answer.items, ...next.items] };
  }
}

export interface Doing<A extends unknown[], T> {
  run: (...input: A) => Promise<void>;
  answer: T | undefined;
  error: unknown;
  isBusy: boolean;
  clear: () => void;
}

/** Something that is done when somebody says so. */
export function useDo<A extends unknown[], T>(work: (...input: A) => Promise<T>): Doing<A, T> {
  const [state, setState] = useState<{ answer?: T; error?: unknown; isBusy: boolean }>({ isBusy: false });
  const count = useRef(0);
  const run = async (...input: A) => {
    const mine = ++count.current;
    setState((before) => ({ ...before, isBusy: true, error: undefined }));
    const next = await work(...input).then(
      (answer) => ({ answer, isBusy: false }),
      (error: unknown) => {
        if (needsToken(error)) onTokenNeeded();
        return { error, isBusy: false };
      },
    );
    if (mine === count.current) setState(next);
  };
  return {
    run,
    answer: state.answer,
    error: state.error,
    isBusy: state.isBusy,
    clear: () => setState({ isBusy: false }),
  };
}
