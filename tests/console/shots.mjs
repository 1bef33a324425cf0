/** Pictures of each page, light and dark, of a state as after some time of use: `make console-shots`. */

import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { openPage, startBrowser } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { post, prepare } from './prepare.mjs';

const OUT = resolve(import.meta.dirname, '../../docs/console');

/** Each picture's name, its place, and what is done before it is taken. */
const SHOTS = [
  ['overview', ''],
  ['tools', '#/tools?q=find%20news%20on%20the%20web'],
  ['diagnostics', '#/tools?tab=diagnostics'],
  ['tool', '#/tools/web_search'],
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
  ['usage', '#/usage'],
  ['events', '#/events'],
];

const library = process.env['CONSOLE_LIBRARY'];
const daemon = await startDaemon(library === undefined ? {} : { library });
const browser = await startBrowser();
try {
  await prepare(daemon.url, { calls: 10_000, sessions: 200, memories: 1000 });
  for (let minute = 0; minute < 3; minute += 1) await post(daemon.url, '/v1/metadata', { tool_name: 'web_search' });
  await mkdir(OUT, { recursive: true });
  for (const colorScheme of ['light', 'dark']) {
    for (const [name, place, act] of SHOTS) {
      const opened = await openPage(browser, `${daemon.url}/console/${place}`, {
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
