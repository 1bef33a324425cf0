/** What is between tools, as it is drawn and listed: relations that both documents declare are one. */

import type { RelationGraph } from './api.js';

export type Kind = 'conflict' | 'alternative' | 'complement' | 'transition';

export const KINDS: readonly Kind[] = ['conflict', 'alternative', 'complement', 'transition'];

/** What each says of two tools. */
export const SAYS: Record<Kind, string> = {
  conflict: 'should not be used beside',
  alternative: 'has an alternative in',
  complement: 'goes well with',
  transition: 'was followed by',
};

export interface Connection {
  kind: Kind;
  from: string;
  to: string;
  /** Of a transition: how often, and its share of what followed. */
  calls: number;
  share: number;
}

/** All of them, each once: a conflict has no direction, and what two documents say of each other is one connection. */
export function connections({ relations, transitions }: RelationGraph): Connection[] {
  const found = new Map<string, Connection>();
  for (const { kind, from, to } of relations) {
    const isMutual = kind !== 'alternative';
    const [one, other] = isMutual && to < from ? [to, from] : [from, to];
    found.set(`${kind} ${one} ${other}`, { kind: kind as Kind, from: one, to: other, calls: 0, share: 0 });
  }
  for (const { from, to, calls, share } of transitions) {
    if (from !== to) found.set(`transition ${from} ${to}`, { kind: 'transition', from, to, calls, share });
  }
  return [...found.values()];
}
