import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createMemoryService } from '../src/index.js';
import { failure } from './failure.js';

// In a file of its own, so that the only timers are those of this call.
test('a daemon that starts again is waited for', async (t) => {
  const pauses: number[] = [];
  const { setTimeout: wait } = globalThis;
  t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number) => {
    if (ms < 30_000) pauses.push(ms);
    return wait(done, ms < 30_000 ? 0 : ms);
  });
  const service = createMemoryService({ socket: '/nowhere/almanac.sock' });
  assert.equal((await failure(service.get('m'))).code, 'unreachable');
  const whole = pauses.reduce((sum, ms) => sum + ms, 0);
  assert.ok(whole > 3_000 && whole < 5_000, `${pauses}`);
  assert.deepEqual(
    pauses,
    [...pauses].sort((a, b) => a - b),
  );
});
