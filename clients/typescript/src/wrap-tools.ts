/** Tools of the AI SDK (5 and later) that Almanac chooses from and learns from. */

import type { AlmanacClient } from './client.js';
import { checkTimeout } from './deadline.js';
import { ExecutionRecorder, type Outcome } from './execution-recorder.js';
import { within } from './within.js';

/** As much of a tool of the AI SDK as matters here, so that no release of it is needed. */
interface AnyTool {
  // Tools differ in what they take, and the SDK's own type says `any` as well.
  execute?: ((input: any, options: any) => any) | undefined;
}

/** How long a message waits for the records of calls before it, in ms. */
const RECORDS_WAIT_MS = 250;

/** How tools are wrapped. */
export interface WrapOptions {
  /** The conversation: its calls make up its history, and its context is kept. */
  sessionId?: string;
  /** At most so many tools for a message; by default as many as fit. */
  maxTools?: number;
  /** How long `forMessage` may take, in ms, 1 to 2147483647; 3000 by default. After that all tools are offered. */
  choiceTimeoutMs?: number;
  /**
   * Called with what went wrong with Almanac, which never keeps a tool from running; logged as a warning by default. What it
   * throws itself is logged.
   */
  onError?: (error: unknown) => void;
}

/** Tools that record their calls. */
export interface WrappedTools<T extends Record<string, AnyTool>> {
  /** All of them. A call is recorded beside it: its result does not wait for the daemon. */
  readonly tools: T;
  /**
   * The names that fit a message, for `activeTools`. Tools that Almanac has no document of are always among them, and if
   * it does not answer within `choiceTimeoutMs`, all are. Records of calls before it are waited for, for 250 ms, so that
   * they count for the message before.
   */
  forMessage(message: string): Promise<(keyof T & string)[]>;
  /**
   * Fulfilled when all calls that ended are recorded, or given up and told to `onError`. A process that ends by itself
   * waits for its records; one that is ended, as by `process.exit()`, loses those under way.
   */
  settled(): Promise<void>;
}

/**
 * Wraps the tools of `generateText` or `streamText`: each call is recorded, and each message gets those that fit. Throws a
 * RangeError for a `choiceTimeoutMs` out of its range.
 */
export function wrapTools<T extends Record<string, AnyTool>>(
  tools: T,
  almanac: Pick<AlmanacClient, 'checkTools' | 'qualify' | 'recordExecutions'>,
  { sessionId, maxTools, choiceTimeoutMs = 3_000, onError = warn }: WrapOptions = {},
): WrappedTools<T> {
  checkTimeout('choiceTimeoutMs', choiceTimeoutMs);
  const report = (error: unknown) => {
    try {
      onError(error);
    } catch (own) {
      warn(own);
    }
  };
  const recorder = new ExecutionRecorder(almanac, sessionId, report);
  const names = Object.keys(tools) as (keyof T & string)[];
  const fitting = async (message: string, signal: AbortSignal) => {
    await within(RECORDS_WAIT_MS, () => recorder.settled()).catch(() => {});
    // A broken connection is replaced, and a daemon that is away is not waited for.
    const call = { signal, retries: 1 };
    // Others of the catalog must not crowd out those that are here.
    const body = { message, maxTools: 10_000, ...(sessionId !== undefined && { sessionId }) };
    const [fit, { unknown }] = await Promise.all([
      almanac.qualify({ body, ...call }),
      almanac.checkTools({ body: { tools: names }, ...call }),
    ]);
    const foreign = new Set(unknown.map(({ tool }) => tool));
    const known = fit.availableTools.filter((name) => names.includes(name)).slice(0, maxTools);
    return [...known, ...names.filter((name) => foreign.has(name))];
  };
  return {
    tools: Object.fromEntries(names.map((name) => [name, timed(name, tools[name]!, recorder)])) as T,
    async forMessage(message) {
      try {
        return await within(choiceTimeoutMs, (signal) => fitting(message, signal));
      } catch (error) {
        report(error);
        return names;
      }
    },
    settled: () => recorder.settled(),
  };
}

function warn(error: unknown): void {
  console.warn('almanac:', error);
}

function timed(name: string, tool: AnyTool, recorder: ExecutionRecorder): AnyTool {
  const { execute } = tool;
  // Without one, the call is answered elsewhere, and nobody here knows when.
  if (execute === undefined) return tool;
  return {
    ...tool,
    execute(input: unknown, options: unknown) {
      const started = performance.now();
      const end = (outcome: Outcome) => recorder.record(name, started, outcome);
      try {
        const answer: unknown = execute.call(tool, input, options);
        return isStream(answer) ? toItsEnd(answer, end) : awaited(answer, end);
      } catch (error) {
        end(outcomeOf(error));
        throw error;
      }
    },
  };
}

async function awaited(answer: unknown, end: (outcome: Outcome) => void): Promise<unknown> {
  try {
    const result = await answer;
    end('success');
    return result;
  } catch (error) {
    end(outcomeOf(error));
    throw error;
  }
}

/** A tool that answers bit by bit. */
async function* toItsEnd(answer: AsyncIterable<unknown>, end: (outcome: Outcome) => void) {
  let outcome: Outcome = 'cancelled';
  try {
    yield* answer;
    outcome = 'success';
  } catch (error) {
    outcome = outcomeOf(error);
    throw error;
  } finally {
    end(outcome);
  }
}

function isStream(answer: unknown): answer is AsyncIterable<unknown> {
  return typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer;
}

function outcomeOf(error: unknown): Outcome {
  const name = error instanceof Error ? error.name : '';
  if (name === 'TimeoutError') return 'timeout';
  return name === 'AbortError' ? 'cancelled' : 'error';
}
