/** The way to the daemon: its own client, on addresses beside the console's, with a token that only this page's memory has. */

import { type AlmanacClient, createAlmanacClient } from '../../clients/typescript/src/client.js';
import { AlmanacError } from '../../clients/typescript/src/error.js';
import { capital } from './format.js';

export type * from '../../clients/typescript/src/openapi.js';
export { type StructuredId, structuredIdToString } from '../../clients/typescript/src/structured-id.js';
export { AlmanacError };

/** Where the API is: beside `console/`, whatever prefix a proxy puts before both. */
export const ROOT = new URL('..', document.baseURI);

let token: string | undefined;
let made = createAlmanacClient({ url: ROOT, retries: 1 });

/** The client, with the token if one was given. */
export function api(): AlmanacClient {
  return made;
}

/** Uses this token from now on; it is forgotten with the page. */
export function useThisToken(given: string | undefined): void {
  token = given;
  made = createAlmanacClient({ url: ROOT, retries: 1, ...(given !== undefined && { token: given }) });
}

/**
 * Throws what is wrong with a token. One that may not read is a token all the same: it may have another scope. No header can
 * have some characters, and then nobody was asked.
 */
export async function checkToken(given: string): Promise<void> {
  try {
    await createAlmanacClient({ url: ROOT, retries: 1, token: given }).getOverview();
  } catch (error) {
    if (error instanceof TypeError) throw new Error('This token has a character that none can have; copy it again.');
    if (!lacksScope(error)) throw error;
  }
}

/** What goes with requests that the client does not make. */
export function authorization(): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

/** Was a token given? */
export function hasToken(): boolean {
  return token !== undefined;
}

/** Does this say that a token is needed, or another one? */
export function needsToken(error: unknown): boolean {
  return error instanceof AlmanacError && error.status === 401;
}

/** Does this say that the token may not do it? */
export function lacksScope(error: unknown): boolean {
  return error instanceof AlmanacError && error.code === 'missing-scope';
}

/** Does this say that the daemon is not there? */
export function isUnreachable(error: unknown): boolean {
  return error instanceof AlmanacError && error.code === 'unreachable';
}

/** What went wrong, for people, in one line: the client's message has a line for each fault of what was sent. */
export function sentence(error: unknown): string {
  if (!(error instanceof AlmanacError)) return error instanceof Error ? error.message : String(error);
  if (lacksScope(error)) return again(error.message);
  return capital(error.message).replaceAll('\n  ', ' · ');
}

/** What the daemon would say of a token without the scope. */
export function lackOf(scope: string): string {
  return again(`this token has not the scope ${scope}`);
}

function again(lack: string): string {
  return `${capital(lack)}; open the console again with one that has it.`;
}
