/** What goes wrong, in one type: the daemon's refusals, and no answer at all. */

/** The error as the daemon tells it (RFC 9457). */
export interface ProblemDocument {
  /** The status in words. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** A stable code to decide by. */
  code: string;
  /** What is wrong, and what to do. */
  detail: string;
  /** Every fault of the body; absent if there is none. */
  errors?: PointedError[];
  /** Names that may have been meant; absent if there is none. */
  near?: string[];
}

/** One fault of a request's body. */
export interface PointedError {
  /** RFC 6901 pointer into the body, such as `/metadata/thread/position`. */
  pointer: string;
  /** A stable code. */
  code: string;
  /** What is wrong there. */
  detail: string;
}

/** Codes of this client: nobody answered, nobody answered in time, or something that is no daemon did. */
export type LocalCode = 'unreachable' | 'timeout' | 'not-almanac';

/**
 * A call that failed. Only what is the caller's own makes it fail with anything else: a `signal` with its reason, and a stream
 * that is sent with its error.
 */
export class AlmanacError extends Error {
  override readonly name = 'AlmanacError';
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** A stable code to decide by: the daemon's, or a {@link LocalCode}. */
  readonly code: string;
  /** Every fault of the body, with pointers. */
  readonly errors: readonly PointedError[];
  /** Names that may have been meant. */
  readonly near: readonly string[];
  /** The whole document, if the daemon answered with one. */
  readonly problem: ProblemDocument | undefined;
  /** The answer's `x-request-id`, by which the daemon's log has it. */
  readonly requestId: string | undefined;

  private constructor(
    message: string,
    status: number,
    code: string,
    problem?: ProblemDocument,
    requestId?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.errors = problem?.errors ?? [];
    this.near = problem?.near ?? [];
    this.problem = problem;
    this.requestId = requestId;
  }

  /** A refusal of the daemon. */
  static refused(problem: ProblemDocument, requestId?: string): AlmanacError {
    const faults = (problem.errors ?? []).map(({ pointer, detail }) => `\n  ${pointer}: ${detail}`).join('');
    const near = problem.near?.length ? `\n  did you mean ${problem.near.join(' or ')}?` : '';
    return new AlmanacError(`${problem.detail}${faults}${near}`, problem.status, problem.code, problem, requestId);
  }

  /** No answer that the daemon can have given. */
  static local(code: LocalCode, message: string, status = 0, cause?: unknown): AlmanacError {
    return new AlmanacError(message, status, code, undefined, undefined, { cause });
  }
}
