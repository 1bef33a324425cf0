import assert from 'node:assert/strict';

import { AlmanacError } from '../src/index.js';

/** The error of a call; any other outcome fails the test. */
export async function failure(call: Promise<unknown>): Promise<AlmanacError> {
  const error = await call.then(
    () => assert.fail('it did not fail'),
    (error: unknown) => error,
  );
  assert.ok(error instanceof AlmanacError, String(error));
  return error;
}
