/** Tools of the AI SDK (5 and later) that Almanac chooses from and learns from. */

import type { AlmanacClient } from './client.js';
import type { ExecutionBody } from './openapi.js';

/** As much of a tool of the AI SDK as matters here, so that no release of it is needed. */
interface AnyTool {
  // Tools differ in what they take, and the SDK's own type says `any` as well.
  execute?: ((input: any, options: any) => any) | undefined;
}

/** How tools are wrapped. */
export interface WrapOptions {
  /** The conversation: its calls make up its history, and its context is kept. */
  sessionId?: string;
  /** At most so many tools for a message; by default as many as fit. */
  maxTools?: number;
  /** Called with what went wrong with Almanac, which never keeps a tool from running; logged as a warning by default. */
  onError?: (error: unknown) => void;
}

/** Tools that record their calls. */
export interface WrappedTools<T extends Record<string, AnyTool>> {
  /** All of them. */
  readonly tools: T;
  /**
   * The names that fit a message, for `activeTools`. Tools that Almanac has no document of are always among them, and if
   * it does not answer, all are.
   */
  forMessage(message: string): Promise<(keyof T & string)[]>;
}

/** Wraps the tools of `generateText` or `streamText`: each call is recorded, and each message gets those that fit. */
export function wrapTools<T extends Record<string, AnyTool>>(
  tools: T,
  almanac: Pick<AlmanacClient, 'checkTools' | 'qualify' | 'recordExecutions'>,
  { sessionId, maxTools, onError = (error) => console.warn('almanac:', error) }: WrapOptions = {},
): WrappedTools<T> {
  const record = async (name: string, started: number, outcome: Outcome, callId: unknown) => {
    const execution: ExecutionBody = {
      tool_name: name,
      duration_ms: Math.round(performance.now() - started),
      outcome,
      ...(sessionId !== undefined && { session_id: sessionId }),
      ...(typeof callId === 'string' && { idempotency_key: `${sessionId ?? ''}/${callId}`.slice(-256) }),
    };
    await almanac.recordExecutions({ body: execution }).catch(onError);
  };
  const names = Object.keys(tools) as (keyof T & string)[];
  return {
    tools: Object.fromEntries(names.map((name) => [name, timed(name, tools[name]!, record)])) as T,
    async forMessage(message) {
      try {
        // Others of the catalog must not crowd out those that are here.
        const body = { message, maxTools: 10_000, ...(sessionId !== undefined && { sessionId }) };
        const [fit, { unknown }] = await Promise.all([
          almanac.qualify({ body }),
          almanac.checkTools({ body: { tools: names } }),
        ]);
        const foreign = new Set(unknown.map(({ tool }) => tool));
        const fitting = fit.availableTools.filter((name) => names.includes(name)).slice(0, maxTools);
        return [...fitting, ...names.filter((name) => foreign.has(name))];
      } catch (error) {
        onError(error);
        return names;
      }
    },
  };
}

type Outcome = NonNullable<ExecutionBody['outcome']>;
type Recorder = (name: string, started: number, outcome: Outcome, callId: unknown) => Promise<void>;

function timed(name: string, tool: AnyTool, record: Recorder): AnyTool {
  const { execute } = tool;
  // Without one, the call is answered elsewhere, and nobody here knows when.
  if (execute === undefined) return tool;
  return {
    ...tool,
    execute(input: unknown, options: { toolCallId?: unknown } | undefined) {
      const started = performance.now();
      const end = (outcome: Outcome) => record(name, started, outcome, options?.toolCallId);
      const answer: unknown = execute.call(tool, input, options);
      return isStream(answer) ? toItsEnd(answer, end) : awaited(answer, end);
    },
  };
}

async function awaited(answer: unknown, end: (outcome: Outcome) => Promise<void>): Promise<unknown> {
  try {
    const result = await answer;
    await end('success');
    return result;
  } catch (error) {
    await end(outcomeOf(error));
    throw error;
  }
}

/** A tool that answers bit by bit. */
async function* toItsEnd(answer: AsyncIterable<unknown>, end: (outcome: Outcome) => Promise<void>) {
  let outcome: Outcome = 'cancelled';
  try {
    yield* answer;
    outcome = 'success';
  } catch (error) {
    outcome = outcomeOf(error);
    throw error;
  } finally {
    await end(outcome);
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
