/** A PostgreSQL of one's own, for daemons that share it. */

import { execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { promisify } from 'node:util';

/** Where Debian installs it. */
const PROGRAMS = '/usr/lib/postgresql/15/bin';

export const hasDatabase = existsSync(join(PROGRAMS, 'initdb'));

/** It refuses to run as root. */
function unprivileged() {
  if (process.getuid() !== 0) return {};
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  const [, , uid, gid] = users.find(([name]) => name === 'postgres') ?? users.find(([name]) => name === 'nobody');
  return { uid: Number(uid), gid: Number(gid) };
}

/** Starts one that listens on a socket in its directory only, and lets `postgres` in without a password. */
export async function startDatabase() {
  const user = unprivileged();
  const root = await mkdtemp(join(tmpdir(), 'almanac-database-'));
  if (user.uid !== undefined) await chown(root, user.uid, user.gid);
  const options = { cwd: root, stdio: 'ignore', ...user };
  const data = join(root, 'data');
  const make = ['--no-sync', '--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C', '--pgdata', data];
  execFileSync(join(PROGRAMS, 'initdb'), make, options);
  const settings = [`unix_socket_directories=${root}`, 'listen_addresses=', 'fsync=off'].flatMap((line) => [
    '-c',
    line,
  ]);
  const server = spawn(join(PROGRAMS, 'postgres'), ['-D', data, ...settings], options);
  const ask = async (sql) => {
    const given = ['--no-psqlrc', '--tuples-only', '--no-align', '--username=postgres', '--host', root];
    const { stdout } = await promisify(execFile)(join(PROGRAMS, 'psql'), [...given, '--command', sql], { cwd: root });
    return stdout.trim();
  };
  const deadline = Date.now() + 20_000;
  while (!(await ask('SELECT 1').catch(() => ''))) {
    if (Date.now() > deadline) throw new Error('PostgreSQL does not start');
  }
  const end = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const ended = once(server, 'exit');
    // It ends its processes by itself, at once.
    server.kill('SIGQUIT');
    await ended;
  };
  return {
    url: `postgres:///postgres?user=postgres&host=${root}`,
    ask,
    end,
    stop: async () => {
      await end();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/**
 * Daemons as others would be: one that is well, one that is silent with records on its machine, one that stopped, and
 * one of an earlier version that put something aside and follows late.
 */
export function others(ask) {
  const states = [
    ['1f', 'build-02', '0.1.0', '9 days', '1 second', false, null, 0, 0, null, 0, 0, 0.3],
    [
      '5c',
      'build-03',
      '0.1.0',
      '3 days',
      '4 minutes',
      false,
      'the database server at db.example.com:5432 cannot be reached: connection refused',
      1284,
      412_000,
      '21 minutes',
      0,
      0,
      0.4,
    ],
    ['a7', 'laptop-ada', '0.1.0', '2 days', '5 hours', true, null, 0, 0, null, 0, 0, 0.2],
    ['e2', 'runner-1', '0.0.9', '12 days', '2 seconds', false, null, 0, 0, null, 2, 312, 14],
  ];
  const text = (value) => (value === null ? 'NULL' : `'${value}'`);
  const ago = (value) => (value === null ? 'NULL' : `now() - interval '${value}'`);
  const rows = states.map(
    ([byte, , version, started, said, ended, trouble, waiting, bytes, since, aside, behind, followed]) =>
      `(decode(repeat('${byte}', 16), 'hex'), '\\x00', '${version}', ${ago(started)}, ${ago(said)}, ${ended},
        ${text(trouble)}, ${waiting}, ${bytes}, ${ago(since)}, ${aside}, ${behind}, ${followed})`,
  );
  const hosts = states.map(([byte, host]) => `(decode(repeat('${byte}', 16), 'hex'), '${host}')`);
  return ask(`INSERT INTO almanac.daemons (daemon, host) VALUES ${hosts.join()} ON CONFLICT DO NOTHING;
    DELETE FROM almanac.daemon_states WHERE incarnation = '\\x00';
    INSERT INTO almanac.daemon_states VALUES ${rows.join()}`);
}
