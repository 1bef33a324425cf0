/** The console as a person uses it: servers, the fleet, tokens, and a daemon that is empty or away. */

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';

import { findings, PATIENCE_MS } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { hasDatabase, others, startDatabase } from './database.mjs';
import { callTool, post } from './prepare.mjs';
import { daemon, fails, heading, SCRIPT, tooWide, visit } from './suite.mjs';

test('servers: up, their lists, a changed definition side by side and approved, and calls under way', async () => {
  const server = (says) => `mcp:
  anonymous_calls: true
  servers:
    tests:
      command: [${process.execPath}, ${join(import.meta.dirname, 'mcp-server.mjs')}]
      env: {SAYS: '${says}'}
      on_change: block
`;
  const tokens = { operator: 'admin', reader: 'read' };
  const own = await startDaemon({
    configuration: server('Greets you.'),
    tokens,
  });
  const headers = { authorization: `Bearer ${own.tokens.operator}` };
  const ask = async (path) => (await fetch(own.url + path, { headers })).json();
  const until = async (what, holds) => {
    const deadline = Date.now() + PATIENCE_MS;
    while (!(await holds())) assert.ok(Date.now() < deadline, what);
  };
  const refusals = /status: 40[13]|Failed to load resource/;
  const enter = async (page, token) => {
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Enter' }).click();
    await page.getByRole('heading', { level: 1, name: 'Servers' }).waitFor();
  };
  try {
    await until('the server is up', async () => (await ask('/v1/servers')).items[0]?.tools === 2);
    await own.configure(server(SCRIPT));
    await until('the change is seen', async () => (await ask('/v1/servers')).items[0].waiting === 1);
    void callTool(own.url, 'tests_slow', { ms: 60_000 }, headers);
    await until('the call is under way', async () => (await ask('/v1/servers')).calls[0]?.running_ms !== undefined);
    await visit(
      '#/servers',
      async (page) => {
        await enter(page, own.tokens.reader);
        const list = page.getByRole('table', { name: 'Servers' });
        await list.locator('.badge.good', { hasText: 'up' }).waitFor();
        await page.getByRole('table', { name: 'Calls under way' }).getByText('tests_slow').waitFor();
        await page.setViewportSize({ width: 360, height: 800 });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
        await page.setViewportSize({ width: 390, height: 844 });
        assert.deepEqual(await tooWide(page), []);
        const change = page.getByRole('region', { name: 'Change of greet' });
        await change.getByText('Greets you.').waitFor();
        await change.getByText(SCRIPT, { exact: false }).waitFor();
        assert.equal(await page.locator('main img, main script').count(), 0);
        assert.deepEqual(await findings(page), []);
        await change.getByRole('button', { name: 'Approve' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
        await page.getByText('This token has not the scope admin').waitFor();

        await page.getByRole('button', { name: 'Forget the token' }).click();
        await enter(page, own.tokens.operator);
        await change.getByRole('button', { name: 'Approve' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
        await change.getByRole('button', { name: 'Approve' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
        await change.waitFor({ state: 'detached' });
      },
      { at: own, isForgiven: (text) => refusals.test(text) },
    );
    assert.equal((await ask('/v1/servers')).items[0].waiting, 0);
  } finally {
    await own.stop();
  }
});

test('fleet: who is there, what is wrong with whom, and a word of it on the overview', async (context) => {
  if (!hasDatabase) return context.skip('PostgreSQL 15 is not installed');
  const database = await startDatabase();
  const own = await startDaemon({ database: database.url, configuration: 'store: {host: here}\n' });
  const fits = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  try {
    await visit(
      '',
      async (page) => {
        await page.getByText('All is well').waitFor();
        await page.getByRole('link', { name: 'Fleet', exact: true }).click();
        await heading(page, 'Fleet').waitFor();
        await page.getByText('Together').waitFor();
        await page.getByText('1 of 1').waitFor();
        assert.deepEqual(await findings(page), []);

        await others(database.ask);
        await database.ask(`UPDATE almanac.daemon_states SET trouble = '${SCRIPT}' WHERE put_aside > 0`);
        const row = (host) => page.getByRole('table', { name: 'Daemons' }).getByRole('row').filter({ hasText: host });
        await row('build-03').locator('.badge.bad', { hasText: 'silent' }).waitFor();
        await row('laptop-ada').getByText('stopped').waitFor();
        await row('runner-1').getByText('312').waitFor();
        await row('here').getByText('answers here').waitFor();
        const wrongs = page.getByRole('list', { name: 'What is wrong' });
        await wrongs.getByText(/on build-03: not heard of for 4 min/).waitFor();
        await wrongs.getByText(/on build-03: 1,284 records on its machine alone, for 21 min/).waitFor();
        await wrongs.getByText(/on runner-1: 2 records put aside/).waitFor();
        await wrongs.getByText(/on runner-1: it follows the others late, 312 behind for 14 s/).waitFor();
        await wrongs.getByText(SCRIPT, { exact: false }).waitFor();
        assert.equal(await page.locator('main img, main script').count(), 0);
        assert.deepEqual(await findings(page), []);
        await page.setViewportSize({ width: 360, height: 800 });
        assert.equal(await fits(page), 0);
        assert.deepEqual(await findings(page), []);

        await page.getByRole('link', { name: 'Overview', exact: true }).click();
        await wrongs.getByText(/on build-03: not heard of/).waitFor();
        assert.equal(await fits(page), 0);
        await wrongs.getByRole('link', { name: 'read its spool.refused' }).click();
        await heading(page, 'Fleet').waitFor();

        await database.end();
        await page.getByText(/^The other daemons cannot be listed/).waitFor();
        await page.getByText('1 of 1').waitFor();
        await row('build-03').waitFor({ state: 'detached' });
      },
      { at: own },
    );
  } finally {
    await own.stop();
    await database.stop();
  }
});

test('servers: one that wants a login is loud about it, and says what to do', async () => {
  const closed = createServer((_, response) => {
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
  });
  await new Promise((ready) => closed.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${closed.address().port}/mcp`;
  const own = await startDaemon({ configuration: `mcp:\n  servers:\n    closed: {url: '${url}'}\n` });
  try {
    await visit(
      '#/servers',
      async (page) => {
        const list = page.getByRole('table', { name: 'Servers' });
        await list.locator('.badge.bad', { hasText: 'needs-login' }).waitFor();
        await list.getByText('set `client_credentials`', { exact: false }).waitFor();
        assert.deepEqual(await findings(page), []);
      },
      { at: own },
    );
  } finally {
    await own.stop();
    closed.close();
  }
});

test('what happens comes by the browser s own stream, and not while the page is hidden', async () => {
  await visit('', async (page) => {
    const kinds = [];
    page.on('request', (request) => request.url().includes('/v1/events') && kinds.push(request.resourceType()));
    await page.reload();
    await page.getByText('live', { exact: true }).waitFor();
    assert.deepEqual(kinds, ['eventsource']);
    const listeners = async () => (await (await fetch(`${daemon.url}/v1/overview`)).json()).listeners;
    const before = await listeners();
    const hide = (isHidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', {
          value: hidden,
          configurable: true,
        });
        document.dispatchEvent(new Event('visibilitychange'));
      }, isHidden);
    await hide(true);
    const deadline = Date.now() + PATIENCE_MS;
    // A stream that is closed is found out when something is to be told on it.
    while ((await listeners()) >= before) {
      assert.ok(Date.now() < deadline, 'it still listens');
      await post(daemon.url, '/v1/executions', {
        tool_name: 'file_list',
        duration_ms: 40,
      });
    }
    await hide(false);
    await page.getByText('live', { exact: true }).waitFor();
    await post(daemon.url, '/v1/executions', {
      tool_name: 'file_list',
      duration_ms: 40,
    });
    assert.deepEqual(kinds, ['eventsource', 'eventsource']);
  });
});

test('tokens: asked for, refused, kept in memory only, and no more is shown than they allow', async () => {
  const own = await startDaemon({
    tokens: { reader: 'read', keeper: 'read,memory' },
  });
  const refusals = /status( of|:) (401|403|503)/;
  try {
    await post(
      own.url,
      '/v1/memories/documents',
      {
        content: 'a secret',
        metadata: { source: 'user', agentId: 'agent:agent:a' },
      },
      { authorization: `Bearer ${own.tokens.keeper}` },
    );
    await visit(
      '#/memory',
      async (page) => {
        const field = page.getByLabel('Token');
        assert.equal(await field.getAttribute('type'), 'password');
        assert.deepEqual(await findings(page), []);
        await field.fill('wrong');
        await page.getByRole('button', { name: 'Enter' }).click();
        await page.getByText('This token is not known here').waitFor();
        await field.fill(`${own.tokens.reader}\u2026`);
        await page.getByRole('button', { name: 'Enter' }).click();
        await page.getByText('This token has a character that none can have').waitFor();
        const leave = await fails(page, '**/v1/overview', 503);
        await field.fill(own.tokens.reader);
        await page.getByRole('button', { name: 'Enter' }).click();
        await page.getByText('Status 503 without a reason').waitFor();
        await leave();
        await field.fill(own.tokens.reader);
        await page.getByRole('button', { name: 'Enter' }).click();
        await page.getByText('This token has not the scope memory').waitFor();
        assert.equal(await page.getByText('a secret').count(), 0);
        await page.getByRole('link', { name: 'Overview', exact: true }).click();
        await page.getByText('All is well').waitFor();
        const kept = await page.evaluate(() => [
          localStorage.length,
          sessionStorage.length,
          document.cookie,
          location.href,
        ]);
        assert.deepEqual(kept.slice(0, 3), [0, 0, '']);
        assert.ok(!kept[3].includes(own.tokens.reader));
        await page.getByRole('button', { name: 'Forget the token' }).click();
        await field.fill(own.tokens.keeper);
        await page.getByRole('button', { name: 'Enter' }).click();
        await page.getByRole('link', { name: 'Memory', exact: true }).click();
        await page.getByText('a secret').waitFor();
      },
      { at: own, isForgiven: (text) => refusals.test(text) },
    );
  } finally {
    await own.stop();
  }
});

test('tokens: with one its stream ends, and who comes next and may not read is told that and no more', async () => {
  const own = await startDaemon({ tokens: { reader: 'read,record', recorder: 'record' } });
  const headers = { authorization: `Bearer ${own.tokens.reader}` };
  const record = () => post(own.url, '/v1/executions', { tool_name: 'grep', duration_ms: 40 }, headers);
  const listeners = async () => (await (await fetch(`${own.url}/v1/overview`, { headers })).json()).listeners;
  const enter = async (page, token) => {
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Enter' }).click();
    await heading(page, 'Events').waitFor();
  };
  try {
    await visit(
      '#/events',
      async (page) => {
        const shown = page.getByRole('table', { name: 'Events' }).getByRole('link', { name: 'grep' });
        await enter(page, own.tokens.reader);
        await page.getByText('live', { exact: true }).waitFor();
        await record();
        await shown.waitFor();
        await page.getByRole('button', { name: 'Forget the token' }).click();
        const deadline = Date.now() + PATIENCE_MS;
        // A stream that is closed is found out when something is to be told on it.
        while ((await listeners()) > 0) {
          assert.ok(Date.now() < deadline, 'it still listens');
          await record();
        }
        await enter(page, own.tokens.recorder);
        await page.getByText('This token may not read.').waitFor();
        await page.getByRole('alert').getByText('This token has not the scope read').waitFor();
        assert.equal(await shown.count(), 0);
        assert.equal(await page.getByText('Nothing of these types').count(), 0);
        assert.deepEqual(await findings(page), []);
      },
      { at: own, isForgiven: (text) => /status( of|:) (401|403)/.test(text) },
    );
  } finally {
    await own.stop();
  }
});

test('where all is on this machine, the fleet is no page', async () => {
  await visit('', async (page) => {
    await page.getByText('All is well').waitFor();
    assert.equal(await page.getByRole('link', { name: 'Fleet', exact: true }).count(), 0);
  });
});

test('an empty state says on each page what would fill it, and how', async () => {
  const own = await startDaemon({ documents: false });
  try {
    const pages = {
      overview: 'Nothing was recorded',
      tools: 'There are no tools',
      timing: 'No call was recorded',
      sessions: 'No session called',
      map: 'There are no tools',
      servers: 'No MCP server is configured',
      fleet: 'This daemon is alone',
      memory: 'Nothing is remembered',
      libraries: 'No rule library',
      usage: 'No turn was reported',
    };
    for (const [name, says] of Object.entries(pages)) {
      await visit(
        `#/${name}`,
        async (page) => {
          await page.getByText(says).waitFor();
          await page.locator('main .empty pre').first().waitFor();
          assert.deepEqual(await findings(page), [], name);
        },
        { at: own },
      );
    }
  } finally {
    await own.stop();
  }
});

test('a daemon that is started again under an open page: it says so, and comes back', async () => {
  const own = await startDaemon();
  try {
    await visit(
      '',
      async (page) => {
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByText('All is well').waitFor();
        await own.kill();
        await page.getByText('The daemon is away').waitFor();
        await page.getByText('All is well').waitFor();
        await own.start();
        await page.getByText('live', { exact: true }).waitFor();
        await post(own.url, '/v1/executions', {
          tool_name: 'grep',
          duration_ms: 40,
        });
        await page
          .getByText('1 calls in the last hour')
          .or(page.getByRole('img', { name: /^1 calls/ }))
          .first()
          .waitFor();
      },
      {
        at: own,
        isForgiven: (text) => /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|failed:/.test(text),
      },
    );
  } finally {
    await own.stop();
  }
});

test('a daemon that hangs under an open page: it says so, and goes on when the daemon does', async () => {
  const own = await startDaemon();
  try {
    await visit(
      '',
      async (page) => {
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByText('All is well').waitFor();
        process.kill(own.pid(), 'SIGSTOP');
        await page.getByText('The daemon does not answer').waitFor();
        await page.getByText('All is well').waitFor();
        await page.getByRole('link', { name: 'Usage', exact: true }).click();
        await page.getByText('The daemon was asked and does not answer.').waitFor();
        assert.deepEqual(await findings(page), []);
        process.kill(own.pid(), 'SIGCONT');
        await page.getByText('No turn was reported').waitFor();
        await page.getByText('live', { exact: true }).waitFor();
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});
