/** The events of a chat stream that answers `qualify`, of either protocol. */

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
    if (line.startsWith('2:')) return JSON.parse(line.slice(2)) as QualifyEvent[];
    if (!line.startsWith('data: {')) return [];
    const { type, data } = JSON.parse(line.slice('data: '.length)) as { type: string; data?: QualifyEvent };
    return type.startsWith('data-') && data !== undefined ? [data] : [];
  });
}
