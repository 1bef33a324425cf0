/** When a call ends at the latest: when its time is up, or when its caller gives it up. */

type Listener = () => void;

/** Longest timeout, in ms: what timers can wait. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** Throws a RangeError if `ms` is not 1 to {@link LONGEST_TIMEOUT_MS}. */
export function checkTimeout(name: string, ms: number): void {
  if (!(ms >= 1 && ms <= LONGEST_TIMEOUT_MS)) throw new RangeError(`${name} cannot be ${ms}`);
}

/** Many calls may share a signal, and Node warns of more than ten listeners of one: all of them listen through one. */
const listening = new WeakMap<AbortSignal, { listeners: Set<Listener>; tell: Listener }>();

function listen(signal: AbortSignal, listener: Listener): void {
  let shared = listening.get(signal);
  if (shared === undefined) {
    const listeners = new Set<Listener>();
    shared = { listeners, tell: () => listeners.forEach((each) => each()) };
    listening.set(signal, shared);
    signal.addEventListener('abort', shared.tell);
  }
  shared.listeners.add(listener);
}

function leave(signal: AbortSignal, listener: Listener): void {
  const shared = listening.get(signal);
  if (shared === undefined || !shared.listeners.delete(listener) || shared.listeners.size > 0) return;
  signal.removeEventListener('abort', shared.tell);
  listening.delete(signal);
}

/** The end of one call. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #ms: number;
  readonly #caller: AbortSignal | undefined;
  readonly #end = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;

  /** Of a call that may take `ms` from {@link start} on, and that `caller` ends before. */
  constructor(ms: number, caller: AbortSignal | undefined) {
    this.#ms = ms;
    this.#caller = caller;
    if (caller !== undefined) listen(caller, this.#end);
  }

  /** Aborted at the end. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time runs from now on: that of the call, unless `ms` are given. */
  start(ms = this.#ms): void {
    clearTimeout(this.#timer);
    if (!this.#isOver) this.#timer = setTimeout(this.#end, ms);
  }

  /** The time does not run until the next {@link start}. */
  pause(): void {
    clearTimeout(this.#timer);
  }

  /** The call is over: nothing ends it any more. */
  clear(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#caller !== undefined) leave(this.#caller, this.#end);
  }
}
