/** What just happened? */

import { link, type Place } from '../router.js';
import { many, words } from '../format.js';
import { hasToken, lackOf } from '../api.js';
import { type Happened, TYPES, useConnection, useEvents } from '../live.js';
import {
  Badge,
  Card,
  type Column,
  Empty,
  Fault,
  Page,
  SessionLink,
  Table,
  Time,
  type Tone,
  ToolLink,
  Waiting,
} from '../ui.js';

/** Rows that are drawn. */
const SHOWN = 300;

export function Events({ place }: { place: Place }) {
  const connection = useConnection();
  return (
    <Page title="Events" lead="The last thousand that the daemon keeps, and what happens from now on.">
      {connection === 'forbidden' ? (
        <Fault error={new Error(hasToken() ? lackOf('read') : 'The daemon refuses this page.')} />
      ) : (
        <Told place={place} isTold={connection === 'live'} />
      )}
    </Page>
  );
}

/** What was told; `isTold` says whether that is all there is. */
function Told({ place, isTold }: { place: Place; isTold: boolean }) {
  const chosen = (place.query.get('types') ?? '').split(',').filter((type) => TYPES.includes(type));
  const all = useEvents();
  const counts = new Map<string, number>();
  for (const event of all) counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
  const events = chosen.length === 0 ? all : all.filter((event) => chosen.includes(event.type));
  const rows = events.slice(-SHOWN).reverse();
  const missed = all
    .filter((event) => event.type === 'missed')
    .reduce((sum, event) => sum + Number(event['missed']), 0);
  const toggled = (type: string) => {
    const next = chosen.includes(type) ? chosen.filter((other) => other !== type) : [...chosen, type];
    return link('events', undefined, { types: next.join(',') });
  };
  const columns: Column<Happened>[] = [
    { head: 'When', cell: (event) => (event.at === undefined ? '–' : <Time at={event.at} />), class: 'nowrap' },
    { head: 'What', cell: (event) => <Badge tone={toneOf(event)}>{words(event.type)}</Badge> },
    { head: 'Of what', cell: (event) => <Subject event={event} /> },
    { head: 'How', cell: (event) => detail(event), class: 'wide', isExtra: true },
  ];
  return (
    <>
      <nav class="chips filters-chips" aria-label="Types of events">
        <a href={link('events')} aria-current={chosen.length === 0 ? 'true' : undefined}>
          all <span class="count">{all.length}</span>
        </a>
        {TYPES.filter((type) => counts.has(type) || chosen.includes(type)).map((type) => (
          <a key={type} href={toggled(type)} aria-current={chosen.includes(type) ? 'true' : undefined}>
            {words(type)} <span class="count">{counts.get(type) ?? 0}</span>
          </a>
        ))}
      </nav>
      {missed > 0 && <p class="fault">This page was too slow for {many(missed, 'event')}; they are not shown.</p>}
      <Card
        title={many(events.length, 'event')}
        note={events.length > SHOWN ? `the last ${SHOWN} are shown` : 'the last first'}
      >
        {rows.length === 0 && !isTold ? (
          <Waiting />
        ) : rows.length === 0 ? (
          <Empty command="touch tool_metadata/builtin/web_search.yaml">
            Nothing of these types happened since the start. Saving a document makes an event:
          </Empty>
        ) : (
          <Table
            caption="Events"
            columns={columns}
            rows={rows}
            keyOf={(event, index) => `${event.at} ${event.type} ${events.length - index}`}
          />
        )}
      </Card>
    </>
  );
}

function text(value: unknown): string {
  if (value == null) return '';
  if (Array.isArray(value)) return value.map(text).join(', ');
  if (typeof value === 'number') return String(Number(value.toPrecision(4)));
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function toneOf(event: Happened): Tone {
  if (event.type === 'plugin_faulted' || event.type === 'plugin_update_refused' || event.type === 'missed')
    return 'bad';
  if (event.type === 'plugin_state_changed' && event['to'] !== 'ready' && event['to'] !== 'starting') return 'bad';
  if (event['outcome'] === 'rejected' || event['outcome'] === 'error' || event['taken'] === false) return 'bad';
  if (event['outcome'] === 'timeout' || event['watching'] === false || event.type === 'tool_missed') return 'warn';
  if (event.type === 'catalog_reloaded' && Number(event['errors']) > 0) return 'bad';
  return 'quiet';
}

/** What it happened to, linked to its place. */
function Subject({ event }: { event: Happened }) {
  const tool = event['tool'];
  if (typeof tool === 'string') return <ToolLink name={tool} />;
  const plugin = event['plugin'];
  if (typeof plugin === 'string')
    return (
      <a href={link('libraries')}>
        <code>{plugin}</code>
      </a>
    );
  const session = event['session_id'];
  if (typeof session === 'string') return <SessionLink id={session} />;
  switch (event.type) {
    case 'catalog_reloaded':
      return <a href={link('tools', undefined, { tab: 'diagnostics' })}>{many(Number(event['tools']), 'tool')}</a>;
    case 'memory_operated':
      return <a href={link('memory')}>{words(text(event['operation']))}</a>;
    case 'tools_suggested':
      return <a href={link('try', undefined, { tab: 'call' })}>{many(Number(event['tools']), 'tool')}</a>;
    default:
      return <>–</>;
  }
}

const TOLD = new Set(['type', 'at', 'tool', 'plugin']);

function detail(event: Happened): string {
  const fields = Object.entries(event).filter(
    ([name, value]) => !TOLD.has(name) && value != null && text(value) !== '',
  );
  return fields.map(([name, value]) => `${words(name)}: ${text(value)}`).join(' · ');
}
