/** What is wrong, one line each: how bad it is, what it is, and what to do, linked to its place. */

import { Badge, type Tone } from './ui.js';

export interface Wrong {
  tone: Tone;
  what: string;
  todo: string;
  /** Where to do it; nothing if it is not done in the console. */
  href?: string;
}

export function Wrongs({ wrongs }: { wrongs: readonly Wrong[] }) {
  return (
    <ul class="wrongs" aria-label="What is wrong">
      {wrongs.map(({ tone, what, todo, href }) => (
        <li key={what}>
          <Badge tone={tone}>{tone === 'bad' ? 'Wrong' : 'Worth a look'}</Badge>
          <span>
            {what} — {href === undefined ? todo : <a href={href}>{todo}</a>}
          </span>
        </li>
      ))}
    </ul>
  );
}
