import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAlmanacClient, createMemoryService } from '../src/index.js';
import { toJson } from '../src/json.js';
import { json, serving } from './serving.js';

test('what JSON keeps is sent as it is', () => {
  const body = {
    a: [2 ** 53 - 1, -(2 ** 53 - 1), 0.1, 1e21, 1e300, null, true],
    b: { c: '\\ud83d 😀 "\\' },
    d: undefined,
  };
  assert.equal(toJson(body), JSON.stringify(body));
  assert.equal(toJson(undefined), undefined);
  assert.equal(toJson({ at: new Date(0) }), '{"at":"1970-01-01T00:00:00.000Z"}');
});

test('halves of surrogate pairs are replaced, in keys as well', () => {
  for (const [body, text] of [
    ['a\ud83d', '"a\ufffd"'],
    ['\ude00b', '"\ufffdb"'],
    ['\\\ud83d', '"\\\\\ufffd"'],
    [{ '\ud83d': ['😀'.slice(0, 1)] }, '{"\ufffd":["\ufffd"]}'],
  ] as const) {
    assert.equal(toJson(body), text);
  }
});

test('a number that JSON does not keep is refused where it is', () => {
  for (const [body, place] of [
    [{ metadata: { ids: [1, 2 ** 53] } }, '/metadata/ids/1: 9007199254740992 '],
    [{ 'a/b': { 'c~': -(2 ** 60) } }, '/a~1b/c~0: -1152921504606847000 '],
    [{ id: 1n }, '/id: 1 '],
    [{ metadata: { score: Number.NaN } }, '/metadata/score: NaN '],
    [[1, Number.POSITIVE_INFINITY], '/1: Infinity '],
    [{ a: { b: Number.NEGATIVE_INFINITY } }, '/a/b: -Infinity '],
    [{ dueDate: new Date('soon') }, '/dueDate: Invalid Date '],
    [Number.NaN, ': NaN '],
    [{ a: { toJSON: () => Number.NaN } }, '/a: NaN '],
  ] as const) {
    assert.throws(
      () => toJson(body),
      (error) => error instanceof RangeError && error.message.startsWith(place),
      place,
    );
  }
});

test('all that is sent goes this way', async () => {
  const { url, asked } = await serving(json(200, {}), json(200, {}), json(200, {}));
  const service = createMemoryService({ url });
  const id = 2 ** 53;
  await assert.rejects(service.add('documents', 'c', { id }), RangeError);
  await assert.rejects(service.update('m', { metadata: { id } }), RangeError);
  await assert.rejects(service.update('m', { metadata: { score: Number.NaN } }), RangeError);
  await assert.rejects(service.search('documents', { 'metadata.id': id }), RangeError);
  await assert.rejects(createAlmanacClient({ url }).enrich({ body: { response: { id } } as never }), RangeError);
  assert.equal(asked.length, 0);
  await service.get('a\ud83d');
  assert.equal(asked[0]?.url, '/v1/memories/a%EF%BF%BD');
});
