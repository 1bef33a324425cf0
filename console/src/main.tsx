/** The console: a page that looks at a daemon through its public calls. */

import './style.css';

import { type ComponentChildren, render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { api, checkToken, hasToken, sentence, useThisToken } from './api.js';
import { useAsk, whenTokenNeeded } from './ask.js';
import { listen, stopListening, useConnection, useOnEvent } from './live.js';
import { type Place, link, usePlace } from './router.js';
import { Text } from './ui.js';
import { Events } from './pages/events.js';
import { Fleet } from './pages/fleet.js';
import { Libraries } from './pages/libraries.js';
import { Map } from './pages/map.js';
import { Memory } from './pages/memory.js';
import { Overview } from './pages/overview.js';
import { Servers } from './pages/servers.js';
import { Sessions } from './pages/sessions.js';
import { Timing } from './pages/timing.js';
import { Tool } from './pages/tool.js';
import { Tools } from './pages/tools.js';
import { Try } from './pages/try.js';
import { Usage } from './pages/usage.js';

/** A page: its name in addresses, its title, and what it shows. */
interface Entry {
  name: string;
  title: string;
  show: (place: Place) => ComponentChildren;
}

const PAGES: readonly Entry[] = [
  { name: 'overview', title: 'Overview', show: () => <Overview /> },
  {
    name: 'tools',
    title: 'Tools',
    show: (place) =>
      place.subject === undefined ? <Tools place={place} /> : <Tool key={place.subject} name={place.subject} />,
  },
  { name: 'map', title: 'Map', show: (place) => <Map place={place} /> },
  { name: 'timing', title: 'Timing', show: (place) => <Timing place={place} /> },
  { name: 'try', title: 'Try', show: (place) => <Try place={place} /> },
  { name: 'sessions', title: 'Sessions', show: (place) => <Sessions place={place} /> },
  { name: 'memory', title: 'Memory', show: (place) => <Memory place={place} /> },
  { name: 'libraries', title: 'Libraries', show: () => <Libraries /> },
  { name: 'servers', title: 'Servers', show: () => <Servers /> },
  { name: 'fleet', title: 'Fleet', show: () => <Fleet /> },
  { name: 'usage', title: 'Usage', show: () => <Usage /> },
  { name: 'events', title: 'Events', show: (place) => <Events place={place} /> },
];

function Console() {
  const place = usePlace();
  const [needs, setNeeds] = useState(false);
  const [round, setRound] = useState(0);
  const main = useRef<HTMLElement>(null);
  const page = PAGES.find((entry) => entry.name === place.page);
  const servers = useAsk(`servers ${round}`, (signal) => api().listServers({ signal }));
  useOnEvent(['config_reloaded'], 500, servers.again);
  const fleet = useAsk(`fleet ${round}`, (signal) => api().getFleet({ signal }));
  // Where there are none, and nobody looks for them, they are no page.
  const isAbsent: Record<string, boolean> = {
    servers: (servers.answer?.items.length ?? 0) === 0,
    fleet: fleet.answer?.store !== 'postgresql',
  };
  const where = `${place.page}/${place.subject ?? ''}`;
  const lock = () => {
    useThisToken(undefined);
    stopListening();
    setNeeds(true);
  };
  useEffect(() => {
    whenTokenNeeded(lock);
    listen();
  }, []);
  useEffect(() => {
    document.title = `${place.subject ?? page?.title ?? 'Nothing here'} · Almanac`;
    scrollTo(0, 0);
    // Who uses a keyboard goes on at the page's beginning.
    if (where !== 'overview/') main.current?.querySelector<HTMLElement>('h1')?.focus();
  }, [where]);
  const given = () => {
    setNeeds(false);
    setRound(round + 1);
    listen();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the page
      </a>
      <div class="shell">
        <header class="side">
          <a class="brand" href={link('overview')}>
            Almanac
          </a>
          <nav aria-label="Pages">
            {PAGES.filter(({ name }) => isAbsent[name] !== true || name === place.page).map(({ name, title }) => (
              <a key={name} href={link(name)} aria-current={page?.name === name ? 'page' : undefined}>
                {title}
              </a>
            ))}
          </nav>
          <State onForget={lock} isLocked={needs} />
        </header>
        <main ref={main} id="main" tabIndex={-1}>
          {needs ? (
            <Door onGiven={given} />
          ) : (
            <div key={round}>{page === undefined ? <Nowhere name={place.page} /> : page.show(place)}</div>
          )}
        </main>
      </div>
    </>
  );
}

function State({ onForget, isLocked }: { onForget: () => void; isLocked: boolean }) {
  const connection = useConnection();
  const says = {
    connecting: 'connecting …',
    live: 'live',
    lost: 'The daemon is away; what stands here is of before.',
    silent: 'The daemon does not answer; what stands here is of before.',
    refused: 'waits for a token',
    forbidden: hasToken() ? 'This token may not read.' : 'The daemon refuses this page.',
  }[connection];
  return (
    <div class={`state ${connection}`}>
      <span role="status">
        <span class="dot" aria-hidden="true" /> {says}
      </span>
      {hasToken() && !isLocked && (
        <button type="button" class="link" onClick={onForget}>
          Forget the token
        </button>
      )}
    </div>
  );
}

/** Asks for a token. A password field, so that the browser may keep it; the page does not. */
function Door({ onGiven }: { onGiven: () => void }) {
  const [token, setToken] = useState('');
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const enter = async () => {
    setBusy(true);
    try {
      await checkToken(token.trim());
      useThisToken(token.trim());
      onGiven();
    } catch (reason) {
      setError(reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="door card">
      <h1 tabIndex={-1}>A token, please</h1>
      <p>This daemon answers only who has one. It stays in the memory of this page and is gone with it.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <input
          class="unseen"
          type="text"
          autocomplete="username"
          value="almanac"
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <Text label="Token" type="password" value={token} onChange={setToken} />
        <button class="button primary" disabled={isBusy || token.trim() === ''}>
          Enter
        </button>
      </form>
      {error !== undefined && (
        <p class="fault" role="alert">
          {sentence(error)}
        </p>
      )}
      <p class="sub">
        Tokens are made by <code>almanacd token new --name NAME --scopes read --file FILE</code>; memories need the
        scope <code>memory</code>.
      </p>
    </section>
  );
}

function Nowhere({ name }: { name: string }) {
  return (
    <section class="card">
      <h1 tabIndex={-1}>Nothing is here</h1>
      <p>
        The console has no page <code>{name}</code>. <a href={link('overview')}>The overview</a> is where to begin.
      </p>
    </section>
  );
}

const root = document.getElementById('root');
if (root !== null) render(<Console />, root);
