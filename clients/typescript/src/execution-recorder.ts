/** Records calls of tools beside them, so that nobody waits for the daemon. */

import type { AlmanacClient } from './client.js';
import type { ExecutionBody } from './openapi.js';
import { within } from './within.js';

/** How long after a call its record is given up, in ms, also if it waited for others. */
const PATIENCE_MS = 30_000;

/** How a call came out. */
export type Outcome = NonNullable<ExecutionBody['outcome']>;

/** Records calls in the order in which they ended, and knows which records are under way. */
export class ExecutionRecorder {
  readonly #almanac: Pick<AlmanacClient, 'recordExecutions'>;
  readonly #sessionId: string | undefined;
  readonly #report: (error: unknown) => void;
  #last: Promise<void> = Promise.resolve();

  constructor(
    almanac: Pick<AlmanacClient, 'recordExecutions'>,
    sessionId: string | undefined,
    report: (error: unknown) => void,
  ) {
    this.#almanac = almanac;
    this.#sessionId = sessionId;
    this.#report = report;
  }

  /** Records a call that began at `started`, by `performance.now()`, and ends now. */
  record(name: string, started: number, outcome: Outcome): void {
    const ended = performance.now();
    const execution: ExecutionBody = {
      tool_name: name,
      duration_ms: Math.round(ended - started),
      outcome,
      timestamp: Date.now(),
      ...(this.#sessionId !== undefined && { session_id: this.#sessionId }),
      // Ids of models are no keys: some begin anew with each turn.
      idempotency_key: `${name.slice(0, 200)}/${globalThis.crypto.randomUUID()}`,
    };
    // One that is repeated must not be overtaken: what is called next is learnt from their order.
    this.#last = this.#last.then(() => this.#tell(execution, ended + PATIENCE_MS));
  }

  /** Fulfilled when no record is under way. */
  async settled(): Promise<void> {
    for (let last; last !== this.#last;) await (last = this.#last);
  }

  async #tell(execution: ExecutionBody, until: number): Promise<void> {
    try {
      const left = Math.max(1, until - performance.now());
      await within(left, (signal) => this.#almanac.recordExecutions({ body: execution, signal }));
    } catch (error) {
      this.#report(error);
    }
  }
}
