import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAlmanacClient } from '../src/index.js';
import { failure } from './failure.js';
import { servingSocket } from './serving.js';

// In a file of its own, so that the only timers of 45 s are those of this call.
test('a daemon that falls silent is given up, and a slow reader is not', { timeout: 10_000 }, async (t) => {
  const { socket } = await servingSocket((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {"type":"a"}\n\n');
  });
  const { setTimeout: wait, clearTimeout: stop } = globalThis;
  const running = new Map<unknown, () => void>();
  t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number) => {
    const timer = wait(done, ms);
    if (ms === 45_000) running.set(timer, done);
    return timer;
  });
  t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
    running.delete(timer);
    stop(timer);
  });
  const events = createAlmanacClient({ socket }).listenToEvents();
  assert.equal((await events.next()).value.type, 'a');
  assert.equal(running.size, 0, 'nothing runs while its reader has an event');
  const next = events.next();
  while (running.size === 0) await new Promise(setImmediate);
  for (const end of [...running.values()]) end();
  assert.equal((await failure(next)).code, 'timeout');
});
