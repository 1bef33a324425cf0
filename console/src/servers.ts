/** What is wrong with MCP servers. */

import type { McpServerItem, ServersAnswer } from './api.js';
import type { Tone } from './ui.js';
import type { Wrong } from './wrongs.js';

export const TONES: Record<string, Tone> = {
  up: 'good',
  starting: 'info',
  idle: 'quiet',
  down: 'bad',
  'needs-login': 'bad',
};

/** By server: those that do not serve, and those with a problem though they do. */
export function wrongsOf({ items }: ServersAnswer): Wrong[] {
  return items.flatMap((server) => wrongOf(server) ?? []);
}

function wrongOf({ name, state, problem }: McpServerItem): Wrong | undefined {
  const isBad = TONES[state] === 'bad';
  if (!isBad && problem == null) return undefined;
  const why = problem == null ? '' : `: ${problem}`;
  return { tone: isBad ? 'bad' : 'warn', what: `MCP server ${name} is ${state}${why}`, todo: 'see how it is' };
}
