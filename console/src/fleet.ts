/** What is wrong with a fleet. */

import type { FleetAnswer, FleetDaemonItem } from './api.js';
import { age, count, many } from './format.js';
import type { Tone } from './ui.js';
import type { Wrong } from './wrongs.js';

/** Records that wait for less, and daemons that follow after less, are on their way, in seconds. */
const LATE = 10;

/** Digits of an id that tell a daemon from others for people. */
const DIGITS = 8;

export function shortId({ id }: FleetDaemonItem): string {
  return id.slice(0, DIGITS);
}

/** Where it runs: what the operator called it, or the beginning of the hash that stands for its machine. */
export function hostOf({ host }: FleetDaemonItem): string {
  return /^[0-9a-f]{64}$/.test(host) ? `${host.slice(0, DIGITS)}…` : host;
}

/** Is there anything on its machine alone that was not just put there? */
export function isSpooling({ state, database }: FleetDaemonItem): boolean {
  return database != null && database.waiting > 0 && (state !== 'alive' || database.oldest_seconds >= LATE);
}

export function isLate({ state, database }: FleetDaemonItem): boolean {
  return state === 'alive' && database != null && database.behind > 0 && database.followed_seconds >= LATE;
}

/** By daemon, the worst first. */
export function wrongsOf({ items, degraded }: FleetAnswer): Wrong[] {
  const found: Wrong[] = (degraded ?? []).map((reason) => ({
    tone: 'bad',
    what: `The other daemons cannot be listed: ${reason}`,
    todo: 'mend the database, or the way to it',
  }));
  for (const daemon of items) found.push(...wrongsOfOne(daemon));
  return [...found.filter(({ tone }) => tone === 'bad'), ...found.filter(({ tone }) => tone !== 'bad')];
}

function wrongsOfOne(daemon: FleetDaemonItem): Wrong[] {
  const { state, database, unseen_seconds: unseen } = daemon;
  const found: Wrong[] = [];
  const add = (tone: Tone, what: string, todo: string) =>
    found.push({ tone, what: `Daemon ${shortId(daemon)} on ${hostOf(daemon)}: ${what}`, todo });
  const ago = (seconds: number) => age(seconds * 1000);
  if (state === 'silent') add('bad', `not heard of for ${ago(unseen)}`, 'see whether it runs');
  if (database == null) return found;
  if (database.trouble != null && state === 'alive') add('bad', database.trouble, 'mend its way to the database');
  if (isSpooling(daemon)) {
    const records = many(database.waiting, 'record');
    const what = `${records} on its machine alone, for ${ago(database.oldest_seconds)}`;
    if (state === 'alive') add('warn', what, 'keep its state directory until they are sent');
    else add('bad', what, 'start it again');
  }
  if (database.put_aside > 0) {
    const records = many(database.put_aside, 'record');
    add('bad', `${records} put aside, which the database refused`, 'read its spool.refused');
  }
  if (isLate(daemon)) {
    const behind = `${count(database.behind)} behind for ${ago(database.followed_seconds)}`;
    add('warn', `it follows the others late, ${behind}`, 'see what keeps it busy');
  }
  return found;
}
