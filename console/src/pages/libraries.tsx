/** What do the libraries do? */

import { api, type PluginItem } from '../api.js';
import { useAsk } from '../ask.js';
import { count, many } from '../format.js';
import { type Happened, useEvents, useOnEvent } from '../live.js';
import { link } from '../router.js';
import { Badge, Card, type Column, Empty, Page, Shown, Table, Time, type Tone } from '../ui.js';

const TYPES = ['plugin_state_changed', 'plugin_faulted', 'plugin_replaced', 'plugin_update_refused', 'plugin_gone'];
const TONES: Record<PluginItem['state'], Tone> = {
  starting: 'info',
  ready: 'good',
  backoff: 'warn',
  quarantined: 'bad',
  refused: 'bad',
};
/** Changes that are shown of one library. */
const SHOWN = 12;

export function Libraries() {
  const libraries = useAsk('libraries', (signal) => api().listPlugins({ signal }));
  const overview = useAsk('since', (signal) => api().getOverview({ signal }));
  useOnEvent([...TYPES, 'tools_suggested'], 1000, libraries.again);
  const changes = useEvents(TYPES);
  const proposals = useEvents(['tools_suggested']);
  return (
    <Page title="Libraries" lead="Libraries of rules, which propose what comes next.">
      <Shown asked={libraries}>
        {({ items, sandbox_available }) => (
          <>
            {!sandbox_available && items.length > 0 && (
              <p class="fault">
                <Badge tone="bad">Not confined</Badge> This kernel has no Landlock: libraries can read every file that
                the daemon can.
              </p>
            )}
            {items.length === 0 ? (
              <Card>
                <Empty
                  command={'cargo build --release --package almanac-reasoning\nalmanacd serve --plugins target/release'}
                >
                  No rule library is loaded. A directory of libraries fills this page:
                </Empty>
              </Card>
            ) : (
              items.map((library) => (
                <Library
                  key={library.id}
                  library={library}
                  changes={changes.filter((event) => event['plugin'] === library.id)}
                  since={overview.answer?.started_at}
                />
              ))
            )}
            {items.length > 0 && <Proposals events={proposals} />}
          </>
        )}
      </Shown>
    </Page>
  );
}

function Library({
  library,
  changes,
  since,
}: {
  library: PluginItem;
  changes: readonly Happened[];
  since: string | undefined;
}) {
  const { calls, last_fault: fault, latency_us: latency } = library;
  return (
    <Card title={<code>{library.id}</code>} note={[library.vendor, library.version].filter(Boolean).join(' ')}>
      <div class="fault-line">
        <Badge tone={TONES[library.state]}>{library.state}</Badge>
        <span>
          {library.name}
          {library.retry_in_seconds != null && <> Tried again in {Math.ceil(library.retry_in_seconds)} s.</>}
        </span>
      </div>
      {library.refusal != null && <p>{library.refusal}</p>}
      {library.update_refused != null && <p>Its update is not served: {library.update_refused}</p>}
      {fault != null && (
        <p>
          <Badge tone="warn">last fault</Badge> {fault.kind}, <Time at={fault.at} />: {fault.message}
        </p>
      )}
      <dl class="facts">
        <Fact name="Answered" value={count(calls.answered)} />
        <Fact name="Deadlines missed" value={count(calls.timeout)} />
        <Fact name="Failed" value={count(calls.failed + calls.fault)} />
        <Fact name="Busy or away" value={count(calls.busy + calls.unavailable)} />
        <Fact name="Restarts" value={count(library.restarts)} />
        <Fact name="Half within" value={latency == null ? '–' : `${count(latency.p50)} µs`} />
        <Fact name="99 % within" value={latency == null ? '–' : `${count(latency.p99)} µs`} />
        <Fact name="Sandbox" value={sandbox(library)} />
      </dl>
      <div class="part">
        <h3>
          Its states
          {since !== undefined && (
            <>
              {' '}
              since <Time at={since} />
            </>
          )}
        </h3>
        {changes.length === 0 ? (
          <p>No change was told.</p>
        ) : (
          <ol class="plain-list">
            {changes
              .slice(-SHOWN)
              .reverse()
              .map((event, index) => (
                <li key={`${event.at} ${index}`}>
                  <Time at={event.at} /> {says(event)}
                </li>
              ))}
          </ol>
        )}
      </div>
    </Card>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function sandbox({ sandbox, sandbox_lacks: lacks }: PluginItem): string {
  const words = [sandbox, ...(lacks ?? [])].map((word) => word.replace('_', ' '));
  return words.slice(1).length > 0 ? `${words[0]} (without ${words.slice(1).join(', ')})` : `${words[0]}`;
}

function says(event: Happened): string {
  switch (event.type) {
    case 'plugin_state_changed':
      return [`${event['from'] ?? 'found'} → ${event['to']}`, event['reason']]
        .filter((part) => part != null)
        .join(': ');
    case 'plugin_faulted':
      return `fault: ${event['fault']}`;
    case 'plugin_replaced':
      return `version ${event['version']} took over`;
    case 'plugin_update_refused':
      return `update refused: ${event['reason']}`;
    default:
      return 'removed';
  }
}

function Proposals({ events }: { events: readonly Happened[] }) {
  const rows = events.slice(-10).reverse();
  const columns: Column<Happened>[] = [
    { head: 'When', cell: (event) => <Time at={event.at} />, class: 'nowrap' },
    { head: 'Tools', cell: (event) => String(event['tools']), isNumber: true },
    { head: 'From', cell: (event) => (event['sources'] as string[]).join(', ') },
    {
      head: 'Libraries that did not answer',
      cell: (event) => String(event['degraded']),
      isNumber: true,
      isExtra: true,
    },
  ];
  return (
    <Card
      title="The last proposals"
      note={<a href={link('events', undefined, { types: 'tools_suggested' })}>{many(events.length, 'event')}</a>}
    >
      {rows.length === 0 ? (
        <p>
          Nobody asked what comes next since the start. <a href={link('try', undefined, { tab: 'call' })}>Try a call</a>
          .
        </p>
      ) : (
        <Table
          caption="Last proposals"
          columns={columns}
          rows={rows}
          keyOf={(event, index) => `${event.at} ${index}`}
        />
      )}
    </Card>
  );
}
