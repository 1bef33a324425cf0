/** The events of a chat stream that answers `qualify`, of either protocol, and those of the daemon. */

import { listIn, objectIn, parsed } from './answer.js';

/** What a client of a chat shows: why, the intent, and which tools there are. */
export interface QualifyEvent {
  /** `reasoning`, `intent_context` or `dev_tools_info`. */
  type: string;
  /** Whatever that type has. */
  [key: string]: unknown;
}

/** The events in a text of `data-v1` (lines `2:[…]`) or `ui-v1` (server-sent events), in their order. */
export function eventsOf(text: string): QualifyEvent[] {
  return text.split('\n').flatMap((line): QualifyEvent[] => {
    if (line.startsWith('2:')) return listIn(parsed(line.slice(2), 'an event') as QualifyEvent[], 'an event');
    if (!line.startsWith('data: {')) return [];
    const { type, data } = objectIn<{ type?: unknown; data?: QualifyEvent }>(line.slice('data: '.length), 'an event');
    return typeof type === 'string' && type.startsWith('data-') && data !== undefined ? [data] : [];
  });
}

/** Something that happened. */
export interface DaemonEvent {
  /** Such as `execution_recorded`; `missed` says that the listener was too slow, and how many it missed. */
  type: string;
  /** When, in RFC 3339. */
  at: string;
  /** Whatever that type has. */
  [key: string]: unknown;
}

/** The events in the lines of `GET /v1/events`, as they come. */
export async function* daemonEvents(lines: AsyncIterable<string>): AsyncIterableIterator<DaemonEvent> {
  for await (const line of lines) {
    if (line.startsWith('data: ')) yield objectIn<DaemonEvent>(line.slice('data: '.length), 'an event');
  }
}
