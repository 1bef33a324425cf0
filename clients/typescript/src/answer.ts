/** What an answer has to be. Any other is none of the daemon's, and fails with the code `not-almanac`. */

import { AlmanacError } from './error.js';

/** The JSON of a text. Throws an AlmanacError if there is none. */
export function parsed(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw foreign(`${what} is no JSON`, cause);
  }
}

/** The JSON of a text that is an object. Throws an AlmanacError if it is none. */
export function objectIn<T extends object>(text: string, what: string): T {
  const found = parsed(text, what);
  if (!isObject(found)) throw foreign(`${what} is no object`);
  return found as T;
}

/** What has to be a list. Throws an AlmanacError if it is none. */
export function listIn<T>(found: T[], what: string): T[] {
  if (!Array.isArray(found)) throw foreign(`${what} is no list`);
  return found;
}

/** Is it what JSON calls an object? */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function foreign(why: string, cause?: unknown): AlmanacError {
  return AlmanacError.local('not-almanac', `${why}; is that the daemon?`, 200, cause);
}
