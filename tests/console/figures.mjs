/** Prints what the console costs, medians of five after one to warm up: `npm run figures`. Nothing is asserted. */

import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { openPage, startBrowser } from './browser.mjs';
import { startDaemon } from './daemon.mjs';
import { post } from './prepare.mjs';

const ROUNDS = 5;
/** The kernel's clock ticks of a second. */
const TICKS = 100;
const IDLE_MS = 20_000;
const POINTS = 10_000;
/** A page that is opened has done all by then. */
const SETTLED_MS = 500;

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
const round = (value) => Math.round(value * 10) / 10;

/** The median of some rounds, after one that does not count. */
async function rounds(measure) {
  const values = [];
  for (let number = 0; number <= ROUNDS; number += 1) values.push(await measure(number));
  return round(median(values.slice(1)));
}

const say = (what, value, unit, bar) =>
  console.log(`${what}: ${value} ${unit}${bar === undefined ? '' : ` (at most ${bar})`}`);

/** Seconds of script that a page has run. */
async function scriptOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable');
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'ScriptDuration').value;
  };
}

async function visit(browser, url, act) {
  const opened = await openPage(browser, url);
  try {
    await opened.page.getByRole('heading', { level: 1 }).waitFor();
    return await act(opened.page);
  } finally {
    await opened.close();
  }
}

const browser = await startBrowser();
const daemon = await startDaemon();
try {
  const paint = () =>
    visit(browser, `${daemon.url}/console/`, (page) =>
      page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime),
    );
  say('First contentful paint', await rounds(paint), 'ms', 300);

  const now = Date.now();
  for (let from = 0; from < POINTS; from += 1000) {
    const call = (_, number) => ({
      tool_name: 'grep',
      duration_ms: 100 + (((from + number) * 7919) % 900),
      timestamp: now - (POINTS - from - number) * 1000,
    });
    await post(daemon.url, '/v1/executions', Array.from({ length: 1000 }, call));
  }
  const draw = () =>
    visit(browser, `${daemon.url}/console/#/usage`, async (page) => {
      // What the page before has to do, with the events of late, is none of it.
      await page.getByText('live', { exact: true }).waitFor();
      await new Promise((done) => setTimeout(done, SETTLED_MS));
      const script = await scriptOf(page);
      const before = await script();
      await page.evaluate(() => (location.hash = '#/timing/grep'));
      await page.locator('.plot canvas').waitFor();
      await page.evaluate(() => new Promise(requestAnimationFrame));
      return ((await script()) - before) * 1000;
    });
  say(`Script to show ${POINTS} points, answer and page included`, await rounds(draw), 'ms', 50);

  const broken = () =>
    visit(browser, `${daemon.url}/console/`, async (page) => {
      await page.getByText('All is well').waitFor();
      await page.getByText('live', { exact: true }).waitFor();
      const seen = page.waitForFunction(() => /in documents/.test(document.body.textContent), undefined, {
        polling: 'raf',
      });
      const began = performance.now();
      await writeFile(join(daemon.tools, 'broken.yaml'), 'name: [\n');
      await seen;
      const took = performance.now() - began;
      await rm(join(daemon.tools, 'broken.yaml'));
      await page.getByText('All is well').waitFor();
      return took;
    });
  say('From a broken document to the word of it', await rounds(broken), 'ms', 1000);

  const ticks = () => {
    const fields = readFileSync(`/proc/${daemon.pid()}/stat`, 'utf8').split(') ')[1].split(' ');
    return Number(fields[11]) + Number(fields[12]);
  };
  const idle = await visit(browser, `${daemon.url}/console/`, async (page) => {
    await page.getByText('live', { exact: true }).waitFor();
    const before = ticks();
    await new Promise((done) => setTimeout(done, IDLE_MS));
    return (ticks() - before) / TICKS / (IDLE_MS / 1000);
  });
  say('The daemon under an idle open page', round(idle * 100), '% of a core', 1);
} finally {
  await daemon.stop();
}

/** Documents that hang together: of each tool two relations within its category, and one beyond it. */
async function documents(directory, number) {
  const name = (index) => `tool_${index % number}`;
  for (let index = 0; index < number; index += 1) {
    const text = `name: ${name(index)}
title: Tool ${index}
description: Does the thing of the number ${index}, and nothing else.
category: category ${index % 20}
capabilities: [thing ${index % 50}]
keywords: [number ${index}]
use_cases: []
alternatives: [{tool: ${name(index + 20)}, when: that one fits, benefits: it fits}]
complements:
  - {tool: ${name(index + 40)}, scenario: afterwards}
  - {tool: ${name(index * 7 + 1)}, scenario: afterwards}
`;
    await writeFile(join(directory, `${name(index)}.yaml`), text);
  }
}

for (const [tools, bar] of [
  [500, 8],
  [5000, 40],
]) {
  const own = await startDaemon({
    documents: (directory) => documents(directory, tools),
  });
  try {
    await visit(browser, `${own.url}/console/#/map`, async (page) => {
      await page.locator('.map[data-placed=true]').waitFor({ timeout: 120_000 });
      const { x, y, width, height } = await page.locator('.map').boundingBox();
      const script = await scriptOf(page);
      const pan = async (number) => {
        await page.mouse.move(x + width / 2, y + height / 2);
        await page.mouse.down();
        await page.evaluate(() => {
          globalThis.frames_seen = 0;
          const count = () => ((globalThis.frames_seen += 1), (globalThis.counting = requestAnimationFrame(count)));
          globalThis.counting = requestAnimationFrame(count);
        });
        const before = await script();
        for (let step = 1; step <= 40; step += 1) {
          await page.mouse.move(x + width / 2 + (number % 2 ? -step : step) * 4, y + height / 2 + step);
          await page.evaluate(() => new Promise(requestAnimationFrame));
        }
        const spent = (await script()) - before;
        const frames = await page.evaluate(() => (cancelAnimationFrame(globalThis.counting), globalThis.frames_seen));
        await page.mouse.up();
        return (spent * 1000) / frames;
      };
      say(`Script a frame while ${tools} tools are panned`, await rounds(pan), 'ms', bar);
    });
  } finally {
    await own.stop();
  }
}
await browser.close();
