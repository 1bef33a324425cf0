/** The console as a person uses it: each page by clicking and typing, in a real browser, against a real daemon. */

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { findings, openPage, PATIENCE_MS, startBrowser } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { hasDatabase, others, startDatabase } from './database.mjs';
import { callTool, post, prepare } from './prepare.mjs';

/** The pages, and what each is headed by. */
const PAGES = ['Overview', 'Tools', 'Map', 'Timing', 'Try', 'Sessions', 'Memory', 'Libraries', 'Usage', 'Events'];

const SCRIPT = '<img src=x onerror=alert(1)><script>alert(2)</script>';

let browser;
let daemon;

before(async () => {
  browser = await startBrowser();
  daemon = await startDaemon();
  await prepare(daemon.url);
});

after(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Opens the console, does something in it, and finds nothing wrong with it afterwards. */
async function visit(place, act, { at = daemon, isForgiven, ...options } = {}) {
  const opened = await openPage(browser, `${at.url}/console/${place}`, {
    isForgiven,
    ...options,
  });
  try {
    await opened.page.getByRole('heading', { level: 1 }).waitFor();
    await act(opened.page);
    assert.deepEqual(opened.faults, []);
  } finally {
    await opened.close();
  }
}

/** Answers questions like that with a status; what is returned ends it. */
async function fails(page, address, status) {
  await page.route(address, (route) => route.fulfill({ status }));
  return () => page.unroute(address);
}

/** Waits until nothing is asked any more. */
async function settled(page) {
  await page.waitForFunction(() => document.querySelector('.waiting') === null);
}

const heading = (page, name) => page.getByRole('heading', { level: 1, name });

for (const colorScheme of ['light', 'dark']) {
  test(`every page opens, is accessible and fits a narrow screen: ${colorScheme}`, async () => {
    const viewport = colorScheme === 'dark' ? { width: 360, height: 800 } : { width: 1280, height: 900 };
    await visit(
      '',
      async (page) => {
        for (const name of PAGES) {
          await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();
          await heading(page, name).waitFor();
          await settled(page);
          assert.deepEqual(await findings(page), [], name);
          const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.equal(beyond, 0, `${name} is ${beyond} px too wide`);
        }
      },
      { colorScheme, viewport },
    );
  });
}

/** Tables that are wider than their place. */
const tooWide = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.scroll')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map((place) => place.getAttribute('aria-label')),
  );

test('tables fit a phone, with days and tools of many letters', async () => {
  const call = (tool_name, outcome) => ({ tool_name, mode_name: 'news', outcome, duration_ms: 40_000 });
  const calls = [
    call('web_search', 'success'),
    call('scrape_webpage', 'timeout'),
    call('reasoning_divergent', 'error'),
  ];
  const [timestamp, session_id] = [Date.now() - 3 * 86_400_000, 'another-day'];
  await post(
    daemon.url,
    '/v1/executions',
    calls.map((call) => ({ ...call, timestamp, session_id })),
  );
  const viewport = { width: 390, height: 844 };
  await visit(
    '',
    async (page) => {
      for (const [place, table] of [
        ['#/sessions/another-day', 'Calls'],
        ['#/sessions/session-004', 'Calls'],
        ['#/usage', 'Usage by day'],
        ['#/timing/web_search', 'Latest calls'],
      ]) {
        await page.evaluate((place) => (location.hash = place), place);
        await page.getByRole('table', { name: table }).waitFor();
        assert.deepEqual(await tooWide(page), [], place);
        assert.deepEqual(await findings(page), [], place);
      }
    },
    { viewport },
  );
});

test('the page that a link names is shown, and one that is not there is said so', async () => {
  await visit('#/tools/web_search', (page) => heading(page, 'web_search').waitFor());
  await visit('#/nothing', (page) => heading(page, 'Nothing is here').waitFor());
});

test('what is not there is said not to be', async () => {
  const isForgiven = (text) => /status( of|:) 404/.test(text);
  await visit(
    '#/sessions/nosuch',
    async (page) => {
      await page.getByText('There is no session nosuch: no message, turn or call of it is known.').waitFor();
      assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0);
      assert.deepEqual(await findings(page), []);
    },
    { isForgiven },
  );
  await visit('#/map?tool=nosuch', async (page) => {
    await page.getByText('There is no tool nosuch.').waitFor();
    assert.deepEqual(await findings(page), []);
    await page.getByLabel('Find a tool').fill('web_sear');
    await page.getByText('There is no tool').waitFor({ state: 'detached' });
  });
});

test('overview: a forecast of few calls is told as one, and trouble of the store is linked to nowhere', async () => {
  const own = await startDaemon();
  await post(own.url, '/v1/executions', { tool_name: 'grep', duration_ms: 40 });
  const change = async (route) => {
    const overview = await (await route.fetch()).json();
    await route.fulfill({ json: { ...overview, store: { usable: false, trouble: 'the disk is full', queued: 0 } } });
  };
  try {
    await visit(
      '',
      async (page) => {
        await page.getByText('inside the interval, of 1 call only').waitFor();
        await page.route('**/v1/overview', change);
        await page.reload();
        const wrong = page.getByRole('listitem').filter({ hasText: 'Nothing can be stored: the disk is full' });
        await wrong.waitFor();
        assert.equal(await wrong.getByRole('link').count(), 0);
        await page.unrouteAll({ behavior: 'ignoreErrors' });
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('overview: a document that breaks is said at once, with its line, and again when it is mended', async () => {
  await visit('', async (page) => {
    await page.getByText('All is well').waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await writeFile(join(daemon.tools, 'broken.yaml'), `name: broken\ntitel: "${SCRIPT.replaceAll('"', '')}"\n`);
    const started = Date.now();
    await page.getByText(/in documents/).waitFor();
    // It is said within a second; machines that test are slower, and all the same do not wait for the poll.
    assert.ok(Date.now() - started < 5000, `${Date.now() - started} ms`);
    await page.getByText('broken.yaml', { exact: false }).first().waitFor();
    await page.getByRole('link', { name: 'mend the lines that are named' }).click();
    await page.getByText('titel', { exact: false }).first().waitFor();
    assert.equal(await page.locator('main img, main script').count(), 0);
    await rm(join(daemon.tools, 'broken.yaml'));
    await page.getByText('0 findings').waitFor();
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await page.getByText('All is well').waitFor();
  });
});

test('overview: what the daemon calls a trouble is a line, and so is an MCP server that is down', async () => {
  const dies = `mcp:\n  servers:\n    dies: {command: [${process.execPath}, -e, 'process.exit(3)']}\n`;
  const own = await startDaemon({ configuration: dies });
  try {
    await visit(
      '',
      async (page) => {
        const wrongs = page.getByRole('list', { name: 'What is wrong' });
        await wrongs.getByText(/^MCP server dies is down: /).waitFor();
        await page.getByText('live', { exact: true }).waitFor();
        await writeFile(join(own.root, 'almanac.yaml'), `${dies}nosuch: 1\n`);
        process.kill(own.pid(), 'SIGHUP');
        const faulty = wrongs.getByText(
          /^The configuration is the one of before, since the new one is faulty: .*nosuch/,
        );
        await faulty.waitFor();
        assert.equal(await page.getByText('All is well').count(), 0);
        assert.deepEqual(await findings(page), []);
        await own.configure('');
        await faulty.waitFor({ state: 'detached' });
        await page.getByText('All is well').waitFor();
      },
      { at: own },
    );
    await own.configure(dies);
    await visit(
      '',
      async (page) => {
        await page.getByRole('link', { name: 'see how it is' }).click();
        await heading(page, 'Servers').waitFor();
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('diagnostics: in pages, forth and back to the first', async () => {
  const own = await startDaemon({ documents: false });
  try {
    const broken = Array.from({ length: 120 }, (_, index) => `t${String(index).padStart(3, '0')}.yaml`);
    await Promise.all(broken.map((name) => writeFile(join(own.tools, name), '[')));
    await visit(
      '#/tools?tab=diagnostics',
      async (page) => {
        await page.getByText('120 findings').waitFor();
        await page.getByText('t000.yaml', { exact: false }).first().waitFor();
        assert.equal(await page.locator('.diagnostics li').count(), 100);
        await page.getByRole('link', { name: 'Next page' }).click();
        await page.getByText('t119.yaml', { exact: false }).first().waitFor();
        assert.equal(await page.locator('.diagnostics li').count(), 20);
        assert.equal(await page.getByRole('link', { name: 'Next page' }).count(), 0);
        assert.deepEqual(await findings(page), []);
        await page.getByRole('link', { name: 'From the beginning' }).click();
        await page.getByText('t000.yaml', { exact: false }).first().waitFor();
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('tools: found as agents find them, narrowed by facets, and read', async () => {
  await visit('#/tools', async (page) => {
    await page.getByLabel('Search as agents do').fill('find news on the web');
    const table = page.getByRole('table', { name: 'Tools' });
    await table.getByRole('columnheader', { name: 'Score' }).waitFor();
    await table.getByRole('link', { name: 'web_search', exact: true }).waitFor();
    await page.getByLabel('Category').selectOption('web');
    await page.waitForURL(/category=web/);
    await settled(page);
    const categories = await table.locator('tbody tr td:nth-child(3)').allTextContents();
    assert.deepEqual([...new Set(categories)], ['web']);
    await table.getByRole('link', { name: 'web_search', exact: true }).click();
    await heading(page, 'web_search').waitFor();
    for (const part of ['What it is', 'Goes with', 'How long it takes', 'What follows it']) {
      await page.getByRole('heading', { level: 2, name: part }).waitFor();
    }
    await page.getByRole('table', { name: 'Relations' }).waitFor();
    await page.getByRole('table', { name: 'Durations by mode' }).getByText('news', { exact: true }).waitFor();
    await page
      .getByRole('table', { name: 'Choices' })
      .getByText(/news about chips|first hit|two vendors|into a file|weather in Rome/)
      .first()
      .waitFor();
    await page.goBack();
    await page.waitForURL(/category=web/);
    assert.equal(await page.getByLabel('Search as agents do').inputValue(), 'find news on the web');
  });
});

test('tools: of one that is not there nothing is said but that', async () => {
  await post(daemon.url, '/v1/executions', { tool_name: 'undocumented', duration_ms: 40 });
  const isForgiven = (text) => /status( of|:) 404/.test(text);
  const others = (page) => page.getByRole('main').getByRole('link');
  await visit(
    '#/tools/nosuch',
    async (page) => {
      await page.getByText('There is no tool `nosuch` in the catalog').waitFor();
      await page.waitForLoadState('networkidle');
      assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0);
      assert.equal(await page.getByRole('alert').count(), 1);
      assert.equal(await others(page).count(), 0);
      assert.deepEqual(await findings(page), []);
    },
    { isForgiven },
  );
  await visit(
    '#/tools/undocumented',
    async (page) => {
      await page.getByText('There is no tool `undocumented` in the catalog').waitFor();
      await page.getByRole('link', { name: 'Its calls' }).waitFor();
      assert.equal(await others(page).count(), 1);
    },
    { isForgiven },
  );
});

test('tools: of thousands all are counted, and all can be reached', async () => {
  const own = await startDaemon({ documents: false });
  const document = (name, category) => [
    `name: ${name}`,
    `title: "Tool ${name}"`,
    'description: "Does what no other tool does, which is long enough for a description of a tool."',
    `category: ${category}`,
    `capabilities: [${name}_doing]`,
    `keywords: [${name}_doing]`,
    'use_cases: [{title: "Never", when_to_use: "never"}]',
  ];
  const total = async () => (await (await fetch(`${own.url}/v1/tools?limit=1`)).json()).total;
  try {
    const names = Array.from({ length: 1200 }, (_, index) => `t${String(index).padStart(4, '0')}`);
    const write = (name, index) =>
      writeFile(join(own.tools, `${name}.yaml`), document(name, index < 1100 ? 'early' : 'late').join('\n'));
    await Promise.all(names.map(write));
    const deadline = Date.now() + PATIENCE_MS;
    while ((await total()) < 1200) assert.ok(Date.now() < deadline, 'all are served');
    await visit(
      '#/tools',
      async (page) => {
        await page.getByRole('heading', { level: 2, name: '1,200 tools' }).waitFor();
        const categories = page.getByLabel('Category').getByRole('option');
        await categories.filter({ hasText: 'early (1100)' }).waitFor({ state: 'attached' });
        await categories.filter({ hasText: 'late (100)' }).waitFor({ state: 'attached' });
        for (const shown of ['The first 100 of 1,200.', 'The first 500 of 1,200.']) {
          await page.getByText(shown).waitFor();
          await page.getByRole('link', { name: 'Show more' }).click();
        }
        await page.getByRole('link', { name: 't1199', exact: true }).waitFor();
        assert.equal(await page.getByRole('link', { name: 'Show more' }).count(), 0);
        assert.equal(await page.locator('tbody tr').count(), 1200);
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('timing: the worst first, then the calls of one over the band', async () => {
  await visit('#/timing', async (page) => {
    await page
      .getByRole('table', { name: 'Forecasts by tool and mode' })
      .getByRole('link', { name: 'read_file' })
      .first()
      .click();
    await heading(page, 'read_file').waitFor();
    await page
      .getByRole('img', { name: /calls by time and duration/ })
      .locator('canvas')
      .waitFor();
    await page.getByText('nine in ten should be inside').waitFor();
    await page.getByRole('img', { name: /^Durations from/ }).waitFor();
    const latest = page.getByRole('table', { name: 'Latest calls' });
    assert.match((await latest.locator('tbody td:nth-child(3)').first().textContent()) ?? '', /^\d.* m?s/);
    assert.deepEqual(await findings(page), []);
  });
});

test('timing: of a mode whose calls are not among the latest it says so, and failed ones are asked for', async () => {
  const call = (mode_name, outcome) => ({ tool_name: 'many_modes', mode_name, outcome, duration_ms: 40 });
  const first = [call('seldom', 'success'), call('often', 'error')];
  await post(daemon.url, '/v1/executions', [...first, ...Array(200).fill(call('often', 'success'))]);
  await visit('#/timing/many_modes?mode=seldom', async (page) => {
    await page.getByText("None of these is among the tool's latest 200 calls.").waitFor();
    assert.equal(await page.getByRole('table', { name: 'Latest calls' }).count(), 0);
    assert.deepEqual(await findings(page), []);
    await page.getByLabel('Mode').selectOption('often#error');
    const latest = page.getByRole('table', { name: 'Latest calls' });
    await latest.getByText('error').waitFor();
    assert.equal(await latest.locator('tbody tr').count(), 1);
  });
});

test('timing: where all calls are of one moment, the axis is of minutes around it', async () => {
  await post(daemon.url, '/v1/executions', { tool_name: 'called_once', duration_ms: 40 });
  await visit('', async (page) => {
    await page.evaluate(() => {
      globalThis.written = [];
      const whole = CanvasRenderingContext2D.prototype.fillText;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        globalThis.written.push(text);
        return whole.call(this, text, ...rest);
      };
      location.hash = '#/timing/called_once';
    });
    await page
      .getByRole('img', { name: /^1 calls by time/ })
      .locator('canvas')
      .waitFor();
    await page.waitForFunction(() => globalThis.written.some((text) => /ms$/.test(text)));
    const times = (await page.evaluate(() => globalThis.written)).filter((text) => /\d:\d\d/.test(text));
    assert.ok(times.length >= 2, 'the axis has times of the day');
  });
});

/** What an element looks like now. */
const looks = async (element) => (await element.screenshot()).toString('base64');

test('map: tools and what is between them, panned, zoomed, filtered, found, and the same as a table', async () => {
  await visit('#/map', async (page) => {
    const map = page.getByRole('application', { name: /^Map of \d+ tools/ });
    await page.locator('.map[data-placed=true]').waitFor();
    const zoom = page.getByRole('status', { name: 'Zoom' });
    await page.waitForFunction(() => document.querySelector('output')?.textContent === '100 %');
    const before = await looks(map);
    const { x, y, width, height } = await map.boundingBox();
    const [middle, centre] = [x + width / 2, y + height / 2];
    await page.mouse.move(middle, centre);
    await page.mouse.down();
    await page.mouse.move(middle + 90, centre + 40, { steps: 5 });
    await page.mouse.up();
    assert.notEqual(await looks(map), before, 'it was panned');
    await page.getByRole('button', { name: 'Nearer' }).click();
    await page.waitForFunction(() => document.querySelector('output')?.textContent === '140 %');
    await map.focus();
    await page.keyboard.press('-');
    await page.waitForFunction(() => document.querySelector('output')?.textContent === '100 %');
    await page.mouse.move(middle, centre);
    await page.mouse.wheel(0, -300);
    await page.waitForFunction(() => document.querySelector('output')?.textContent !== '100 %');
    await page.keyboard.press('0');
    await page.waitForFunction(() => document.querySelector('output')?.textContent === '100 %');
    assert.equal(await zoom.textContent(), '100 %');

    const title = page.getByRole('heading', {
      level: 2,
      name: /\d+ tools, \d+ connections/,
    });
    const all = await title.textContent();
    await page.getByRole('checkbox', { name: 'complements' }).uncheck();
    await page.waitForURL(/kinds=conflict%2Calternative%2Ctransition/);
    assert.notEqual(await title.textContent(), all);
    await page.getByLabel('Category').selectOption('web');
    await page.waitForURL(/category=web/);
    await page.getByLabel('Category').selectOption('');
    await page.getByRole('checkbox', { name: 'complements' }).check();

    // What is found comes to the middle, and what is clicked on is what is there.
    await page.getByLabel('Find a tool').fill('web_search');
    const one = page.getByRole('heading', { level: 2, name: 'web_search' });
    await one.waitFor();
    await page
      .getByRole('button', { name: /^(then|after) http_request$/ })
      .first()
      .waitFor();
    await page.getByLabel('Find a tool').fill('');
    await one.waitFor({ state: 'detached' });
    await map.click({ position: { x: width / 2, y: height / 2 } });
    await one.waitFor();
    assert.deepEqual(await findings(page), []);

    await page.getByRole('link', { name: 'Table', exact: true }).click();
    const table = page.getByRole('table', { name: 'Connections' });
    await table.getByRole('link', { name: 'web_search', exact: true }).first().waitFor();
    await table.getByText('transition').first().waitFor();
    assert.deepEqual(await findings(page), []);
  });
});

test('map: tools without a category have a name for that, and can be chosen by it', async () => {
  const server = `{command: [${process.execPath}, ${join(import.meta.dirname, 'mcp-server.mjs')}]}`;
  const own = await startDaemon({ configuration: `mcp:\n  servers:\n    tests: ${server}\n` });
  try {
    await visit(
      '#/map?tool=tests_greet',
      async (page) => {
        const legend = page.getByRole('list', { name: 'Categories' }).getByRole('listitem');
        await legend.getByText('no category').waitFor();
        await page.locator('.card', { hasText: 'tests_greet' }).getByText('no category').waitFor();
        const title = page.getByRole('heading', { level: 2, name: /\d+ tools, \d+ connections/ });
        assert.doesNotMatch(await title.textContent(), /, 0 connections/);
        await page.getByLabel('Category').selectOption('no category');
        await page.getByRole('heading', { level: 2, name: /, 0 connections/ }).waitFor();
        await page.waitForURL(/category=-/);
        assert.deepEqual(await findings(page), []);
        await page.getByRole('link', { name: 'Tools', exact: true }).click();
        const options = page.getByLabel('Category').getByRole('option');
        await options.filter({ hasText: 'web' }).waitFor({ state: 'attached' });
        assert.deepEqual(await options.filter({ hasText: /^ \(/ }).count(), 0);
      },
      { at: own },
    );
  } finally {
    await own.stop();
  }
});

test('map: without WebGL it is a table, and says so', async () => {
  await visit('', async (page) => {
    await page.evaluate(() => {
      const whole = HTMLCanvasElement.prototype.getContext;
      HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
        return kind.startsWith('webgl') ? null : whole.call(this, kind, ...rest);
      };
    });
    await page.getByRole('link', { name: 'Map', exact: true }).click();
    await page.getByText('This browser has no WebGL').waitFor();
    await page.getByRole('table', { name: 'Connections' }).waitFor();
    assert.deepEqual(await findings(page), []);
  });
});

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
