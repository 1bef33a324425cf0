/** A daemon of one's own on a directory of its own, which can be ended and started again at the same address. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const REPOSITORY = resolve(import.meta.dirname, '../..');
const BINARY =
  process.env['ALMANACD'] ?? resolve(REPOSITORY, process.env['CARGO_TARGET_DIR'] ?? 'target', 'debug/almanacd');

/**
 * Starts one: with the shipped documents, none, or what a function writes, with tokens by their names and scopes or none, with a rule library or
 * none, and on a database that others share or alone.
 */
export async function startDaemon({ configuration = '', documents = true, tokens, library, database } = {}) {
  const root = await mkdtemp(join(tmpdir(), 'almanac-'));
  const tools = join(root, 'tools');
  await mkdir(tools);
  await mkdir(join(root, 'plugins'));
  if (documents) await cp(join(REPOSITORY, 'tool_metadata'), tools, { recursive: true });
  if (library !== undefined) await cp(library, join(root, 'plugins', basename(library)));
  const texts = {};
  for (const [name, scopes] of Object.entries(tokens ?? {})) {
    const made = ['token', 'new', '--name', name, '--scopes', scopes, '--file', join(root, 'tokens'), '--json'];
    texts[name] = JSON.parse(execFileSync(BINARY, made, { encoding: 'utf8', env: ownEnvironment() })).token;
  }
  const access = tokens === undefined ? '' : `auth: {tokens_file: ${join(root, 'tokens')}}\n`;
  await writeFile(join(root, 'almanac.yaml'), configuration + access);
  let child;
  let listen = '127.0.0.1:0';
  const start = async () => {
    const places = [
      '--config',
      join(root, 'almanac.yaml'),
      '--tool-metadata',
      tools,
      '--state-dir',
      join(root, 'state'),
    ];
    const doors = ['--listen', listen, '--admin-socket', join(root, 'admin.sock'), '--log-format', 'json'];
    child = spawn(BINARY, ['serve', ...places, ...doors], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...ownEnvironment(),
        ALMANAC_PLUGINS: join(root, 'plugins'),
        ...(database !== undefined && { ALMANAC_DATABASE_URL: database }),
      },
    });
    const url = await listening(child);
    listen = new URL(url).host;
    return url;
  };
  const end = async (signal) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill(signal);
    await closed;
  };
  const url = await start().catch(async (error) => {
    await rm(root, { recursive: true, force: true });
    throw error;
  });
  return {
    url,
    root,
    tools,
    pid: () => child.pid,
    /** The tokens by their names. */
    tokens: texts,
    /** Writes another configuration, which is read at once. */
    configure: async (text) => {
      await writeFile(join(root, 'almanac.yaml'), text + access);
      execFileSync(BINARY, ['ctl', '--socket', join(root, 'admin.sock'), 'reload'], { env: ownEnvironment() });
    },
    /** Ends it at once: while it ends by itself, a page may be told so, and show that from then on. */
    kill: () => end('SIGKILL'),
    start,
    stop: async () => {
      await end('SIGKILL');
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** None of the developer's own settings. */
function ownEnvironment() {
  const isForeign = (name) => name.startsWith('ALMANAC_') || ['JOURNAL_STREAM', 'NOTIFY_SOCKET'].includes(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isForeign(name)));
}

function listening(child) {
  const said = [];
  return new Promise((done, failed) => {
    child.once('error', failed);
    const lines = createInterface({ input: child.stderr });
    lines.on('line', (line) => {
      said.push(line);
      const url = /"message":"listening".*"http":"(http:[^" ]+)/.exec(line)?.[1];
      if (url !== undefined) done(url);
    });
    lines.once('close', () => failed(new Error(`${BINARY} ended: ${said.slice(-20).join('\n')}`)));
  });
}
