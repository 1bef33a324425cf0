/** The console as a person uses it: what is asked, said, remembered and called. */

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { findings } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { post } from './prepare.mjs';
import { daemon, heading, SCRIPT, visit } from './suite.mjs';

test('try: a message, its cut, and a miss that is learnt; a call, its time and what comes next', async () => {
  await visit('#/try', async (page) => {
    await page.getByLabel('Message').fill('search the web for news about chips');
    await page.getByLabel('Tools at most').fill('3');
    await page.getByRole('button', { name: 'Qualify' }).click();
    const offered = page.getByRole('table', { name: 'Offered tools' });
    await offered.getByRole('link', { name: 'web_search', exact: true }).waitFor();
    for (const part of ['words', 'meaning'])
      await offered
        .getByText(new RegExp(`${part} \\d`))
        .first()
        .waitFor();
    await page.getByText('the cut').waitFor();
    assert.ok((await page.getByRole('list', { name: 'Nearly in' }).getByRole('listitem').count()) > 0);
    assert.deepEqual(await findings(page), []);
    await page.getByLabel('Its name').fill('http_request');
    await page.getByRole('button', { name: 'Report the miss' }).click();
    const dialog = page.getByRole('dialog', {
      name: 'Was http_request missing?',
    });
    assert.deepEqual(await findings(page), []);
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Report the miss' }).click();
    await dialog.getByRole('button', { name: 'Report the miss' }).click();
    await page.getByRole('status').getByText('learnt').first().waitFor();

    await page.getByRole('link', { name: 'A call' }).click();
    await page.getByLabel('Tool', { exact: true }).fill('web_search');
    await page.getByLabel('Characters of input').fill('200');
    await page.getByRole('button', { name: 'Estimate' }).click();
    await page.getByText('Half within').waitFor();
    await page.getByRole('heading', { name: 'What comes next' }).waitFor();
    await page.getByRole('heading', { name: 'Workflows that fit' }).waitFor();
    assert.deepEqual(await findings(page), []);
  });
});

test('try: what was asked stands in the address, and a link asks it, but moves no session on', async () => {
  const asked = [];
  const watch = (page) =>
    page.on(
      'request',
      (request) => /v1\/(qualify|metadata)$/.test(request.url()) && asked.push(request.postDataJSON()),
    );
  let place;
  const keep = (page) => (place = new URL(page.url()).hash);
  await visit('#/try', async (page) => {
    await page.getByLabel('Message').fill('news about chips & cheese');
    await page.getByLabel('Tools at most').fill('3');
    await page.getByRole('button', { name: 'Qualify' }).click();
    await page.getByRole('table', { name: 'Offered tools' }).waitFor();
    await page.waitForURL(/message=news/);
    keep(page);
  });
  await visit(place, async (page) => {
    await page.getByRole('table', { name: 'Offered tools' }).waitFor();
    assert.equal(await page.getByLabel('Message').inputValue(), 'news about chips & cheese');
    watch(page);
    await page.getByLabel('Session, if any').fill('tried');
    await page.getByRole('button', { name: 'Qualify' }).click();
    await page.waitForURL(/session=tried/);
    await page.waitForLoadState('networkidle');
    assert.deepEqual(
      asked.splice(0).map(({ sessionId }) => sessionId),
      ['tried'],
      'it is asked once',
    );
    await page.reload();
    await page.getByLabel('Message').waitFor();
    await page.waitForLoadState('networkidle');
    assert.equal(await page.getByLabel('Session, if any').inputValue(), 'tried');
    assert.deepEqual(asked.splice(0), []);

    await page.getByRole('link', { name: 'A call' }).click();
    await page.getByLabel('Tool', { exact: true }).fill('web_search');
    await page.getByLabel('Tools called before').fill('read_file, grep');
    await page.getByLabel('Characters of input').fill('200');
    await page.getByRole('button', { name: 'Estimate' }).click();
    await page.getByText('Half within').waitFor();
    await page.waitForURL(/content_length=200/);
    keep(page);
    await page.getByRole('link', { name: 'A message' }).click();
    assert.equal(await page.getByLabel('Message').inputValue(), '');
  });
  assert.equal(asked.splice(0).length, 1);
  await visit(place, async (page) => {
    watch(page);
    await page.reload();
    await page.getByText('Half within').waitFor();
    assert.equal(await page.getByLabel('Characters of input').inputValue(), '200');
    assert.deepEqual(asked.at(-1).tool_history, ['read_file', 'grep']);
    assert.deepEqual(asked.at(-1).complexity, { content_length: 200 });
  });
});

test('sessions: from the list to what one did', async () => {
  await visit('#/sessions', async (page) => {
    await page.getByRole('table', { name: 'Sessions' }).getByRole('link', { name: 'session-004' }).click();
    await heading(page, 'session-004').waitFor();
    await page.getByRole('heading', { name: 'What it is about' }).waitFor();
    await page
      .getByRole('img', { name: /calls? of/ })
      .first()
      .waitFor();
    await page.getByRole('table', { name: 'Calls' }).getByRole('columnheader', { name: 'Was forecast' }).waitFor();
    await page.getByText('when nine in ten should end').waitFor();
    assert.ok((await page.locator('.lanes .said').count()) > 0);
    await page.getByText('Tokens in').waitFor();
    assert.deepEqual(await findings(page), []);
  });
});

test('sessions: of many, and of many calls, it is said what is shown, and the others can be reached', async () => {
  const own = await startDaemon();
  const record = async (number, session) => {
    const made = (_, index) => ({ tool_name: 'grep', duration_ms: 40, session_id: session(index) });
    const calls = Array.from({ length: number }, made);
    for (let at = 0; at < number; at += 500) await post(own.url, '/v1/executions', calls.slice(at, at + 500));
  };
  try {
    await record(150, (index) => `other-${index}`);
    await record(1200, () => 'long');
    await visit(
      '#/sessions',
      async (page) => {
        await page.getByRole('heading', { level: 2, name: 'The latest 100 sessions' }).waitFor();
        await page.getByRole('link', { name: 'Show more' }).click();
        await page.getByRole('heading', { level: 2, name: '151 sessions', exact: true }).waitFor();
        assert.equal(await page.getByRole('link', { name: 'Show more' }).count(), 0);
        await page.getByRole('link', { name: 'long', exact: true }).click();
        await page.getByText('the latest 1,000 calls').waitFor();
        await page.getByText('from the first of these calls').waitFor();
        await page.getByText('The last 200 of these 1,000.').waitFor();
        assert.equal(await page.getByText('in all', { exact: false }).count(), 0);
        assert.deepEqual(await findings(page), []);
        await page.getByRole('link', { name: 'Show more' }).click();
        await page.getByText('1,200 calls', { exact: true }).waitFor();
        await page.getByText('from the first call').waitFor();
        await page.getByRole('button', { name: 'Show the others' }).click();
        assert.equal(await page.getByRole('table', { name: 'Calls' }).locator('tbody tr').count(), 1200);
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('sessions: the intents of its last turns, and the suggestions that were taken', async () => {
  const suggest = { tool_name: 'web_search', result_context: { session_id: 'turns' } };
  const call = (tool_name) => ({ tool_name, duration_ms: 5, session_id: 'turns' });
  await post(daemon.url, '/v1/qualify', { message: 'find news about chips on the web', sessionId: 'turns' });
  const { suggestions } = await post(daemon.url, '/v1/metadata', suggest);
  const [first, second] = suggestions.next_tools.map(({ tool }) => tool);
  await post(daemon.url, '/v1/executions', call(first));
  await visit('#/sessions/turns', async (page) => {
    const rows = page.getByRole('table', { name: 'Turns' }).locator('tbody tr');
    const suggested = (row, tool) => row.getByRole('listitem').filter({ hasText: tool });
    await suggested(rows.first(), first).getByText('taken').waitFor();
    await suggested(rows.first(), second).first().waitFor();
    assert.equal(await suggested(rows.first(), second).getByText('taken').count(), 0);
    assert.equal(await rows.count(), 1);
    await rows.first().getByText('web', { exact: true }).first().waitFor();
    await post(daemon.url, '/v1/qualify', { message: 'read the file notes.txt', sessionId: 'turns' });
    await page.getByText('nothing was suggested').waitFor();
    assert.equal(await rows.count(), 2);
    assert.deepEqual(await findings(page), []);
    await suggested(rows.nth(1), first).getByRole('link').click();
    await heading(page, first).waitFor();
  });
});

test('memory: found with explained scores, its history, its relations, its thread with gaps, and restored', async () => {
  const agentId = 'agent:agent:a';
  const kept = await post(daemon.url, '/v1/memories/documents', {
    content: `The green kettle ${SCRIPT}`,
    metadata: { source: 'user', agentId },
  });
  await post(daemon.url, '/v1/memories/cognitive-processes', {
    content: 'a thought of it',
    metadata: { processType: 'thought', agentId, relatedTo: kept.id },
  });
  const change = (method, body) =>
    fetch(`${daemon.url}/v1/memories/${kept.id}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  await change('PATCH', { content: `The blue kettle ${SCRIPT}` });
  await visit('#/memory', async (page) => {
    await page.getByLabel('Text').fill('blue kettle');
    await page.getByRole('button', { name: 'Search' }).click();
    const found = page.getByRole('table', { name: 'Memories' });
    await found
      .getByText(/^words \d/)
      .first()
      .waitFor();
    await found.getByRole('link', { name: /blue kettle/ }).click();
    await page.getByText(SCRIPT).first().waitFor();
    await page.getByText('− The green kettle').waitFor();
    await page.getByText('+ The blue kettle').waitFor();
    await page.getByText('step 1').first().waitFor();
    assert.equal(await page.locator('main img, main script').count(), 0);
    assert.deepEqual(await findings(page), []);

    await change('DELETE');
    await page.reload();
    await page.getByText('Nothing finds it').waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByText('Nothing finds it').waitFor({ state: 'detached' });

    await page.getByRole('link', { name: 'All memories' }).click();
    await page.getByLabel('Kind').selectOption('messages');
    await page.getByLabel('Field').fill('role');
    await page.getByLabel('Its value').fill('assistant');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByText('30 memories').waitFor();
    await found.getByRole('link').first().click();
    await page.getByRole('link', { name: 'Its thread' }).click();
    await heading(page, 'A thread').waitFor();
    await page.getByText(/messages are missing here/).waitFor();
    assert.deepEqual(await findings(page), []);
  });
});

/** Keeps a message. */
const keepMessage = (content, chat, thread, more) =>
  post(daemon.url, '/v1/memories/messages', {
    content,
    metadata: { role: 'user', userId: 'user:user:bo', agentId: 'agent:agent:a', chatId: chat, thread, ...more },
  });

test('memory: a message leads to the thread of its own chat, though others have one of that name', async () => {
  await keepMessage('said elsewhere', 'chat:chat:one', { id: 'main', position: 0 });
  const kept = await keepMessage('said here', 'chat:chat:the%3Aother%25', { id: 'main', position: 0 });
  await visit(`#/memory/${kept.id}`, async (page) => {
    await page.getByRole('link', { name: 'Its thread' }).click();
    await heading(page, 'A thread').waitFor();
    await page.getByText('said here').waitFor();
    assert.equal(await page.getByText('said elsewhere').count(), 0);
  });
});

test('memory: long threads and histories are said to be cut, and go on', async () => {
  const message = (_, position) => keepMessage(`line ${position}`, 'chat:chat:long', { id: 'long', position });
  const [first] = await Promise.all(Array.from({ length: 230 }, message));
  for (let version = 2; version <= 121; version += 1) {
    await fetch(`${daemon.url}/v1/memories/${first.id}`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: `line 0, ${version}` }),
    });
  }
  await visit('#/memory/long?show=thread', async (page) => {
    await page.getByRole('heading', { level: 2, name: '230 messages' }).waitFor();
    await page.getByText('The first 200 of 230.').waitFor();
    assert.equal(await page.locator('.thread > li').count(), 200);
    assert.deepEqual(await findings(page), []);
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByText('line 229', { exact: true }).waitFor();
    assert.equal(await page.locator('.thread > li').count(), 230);
    assert.equal(await page.getByRole('button', { name: 'More' }).count(), 0);
  });
  await visit(`#/memory/${first.id}`, async (page) => {
    await page.getByText('The latest 100 of 120.').waitFor();
    await page.getByText('Version 21 to 22', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByText('Version 1 to 2', { exact: true }).waitFor();
    assert.equal(await page.locator('.history > li').count(), 120);
    assert.equal(await page.getByRole('button', { name: 'More' }).count(), 0);
  });
});

test('memory: fields are asked for by what the form says, texts as texts, and a fault is told once', async () => {
  await post(daemon.url, '/v1/memories/tasks', {
    content: 'the seventh',
    metadata: { title: '7', status: 'pending', priority: 'low', agentId: 'agent:agent:a', tags: ['7'], progress: 0.5 },
  });
  await keepMessage(' \n', 'chat:chat:blank', { id: 'blank', position: 0 }, { importance: 'high', shelf: 7 });
  const isForgiven = (text) => /status( of|:) 422/.test(text);
  await visit(
    '#/memory',
    async (page) => {
      const [field, value] = [page.getByLabel('Field'), page.getByLabel('Its value')];
      const search = async (kind, name, wanted) => {
        await page.getByLabel('Kind').selectOption(kind);
        await field.fill(name);
        await value.fill(wanted);
        const answered = page.waitForResponse(/\/search$/);
        await page.getByRole('button', { name: 'Search' }).click();
        return (await answered).json();
      };
      const [name, wanted] = [await field.getAttribute('placeholder'), await value.getAttribute('placeholder')];
      for (const kind of ['tasks', 'documents', 'cognitive-processes', 'messages', '']) {
        const { memories } = await search(kind, name, wanted);
        assert.ok(Array.isArray(memories), `${name} can be asked for of ${kind || 'all kinds'}`);
      }
      await page.getByRole('table', { name: 'Memories' }).getByRole('link', { name: '(no text)' }).click();
      await heading(page, 'A memory').waitFor();
      await page.goBack();

      for (const [kind, name, wanted] of [
        ['tasks', 'title', '7'],
        ['', 'metadata.title', '7'],
        ['', 'tags', '7'],
        ['', 'tags', '["7"]'],
        ['tasks', 'progress', '0.5'],
        ['', 'metadata.shelf', '7'],
      ]) {
        const { total } = await search(kind, name, wanted);
        assert.equal(total, 1, `${name} of ${wanted}`);
      }

      await search('', 'role', 'user');
      const said = await page.getByRole('alert').textContent();
      assert.equal(said.split('/criteria/role').length, 2, said);
      assert.match(said, / · \/criteria\/role: unknown key/);
    },
    { isForgiven },
  );
});

test('libraries: state, calls, and how it came to that', async () => {
  const library = process.env['CONSOLE_LIBRARY'];
  if (library === undefined) return;
  const own = await startDaemon({ library });
  try {
    await visit(
      '#/libraries',
      async (page) => {
        await page.locator('.badge.good', { hasText: 'ready' }).waitFor();
        await page.getByText('starting → ready').waitFor();
        await post(own.url, '/v1/metadata', {
          tool_name: 'reasoning_divergent',
        });
        await page.getByRole('table', { name: 'Last proposals' }).waitFor();
        assert.deepEqual(await findings(page), []);
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('usage: by day, over the threshold marked, and by session', async () => {
  await visit('#/usage', async (page) => {
    const days = page.getByRole('table', { name: 'Usage by day' });
    await days.locator('.badge.warn').waitFor();
    const sessions = page.getByRole('table', { name: 'Usage by session' });
    await sessions.getByRole('link', { name: 'session-001' }).click();
    await heading(page, 'session-001').waitFor();
  });
});

test('events: as they happen, by type, linked to their place', async () => {
  await visit('#/events', async (page) => {
    await page.getByText('live', { exact: true }).waitFor();
    await post(daemon.url, '/v1/executions', {
      tool_name: 'grep',
      duration_ms: 40,
    });
    const table = page.getByRole('table', { name: 'Events' });
    await table.getByRole('link', { name: 'grep' }).waitFor();
    await page
      .getByRole('navigation', { name: 'Types of events' })
      .getByRole('link', { name: /^catalog reloaded/ })
      .click();
    await table.getByRole('link', { name: 'grep' }).waitFor({ state: 'detached' });
    await table.getByText('catalog reloaded').first().waitFor();
    await table.getByRole('link', { name: /tools/ }).first().click();
    await heading(page, 'Tools').waitFor();
  });
});

test('a script in a document is text', async () => {
  const document = [
    'name: scripted_tool',
    `title: "${SCRIPT}"`,
    `description: "${SCRIPT} and so on, which is long enough for a description of a tool."`,
    'category: web',
    'capabilities: [scripting]',
    'keywords: [scripting]',
    `use_cases: [{title: "${SCRIPT}", when_to_use: "never"}]`,
  ];
  await writeFile(join(daemon.tools, 'scripted_tool.yaml'), `${document.join('\n')}\n`);
  await visit('#/tools?keyword=scripting', async (page) => {
    const link = page.getByRole('link', { name: 'scripted_tool' });
    await link.waitFor();
    await link.click();
    await heading(page, 'scripted_tool').waitFor();
    await page.getByText(SCRIPT).first().waitFor();
    assert.equal(await page.locator('main img, main script').count(), 0);
  });
  await rm(join(daemon.tools, 'scripted_tool.yaml'));
});
