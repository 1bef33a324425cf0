/** A daemon of one's own, in a directory that goes with it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

/** The binary: `ALMANACD`, else the one of the repository's debug build. */
const BINARY = process.env['ALMANACD'] ?? resolve(process.env['CARGO_TARGET_DIR'] ?? '../../target', 'debug/almanacd');

/** A running daemon. */
export interface Daemon {
  /** Where it listens, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Its admin socket. */
  readonly socket: string;
  /** Its directory. */
  readonly root: string;
  /** Ends it and removes its directory. */
  stop(): Promise<void>;
}

/** Starts a daemon with a configuration (YAML) and the documents of a directory, by default none. */
export async function startDaemon(configuration = '', documents?: string): Promise<Daemon> {
  // Short, because a socket's path is limited to 107 bytes.
  const root = await mkdtemp(join(tmpdir(), 'almanac-'));
  const tools = documents ?? join(root, 'tools');
  await mkdir(tools, { recursive: true });
  await writeFile(join(root, 'almanac.yaml'), configuration);
  const socket = join(root, 'admin.sock');
  const paths = ['--config', join(root, 'almanac.yaml'), '--tool-metadata', tools, '--state-dir', join(root, 'state')];
  const child = spawn(
    BINARY,
    ['serve', ...paths, '--listen', '127.0.0.1:0', '--admin-socket', socket, '--log-format', 'json'],
    { stdio: ['ignore', 'ignore', 'pipe'], env: ownEnvironment() },
  );
  const ended = new Promise<void>((done) => child.once('close', () => done()));
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
    await rm(root, { recursive: true, force: true });
  };
  try {
    return { url: await listening(child), socket, root, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** None of the developer's own settings. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const foreign = (name: string) => name.startsWith('ALMANAC_') || ['JOURNAL_STREAM', 'NOTIFY_SOCKET'].includes(name);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign(name)));
}

async function listening(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  const lines = createInterface({ input: child.stderr! });
  const found = new Promise<string>((done, reject) => {
    lines.on('line', (line) => {
      said.push(line);
      const url = /"message":"listening".*"http":"(http:[^" ]+)/.exec(line)?.[1];
      if (url !== undefined) done(url);
    });
    lines.once('close', () => reject(new Error(`${BINARY} ended: ${said.join('\n')}`)));
  });
  return Promise.race([found, failed]);
}
