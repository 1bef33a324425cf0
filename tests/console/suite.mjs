/** What the tests of the console share: one browser and one daemon for each file of them. */

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { openPage, startBrowser } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { prepare } from './prepare.mjs';

let browser;
export let daemon;

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
export async function visit(place, act, { at = daemon, isForgiven, ...options } = {}) {
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
export async function fails(page, address, status) {
  await page.route(address, (route) => route.fulfill({ status }));
  return () => page.unroute(address);
}

/** Waits until nothing is asked any more. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('.waiting') === null);
}

export const heading = (page, name) => page.getByRole('heading', { level: 1, name });

/** Tables that are wider than their place. */
export const tooWide = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('.scroll')]
      .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
      .map((place) => place.getAttribute('aria-label')),
  );

/** What must stay text wherever it is shown. */
export const SCRIPT = '<img src=x onerror=alert(1)><script>alert(2)</script>';
