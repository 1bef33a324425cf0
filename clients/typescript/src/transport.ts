/** One request and its answer, over TCP or through a unix socket. Connections are kept and used again. */

import type { IncomingMessage } from 'node:http';

/** A request, as it is sent. */
export interface Sent {
  method: string;
  /** With the query, percent-encoded. */
  path: string;
  headers: Record<string, string>;
  body: string | ReadableStream<Uint8Array> | undefined;
  /** Ends it, and a good answer's `chunks`. */
  signal: AbortSignal;
  /** Does a good answer come bit by bit? */
  isOpen: boolean;
}

/** An answer. */
export interface Reply {
  status: number;
  header(name: string): string | null | undefined;
  /** All of it; empty if it comes bit by bit. */
  text: string;
  /** What comes bit by bit. */
  chunks?: AsyncIterable<Uint8Array>;
}

/** Sends a request; throws whatever kept it from an answer. */
export type Send = (sent: Sent) => Promise<Reply>;

/** The admin socket takes 64 connections, and those who administer need some. Further requests wait for one. */
const MOST_SOCKETS = 8;
/** Connections that are kept while nothing is sent: the same socket is short of them for others. */
const MOST_IDLE_SOCKETS = 2;

/** To a daemon at an URL, whose path is a prefix of all paths. */
export function overTcp(base: URL): Send {
  const root = base.href.replace(/[?#].*$/, '').replace(/\/$/, '');
  return async ({ path, body, isOpen, ...sent }) => {
    const init = { ...sent, redirect: 'manual' } as const;
    // Without `duplex` a stream is not sent; the platform's types do not know it yet.
    const whole = body === undefined ? init : { ...init, body, ...(typeof body !== 'string' && { duplex: 'half' }) };
    const response = await fetch(root + path, whole as RequestInit);
    const head = { status: response.status, header: (name: string) => response.headers.get(name) };
    if (isOpen && response.ok && response.body !== null) return { ...head, text: '', chunks: response.body };
    return { ...head, text: await response.text() };
  };
}

/** The platform's fetch knows no unix sockets; Node's own client does, and is loaded only for them. */
export function throughSocket(socketPath: string): Send {
  const loaded = Promise.all([import('node:http'), import('node:stream')]).then(([http, { Readable }]) => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: MOST_SOCKETS, maxFreeSockets: MOST_IDLE_SOCKETS });
    return { http, Readable, agent };
  });
  return async ({ body, headers, isOpen, ...sent }) => {
    const { http, Readable, agent } = await loaded;
    const isStream = typeof body === 'object';
    return new Promise((done, failed) => {
      // What goes on for long must not take a connection that others wait for.
      const way = { socketPath, agent: isStream || isOpen ? false : agent };
      const request = http.request({ ...sent, ...way, headers: { host: 'localhost', ...headers } }, (message) =>
        read(message, isOpen).then(done, failed),
      );
      request.once('error', failed);
      if (!isStream) return void request.end(body);
      const source = Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
      source.once('error', (error) => request.destroy(error)).pipe(request);
    });
  };
}

async function read(message: IncomingMessage, isOpen: boolean): Promise<Reply> {
  const status = message.statusCode ?? 0;
  const head = { status, header: (name: string) => [message.headers[name]].flat()[0] };
  if (isOpen && status >= 200 && status < 300) return { ...head, text: '', chunks: message };
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return { ...head, text: Buffer.concat(chunks).toString('utf8') };
}
