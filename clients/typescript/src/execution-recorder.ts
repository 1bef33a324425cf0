/** Records calls of tools beside them, so that nobody waits for the daemon. */

import type { AlmanacClient } from './client.js';
import type { ExecutionBody } from './openapi.js';

/** How a call came out. */
export type Outcome = NonNullable<ExecutionBody['outcome']>;

/** Records calls, and knows which records are under way. */
export class ExecutionRecorder {
  readonly #almanac: Pick<AlmanacClient, 'recordExecutions'>;
  readonly #sessionId: string | undefined;
  readonly #report: (error: unknown) => void;
  readonly #underWay = new Set<Promise<void>>();

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
    const execution: ExecutionBody = {
      tool_name: name,
      duration_ms: Math.round(performance.now() - started),
      outcome,
      ...(this.#sessionId !== undefined && { session_id: this.#sessionId }),
      // Ids of models are no keys: some begin anew with each turn.
      idempotency_key: `${name.slice(0, 200)}/${globalThis.crypto.randomUUID()}`,
    };
    const told = this.#tell(execution).finally(() => this.#underWay.delete(told));
    this.#underWay.add(told);
  }

  /** Fulfilled when no record is under way. */
  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  async #tell(execution: ExecutionBody): Promise<void> {
    try {
      await this.#almanac.recordExecutions({ body: execution });
    } catch (error) {
      this.#report(error);
    }
  }
}
