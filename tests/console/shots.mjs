/** Pictures of each page, light and dark, of a state as after some time of use: `make console-shots`. */

import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { openPage, startBrowser } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { hasDatabase, others, startDatabase } from './database.mjs';
import { callTool, post, prepare } from './prepare.mjs';

/** Only those that are named, if any is. */
const ONLY = process.argv.slice(2);

const OUT = resolve(import.meta.dirname, '../../docs/console');

/** The map's tools are where they go. */
const placed = (page) => page.locator('.map[data-placed=true]').waitFor();

/** A configuration with a server behind the daemon. */
const server = (says) => `mcp:
  anonymous_calls: true
  servers:
    notes:
      command: [${process.execPath}, ${join(import.meta.dirname, 'mcp-server.mjs')}]
      env: {SAYS: '${says}'}
      on_change: block
`;

/** Changes what the server says, and lets it work on something. */
async function connect(daemon) {
  const servers = async () => (await (await fetch(`${daemon.url}/v1/servers`)).json()).items[0];
  while ((await servers())?.tools !== 2);
  await daemon.configure(server('Greets whoever is named, in their language, and notes that it did.'));
  while ((await servers()).waiting !== 1);
  void callTool(daemon.url, 'notes_slow', { ms: 600_000 });
}

/** Each picture's name, its place, and what is done before it is taken. */
const SHOTS = [
  ['overview', ''],
  ['tools', '#/tools?q=find%20news%20on%20the%20web'],
  ['diagnostics', '#/tools?tab=diagnostics'],
  ['tool', '#/tools/web_search'],
  ['map', '#/map', placed],
  ['map-of-one', '#/map?tool=web_search', placed],
  ['connections', '#/map?view=table&tool=web_search'],
  ['timing', '#/timing'],
  ['calls', '#/timing/http_request'],
  [
    'try',
    '#/try',
    async (page) => {
      await page.getByLabel('Message').fill('search the web for news about chips');
      await page.getByLabel('Tools at most').fill('6');
      await page.getByRole('button', { name: 'Qualify' }).click();
      await page.getByText('the cut').waitFor();
    },
  ],
  ['call', '#/try?tab=call&tool=web_search', (page) => page.getByText('Half within').waitFor()],
  ['sessions', '#/sessions'],
  ['session', '#/sessions/session-003'],
  ['memory', '#/memory?q=weather'],
  ['thread', '#/memory/thread-1?show=thread'],
  ['libraries', '#/libraries'],
  ['servers', '#/servers', (page) => page.getByText('notes_slow').waitFor()],
  ['usage', '#/usage'],
  ['events', '#/events'],
];

const library = process.env['CONSOLE_LIBRARY'];
const daemon = await startDaemon({
  configuration: server('Greets whoever is named.'),
  ...(library !== undefined && { library }),
});
const browser = await startBrowser();
const isWanted = ([name]) => ONLY.length === 0 || ONLY.includes(name);

async function take({ url }, [name, place, act]) {
  for (const colorScheme of ['light', 'dark']) {
    const opened = await openPage(browser, `${url}/console/${place}`, {
      colorScheme,
      viewport: { width: 1200, height: 800 },
    });
    const { page } = opened;
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await page.waitForFunction(() => document.querySelector('.waiting') === null);
    await act?.(page);
    const path = join(OUT, `${name}-${colorScheme}.png`);
    await page.screenshot({ path });
    shrink(path);
    if (opened.faults.length > 0) throw new Error(`${name}: ${opened.faults.join('\n')}`);
    await opened.close();
  }
}

/** A daemon among others, which are as it takes days to be. */
async function takeFleet() {
  const database = await startDatabase();
  const shared = await startDaemon({ database: database.url, configuration: 'store: {host: build-01}\n' });
  try {
    await take(shared, [
      'fleet',
      '#/fleet',
      async (page) => {
        await others(database.ask);
        await page.getByText('3 of 5').waitFor();
      },
    ]);
  } finally {
    await shared.stop();
    await database.stop();
  }
}

try {
  await mkdir(OUT, { recursive: true });
  if (!hasDatabase) console.log('the picture of the fleet stays: PostgreSQL 15 is not installed');
  else if (isWanted(['fleet'])) await takeFleet();
  await prepare(daemon.url, { calls: 10_000, sessions: 200, memories: 1000 });
  for (let minute = 0; minute < 3; minute += 1) await post(daemon.url, '/v1/metadata', { tool_name: 'web_search' });
  await connect(daemon);
  for (const shot of SHOTS.filter(isWanted)) await take(daemon, shot);
} finally {
  await browser.close();
  await daemon.stop();
}

/** Fewer colours take a third of the bytes, where the program for it is there. */
function shrink(path) {
  try {
    execFileSync('pngquant', ['--force', '--ext', '.png', '--quality', '70-95', path], { stdio: 'ignore' });
  } catch {
    // The picture stays as it was.
  }
}
