/** Is the fleet together? */

import { useEffect } from 'preact/hooks';

import { api, type FleetAnswer, type FleetDaemonItem } from '../api.js';
import { useAsk } from '../ask.js';
import { age, bytes, count, many } from '../format.js';
import { hostOf, isLate, isSpooling, shortId, wrongsOf } from '../fleet.js';
import { useOnEvent } from '../live.js';
import { Badge, Card, type Column, Empty, Page, Shown, Table, Tile, type Tone } from '../ui.js';
import { Wrongs } from '../wrongs.js';

/** Between two questions while the page is looked at, in ms: as often as daemons say how they are. */
const EVERY_MS = 5000;

const TONES: Record<string, Tone> = { alive: 'good', silent: 'bad', stopped: 'quiet', unknown: 'info' };

export function Fleet() {
  const fleet = useAsk('fleet', (signal) => api().getFleet({ signal }));
  useOnEvent([], 500, fleet.again);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || fleet.again(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <Page title="Fleet" lead="The daemons that share a database: who is there, and what each has yet to give or take.">
      <Shown asked={fleet}>{(answer) => (answer.store === 'sqlite' ? <Alone /> : <Together fleet={answer} />)}</Shown>
    </Page>
  );
}

/** How a daemon alone becomes one of several. */
function Alone() {
  return (
    <Card>
      <Empty
        command={
          'createuser almanac && createdb --owner=almanac almanac\nALMANAC_DATABASE_URL=postgres://almanac@db.example.com/almanac almanacd'
        }
      >
        This daemon is alone: all that it keeps is in its state directory. A PostgreSQL that it shares with others fills
        this page:
      </Empty>
    </Card>
  );
}

function Together({ fleet }: { fleet: FleetAnswer }) {
  const { items, total } = fleet;
  const wrongs = wrongsOf(fleet);
  return (
    <>
      <Card class={wrongs.length === 0 ? 'well' : 'unwell'}>
        {wrongs.length === 0 ? (
          <p class="verdict">
            <Badge tone="good">Together</Badge> {many(total, 'daemon')}; nothing waits, nothing was put aside
          </p>
        ) : (
          <Wrongs wrongs={wrongs} />
        )}
      </Card>
      <Figures items={items} />
      <Card
        title={many(total, 'daemon')}
        note={items.length < total ? `the ${count(items.length)} that were heard of last` : 'heard of within a week'}
      >
        <Daemons items={items} />
      </Card>
    </>
  );
}

/** All of them in a few numbers. */
function Figures({ items }: { items: readonly FleetDaemonItem[] }) {
  const inState = (state: string) => items.filter((daemon) => daemon.state === state).length;
  const states = ['silent', 'stopped', 'unknown']
    .filter((state) => inState(state) > 0)
    .map((state) => `${inState(state)} ${state}`);
  const versions = [...new Set(items.flatMap(({ version }) => version ?? []))].sort();
  const sum = (take: (daemon: FleetDaemonItem) => number | undefined) =>
    items.reduce((all, daemon) => all + (take(daemon) ?? 0), 0);
  const waiting = sum(({ database }) => database?.waiting);
  const aside = sum(({ database }) => database?.put_aside);
  const size = sum(({ database }) => database?.spooled_bytes);
  const oldest = Math.max(0, ...items.map(({ database }) => database?.oldest_seconds ?? 0));
  const behind = Math.max(0, ...items.filter(({ state }) => state === 'alive').map((it) => it.database?.behind ?? 0));
  return (
    <div class="tiles">
      <Tile
        label="Daemons alive"
        value={`${inState('alive')} of ${items.length}`}
        note={states.length === 0 ? 'none is silent' : states.join(', ')}
      />
      <Tile
        label="Versions"
        value={count(versions.length)}
        note={versions.length === 0 ? 'none was said' : versions.join(', ')}
      />
      <Tile
        label="Farthest behind"
        value={count(behind)}
        note={behind === 0 ? 'all know what the others wrote' : 'transactions of others'}
      />
      <Tile
        label="On one machine alone"
        value={many(waiting, 'record')}
        note={[
          waiting === 0 ? 'the database has all' : `${bytes(size)}, ${age(oldest * 1000)}`,
          ...(aside === 0 ? [] : [`${count(aside)} put aside`]),
        ].join('; ')}
      />
    </div>
  );
}

const COLUMNS: Column<FleetDaemonItem>[] = [
  {
    head: 'Daemon',
    cell: (daemon) => (
      <>
        <span title={`store.host: ${daemon.host}`}>{hostOf(daemon)}</span>
        <div class="sub">
          <code title={daemon.id}>{shortId(daemon)}</code>
          {daemon.self && <>, answers here</>}
        </div>
      </>
    ),
    class: 'wide',
  },
  {
    head: 'State',
    cell: ({ state, self, unseen_seconds: unseen }) => (
      <>
        <Badge tone={TONES[state] ?? 'quiet'}>{state}</Badge>
        <div class="sub">{self ? 'now' : `${age(unseen * 1000)} ago`}</div>
      </>
    ),
  },
  {
    head: 'Version',
    cell: ({ state, version, started_at: from, seen_at: to }) => (
      <>
        {version ?? 'not said'}
        {from != null && (
          <div class="sub" title={`started ${from}`}>
            {state === 'alive' ? 'up' : 'ran'} {age(Date.parse(to) - Date.parse(from))}
          </div>
        )}
      </>
    ),
    class: 'nowrap',
    isExtra: true,
  },
  {
    head: 'Behind',
    cell: (daemon) => (
      <Amount
        value={daemon.database?.behind}
        tone={isLate(daemon) ? 'warn' : undefined}
        note={(database) => `for ${age(database.followed_seconds * 1000)}`}
        daemon={daemon}
      />
    ),
    isNumber: true,
    isExtra: true,
  },
  {
    head: 'Spool',
    cell: (daemon) => (
      <Amount
        value={daemon.database?.waiting}
        tone={isSpooling(daemon) ? (daemon.state === 'alive' ? 'warn' : 'bad') : undefined}
        note={({ oldest_seconds: oldest }) => `for ${age(oldest * 1000)}`}
        daemon={daemon}
      />
    ),
    isNumber: true,
  },
  {
    head: 'Put aside',
    cell: (daemon) => (
      <Amount
        value={daemon.database?.put_aside}
        tone={(daemon.database?.put_aside ?? 0) > 0 ? 'bad' : undefined}
        daemon={daemon}
      />
    ),
    isNumber: true,
    isExtra: true,
  },
  {
    head: 'Database',
    cell: ({ database, state }) =>
      database == null ? (
        '–'
      ) : (
        <>
          <Badge tone={database.trouble != null ? 'bad' : state === 'alive' ? 'good' : 'quiet'}>
            {database.reachable ? (state === 'alive' ? 'takes all' : 'took all') : 'takes nothing'}
          </Badge>
          {database.trouble != null && <div class="sub">{database.trouble}</div>}
        </>
      ),
    class: 'wide',
    isExtra: true,
  },
];

/** A number, marked if it should not be, with what is to be said of one that is not zero. */
function Amount({
  value,
  tone,
  note,
  daemon: { database },
}: {
  value: number | undefined;
  tone: Tone | undefined;
  note?: (database: NonNullable<FleetDaemonItem['database']>) => string;
  daemon: FleetDaemonItem;
}) {
  if (value === undefined || database == null) return <>–</>;
  return (
    <>
      {tone === undefined ? count(value) : <Badge tone={tone}>{count(value)}</Badge>}
      {value > 0 && note !== undefined && <div class="sub">{note(database)}</div>}
    </>
  );
}

function Daemons({ items }: { items: readonly FleetDaemonItem[] }) {
  return <Table caption="Daemons" columns={COLUMNS} rows={items} keyOf={({ id }) => id} />;
}
