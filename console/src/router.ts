/** Where one is: after `#`, so that a link shows what one saw and no proxy's log does. */

import { useEffect, useState } from 'preact/hooks';

export interface Place {
  /** The page. */
  page: string;
  /** What of it: a tool, a session, a memory. */
  subject: string | undefined;
  /** What is filled in. */
  query: URLSearchParams;
}

/** Reads `#/page/subject?query`. */
export function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [page = '', ...rest] = path.split('/');
  const subject = rest.join('/');
  return {
    page: page || 'overview',
    subject: subject === '' ? undefined : decode(subject),
    query: new URLSearchParams(query),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a place. */
export function link(page: string, subject?: string, query: Record<string, string | number | undefined> = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '') given.set(name, String(value));
  }
  const path = subject === undefined ? page : `${page}/${encodeURIComponent(subject)}`;
  return given.size === 0 ? `#/${path}` : `#/${path}?${given}`;
}

/** Goes there; `replace` leaves no step to go back to. */
export function go(to: string, replace = false): void {
  if (!replace) {
    location.hash = to;
    return;
  }
  history.replaceState(null, '', to);
  dispatchEvent(new HashChangeEvent('hashchange'));
}

/** The place, as it changes. */
export function usePlace(): Place {
  const [place, setPlace] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setPlace(parse(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return place;
}
