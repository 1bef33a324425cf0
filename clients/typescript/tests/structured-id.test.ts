import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  areStructuredIdsEqual,
  createAgentId,
  createChatId,
  createSystemId,
  createThreadId,
  createUserId,
  EntityType,
  MAX_ID_PART,
  parseStructuredId,
  type StructuredId,
  structuredIdToString,
} from '../src/index.js';

test('ids have the namespaces of the contract', () => {
  const made: [StructuredId, string][] = [
    [createUserId('x'), 'user:user:x'],
    [createAgentId('x'), 'agent:agent:x'],
    [createChatId('x'), 'chat:chat:x'],
    [createThreadId('a:b%'), 'chat:thread:a%3Ab%25'],
    [createSystemId(EntityType.MESSAGE, 'x'), 'system:message:x'],
    [createSystemId('job', 'x'), 'system:job:x'],
  ];
  for (const [id, text] of made) {
    assert.equal(structuredIdToString(id), text);
    assert.deepEqual(parseStructuredId(text), id);
  }
  assert.deepEqual(createUserId('x'), { namespace: 'user', type: 'user', id: 'x' }, 'there is no key for no version');
});

test('exactly what is written is read', () => {
  const good: [string, StructuredId][] = [
    ['user:user:john:2', { namespace: 'user', type: 'user', id: 'john', version: 2 }],
    ['system:böse:東京', { namespace: 'system', type: 'böse', id: '東京' }],
    [`a:b:c:${Number.MAX_SAFE_INTEGER}`, { namespace: 'a', type: 'b', id: 'c', version: Number.MAX_SAFE_INTEGER }],
    [`a:b:${'😀'.repeat(MAX_ID_PART)}`, { namespace: 'a', type: 'b', id: '😀'.repeat(MAX_ID_PART) }],
  ];
  for (const [text, id] of good) {
    assert.deepEqual(parseStructuredId(text), id);
    assert.equal(structuredIdToString(id), text);
  }
  const versions = ['abc', '2abc', '-1', '+1', '0', '01', '', ' 1', '1.0', '1e3', '9007199254740992'];
  const bad = [
    '',
    '::',
    'a:b',
    'a::b',
    'a:b:',
    ':b:c',
    'a:b:c:1:d',
    'chat:thread:a:b:c',
    'a:b:c%3ad',
    'a:b:100%',
    'a:b:%é',
  ];
  const characters = [
    'a:b:c\0',
    'a\n:b:c',
    'a:b:\ud800',
    `a:b:${'x'.repeat(MAX_ID_PART + 1)}`,
    `a:b:${'x'.repeat(1e6)}`,
  ];
  for (const text of [...versions.map((version) => `user:user:john:${version}`), ...bad, ...characters]) {
    assert.equal(parseStructuredId(text), null, text.slice(0, 60));
  }
  assert.equal(parseStructuredId(7 as unknown as string), null);
});

test('what is no id is not made', () => {
  const longer = /the id is longer than 512 characters/;
  assert.throws(() => createUserId(''), new RangeError('the id is empty'));
  assert.throws(() => createUserId('x'.repeat(513)), longer);
  assert.throws(() => createAgentId('a\tb'), /control character "\\t" at 1/);
  assert.throws(() => createChatId('\udfff'), /surrogate/);
  assert.throws(() => createSystemId('', 'x'), /the type is empty/);
  assert.throws(() => createThreadId(undefined as unknown as string), /no string/);
  assert.throws(() => structuredIdToString({ ...createUserId('x'), version: 1.5 }), /version 1.5/);
  assert.throws(() => structuredIdToString({ ...createUserId('x'), version: 0 }), /version 0/);
});

test('ids are equal by all their parts, in either form', () => {
  const id = createUserId('a:b');
  assert.ok(areStructuredIdsEqual(id, 'user:user:a%3Ab'));
  assert.ok(areStructuredIdsEqual('user:user:x:1', { ...createUserId('x'), version: 1 }));
  assert.ok(!areStructuredIdsEqual('user:user:x:1', 'user:user:x'), 'no version is not version 1');
  assert.ok(!areStructuredIdsEqual('user:user:x', 'agent:agent:x'));
  assert.ok(!areStructuredIdsEqual('user:user:a:b', 'user:user:a:b'), 'a text that is no id equals nothing');
});

test('every id round-trips', () => {
  const random = generator(20261121);
  const pieces = [':', '%', '%3A', '%25', '%3a', 'a', 'é', '東', '😀', ' ', '/', '"', '-'];
  const part = () => Array.from({ length: 1 + random(8) }, () => pieces[random(pieces.length)]).join('');
  for (let round = 0; round < 5_000; round += 1) {
    const parts = { namespace: part(), type: part(), id: part() };
    const id: StructuredId = random(2) === 0 ? parts : { ...parts, version: 1 + random(1e9) };
    const text = structuredIdToString(id);
    assert.deepEqual(parseStructuredId(text), id, text);
  }
});

test('whatever is read is written the same', () => {
  const random = generator(7);
  const pieces = [':', ':', '%', '%3A', '%25', 'a', '0', '1', '9'];
  let read = 0;
  for (let round = 0; round < 20_000; round += 1) {
    const text = Array.from({ length: random(12) }, () => pieces[random(pieces.length)]).join('');
    const id = parseStructuredId(text);
    if (id === null) continue;
    read += 1;
    assert.equal(structuredIdToString(id), text);
  }
  assert.ok(read > 300, `only ${read} of them were ids`);
});

/** Numbers below a bound, the same in every run (a linear congruence of 32 bits, by Numerical Recipes). */
function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
