import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';

/** A server that answers as it is told, once per request, and what it was asked. */
export async function serving(...answers: RequestListener[]): Promise<{ url: string; asked: IncomingMessage[] }> {
  const { server, asked } = answering(answers);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

/** The same behind a unix socket. */
export async function servingSocket(
  ...answers: RequestListener[]
): Promise<{ socket: string; asked: IncomingMessage[]; server: Server }> {
  const { server, asked } = answering(answers);
  const root = await mkdtemp(join(tmpdir(), 'almanac-'));
  after(() => rm(root, { recursive: true }));
  const socket = join(root, 's.sock');
  await once(server.listen(socket), 'listening');
  return { socket, asked, server };
}

/** Where nobody listens. */
export async function nobody(): Promise<string> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await once(server.close(), 'close');
  return `http://127.0.0.1:${port}`;
}

function answering(answers: RequestListener[]): { server: Server; asked: IncomingMessage[] } {
  const asked: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    asked.push(request);
    request.resume();
    (answers.shift() ?? ((_, response) => response.writeHead(500).end()))(request, response);
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, asked };
}

/** Answers with JSON; from 300 on with a problem. */
export const json =
  (status: number, body: unknown, headers: Record<string, string> = {}) =>
  (_: IncomingMessage, response: ServerResponse) => {
    const type = status < 300 ? 'application/json' : 'application/problem+json';
    response.writeHead(status, { 'content-type': type, ...headers }).end(JSON.stringify(body));
  };
/** Breaks the connection. */
export const broken: RequestListener = (request) => request.socket.destroy();
/** Never answers. */
export const silent: RequestListener = () => {};
/** Asks to come back after `wait` seconds. */
export const busy = (wait: string) =>
  json(
    503,
    { title: 'Service Unavailable', status: 503, code: 'store-unavailable', detail: 'busy' },
    { 'retry-after': wait },
  );
