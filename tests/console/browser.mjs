/** Debian's Chromium, and a page in it that watches for everything that must not be. */

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { chromium } from 'playwright-core';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What Chromium says of WebGL without a graphics card. */
const SOFTWARE = /GPU stall due to ReadPixels/;

/** How long a person would wait, in ms; only a failing test waits so long. */
export const PATIENCE_MS = 20_000;

export async function startBrowser() {
  const executablePath = process.env['CHROMIUM'] ?? PLACES.find(existsSync);
  assert.ok(executablePath, 'there is no Chromium');
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
}

/** A page at `url`. What goes wrong in it is in `faults`; `isForgiven` says which of it is meant. */
export async function openPage(browser, url, { isForgiven = () => false, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  });
  await showFiles(context);
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const faults = [];
  const note = (text) => {
    if (!isForgiven(text) && !SOFTWARE.test(text)) faults.push(text);
  };
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) note(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => note(`error: ${error.message}`));
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText;
    // A page that is left stops asking.
    if (reason !== 'net::ERR_ABORTED') note(`failed: ${request.url()} ${reason}`);
  });
  page.on('response', (response) => {
    if (response.status() >= 400) note(`status: ${response.status()} ${response.url()}`);
  });
  page.on('dialog', (dialog) => {
    note(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(() => {
    addEventListener('securitypolicyviolation', (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  await page.goto(url);
  return { page, faults, close: () => context.close() };
}

/** Shows the files of a directory in place of those in the binary, for whoever works on them: `CONSOLE_FILES=console/built`. */
async function showFiles(context) {
  const directory = process.env['CONSOLE_FILES'];
  if (directory === undefined) return;
  await context.route(/\/console\/[\w.-]*$/, async (route) => {
    const name = new URL(route.request().url()).pathname.split('/').at(-1) || 'index.html';
    const type = {
      js: 'text/javascript',
      css: 'text/css',
      html: 'text/html',
      txt: 'text/plain',
    }[name.split('.').at(-1)];
    const page = await context.request.get(new URL('/console/', route.request().url()).href);
    const policy = page.headers()['content-security-policy'];
    await route.fulfill({
      path: join(directory, name),
      headers: { 'content-type': type, 'content-security-policy': policy },
    });
  });
}

/** What axe finds wrong with the page, as lines. Evaluated by the debugger, which no policy holds. */
export async function findings(page) {
  const found = await page.evaluate(`(async () => {
    if (!globalThis.axe) { ${AXE} }
    const { violations } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ': ' + node.html.slice(0, 160) + ' ' + (node.any[0]?.message ?? '')));
  })()`);
  return found;
}
