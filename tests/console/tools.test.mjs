/** The console as a person uses it: its pages, and what they tell of tools, by clicking in a real browser. */

import assert from 'node:assert/strict';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

import { findings, PATIENCE_MS } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { post } from './prepare.mjs';
import { daemon, heading, SCRIPT, settled, tooWide, visit } from './suite.mjs';

/** The pages, and what each is headed by. */
const PAGES = ['Overview', 'Tools', 'Map', 'Timing', 'Try', 'Sessions', 'Memory', 'Libraries', 'Usage', 'Events'];

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
