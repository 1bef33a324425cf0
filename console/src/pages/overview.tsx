/** Is all well? */

import { useEffect } from 'preact/hooks';

import { api, type OverviewAnswer } from '../api.js';
import { useAsk } from '../ask.js';
import { wrongsOf as wrongsOfFleet } from '../fleet.js';
import { capital, count, duration, many, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { link } from '../router.js';
import { wrongsOf as wrongsOfServers } from '../servers.js';
import { Badge, Card, Page, RecordSo, Shown, Tile, Time, type Tone } from '../ui.js';
import { Minutes } from '../minutes.js';
import { type Wrong, Wrongs } from '../wrongs.js';

/** Share of calls inside the interval below which it is said, and calls from which on. */
const LOW_COVERAGE = 0.8;
const ENOUGH_CALLS = 30;

function wrongs({ status, store, watching, coverage, judged_calls }: OverviewAnswer): Wrong[] {
  const found: Wrong[] = [];
  const add = (tone: Tone, what: string, todo: string, href?: string) =>
    found.push({ tone, what, todo, ...(href !== undefined && { href }) });
  if (!status.ready) {
    add('bad', `Questions are not answered yet: ${status.missing.join(', ')}`, 'wait, or read the log');
  }
  if (!store.usable) {
    const why = store.trouble ?? 'the store is not there';
    add('bad', `Nothing can be stored: ${why}`, 'mend the state directory; the log says more');
  }
  if (store.missing_history) {
    const what = `What was recorded before the start is not known: ${store.missing_history}`;
    add('warn', what, 'look at the store; the log says more');
  }
  if (status.errors > 0) {
    add(
      'bad',
      many(status.errors, 'error in documents', 'errors in documents'),
      'mend the lines that are named',
      link('tools', undefined, { tab: 'diagnostics' }),
    );
  }
  if (status.stale > 0) {
    add(
      'warn',
      `${many(status.stale, 'tool is', 'tools are')} served in an earlier version`,
      'mend their documents',
      link('tools', undefined, { tab: 'diagnostics' }),
    );
  }
  const aside = status.plugins_quarantined + (status.plugins_refused ?? 0);
  if (aside > 0) {
    add(
      'bad',
      `${many(aside, 'rule library is', 'rule libraries are')} put aside or refused`,
      'see the reason',
      link('libraries'),
    );
  }
  if (!watching) {
    add(
      'warn',
      'Changes of documents are found by the poll only',
      'raise the limit of file watches',
      link('events', undefined, { types: 'watch_changed' }),
    );
  }
  if (coverage != null && judged_calls >= ENOUGH_CALLS && coverage < LOW_COVERAGE) {
    add(
      'warn',
      `${share(coverage)} of recent calls ended inside the interval that nine in ten should`,
      'look at the worst forecasts',
      link('timing'),
    );
  }
  return found;
}

function saysOfCoverage({ coverage, judged_calls: judged }: OverviewAnswer): string {
  if (coverage == null) return 'no call was judged yet';
  if (judged < ENOUGH_CALLS) return `inside the interval, of ${many(judged, 'call')} only`;
  return 'inside the interval; 90 % should be';
}

/** What goes wrong in the daemon's own words, but for what other lines tell. */
function troublesOf({ status, store }: OverviewAnswer, inFleet: readonly Wrong[]): Wrong[] {
  const database = inFleet.length > 0 ? status.database?.trouble : undefined;
  const isTold = (trouble: string) =>
    trouble === `nothing can be stored: ${store.trouble}` || (database != null && trouble.includes(`(${database})`));
  return (status.troubles ?? [])
    .filter((trouble) => !isTold(trouble))
    .map((trouble) => ({ tone: 'bad', what: capital(trouble), todo: 'mend what it names; the log says more' }));
}

const TYPES = [
  'catalog_reloaded',
  'config_reloaded',
  'tokens_loaded',
  'watch_changed',
  'presets_loaded',
  'plugin_state_changed',
  'plugin_faulted',
  'plugin_gone',
  'execution_recorded',
];

/** Between two looks at what no event tells of, in ms: the store, other daemons and MCP servers. */
const QUIET_MS = 10_000;

/** Findings that are looked through for faults. */
const FINDINGS = 1000;

export function Overview() {
  const overview = useAsk('overview', (signal) => api().getOverview({ signal }));
  const catalog = useAsk('catalog', (signal) => api().getCatalog({ query: { limit: FINDINGS }, signal }));
  const hasFleet = overview.answer?.status.database != null;
  const fleet = useAsk(`fleet ${hasFleet}`, async (signal) => (hasFleet ? api().getFleet({ signal }) : undefined));
  // A token that may not see them is told nothing of them.
  const servers = useAsk('servers', (signal) => api().listServers({ signal }));
  const placed = (wrongs: readonly Wrong[], page: string) => wrongs.map((wrong) => ({ ...wrong, href: link(page) }));
  const inFleet = fleet.answer === undefined ? [] : placed(wrongsOfFleet(fleet.answer), 'fleet');
  const ofServers = servers.answer === undefined ? [] : placed(wrongsOfServers(servers.answer), 'servers');
  useEffect(() => {
    const look = () => (overview.again(), fleet.again(), servers.again());
    const timer = setInterval(() => document.hidden || look(), QUIET_MS);
    return () => clearInterval(timer);
  }, []);
  useOnEvent(TYPES, 500, overview.again);
  useOnEvent(['config_reloaded', 'catalog_reloaded'], 500, servers.again);
  useOnEvent(['catalog_reloaded', 'presets_loaded'], 500, catalog.again);
  return (
    <Page title="Overview" lead="Is all well, and if not, what to do.">
      <Shown asked={overview}>
        {(all) => {
          const { status, store, minutes } = all;
          const bad = [...wrongs(all), ...troublesOf(all, inFleet), ...ofServers, ...inFleet];
          const last = minutes.at(-1);
          const inHour = minutes.reduce((sum, minute) => sum + minute.calls, 0);
          const errors = minutes.reduce((sum, minute) => sum + minute.errors, 0);
          const timeouts = minutes.reduce((sum, minute) => sum + minute.timeouts, 0);
          return (
            <>
              <Card class={bad.length === 0 ? 'well' : 'unwell'}>
                {bad.length === 0 ? (
                  <p class="verdict">
                    <Badge tone="good">All is well</Badge> {status.status}
                  </p>
                ) : (
                  <Wrongs wrongs={bad} />
                )}
              </Card>
              <div class="tiles">
                <Tile
                  label="Tools"
                  value={count(status.tools)}
                  note={`generation ${status.generation}`}
                  href={link('tools')}
                />
                <Tile
                  label="Documents"
                  value={many(status.errors, 'error')}
                  note={many(status.warnings, 'warning')}
                  tone={status.errors > 0 ? 'bad' : 'quiet'}
                  href={link('tools', undefined, { tab: 'diagnostics' })}
                />
                <Tile
                  label="Forecasts of late"
                  value={all.coverage == null ? '–' : share(all.coverage)}
                  note={saysOfCoverage(all)}
                  href={link('timing')}
                />
                <Tile
                  label="Calls in the last hour"
                  value={count(inHour)}
                  note={`${errors} failed, ${timeouts} timed out`}
                  href={link('events', undefined, { types: 'execution_recorded' })}
                />
                <Tile
                  label="Saved calls"
                  value={count(all.saved_calls)}
                  note="delivered after their clients had given up"
                />
                <Tile
                  label="Rule libraries"
                  value={`${status.plugins_ready} ready`}
                  note={`${status.plugins_quarantined} put aside, ${status.plugins_refused ?? 0} refused`}
                  href={link('libraries')}
                />
                <Tile
                  label="Store"
                  value={store.usable ? 'usable' : 'not usable'}
                  note={many(store.queued, 'batch waits', 'batches wait')}
                />
                <Tile label="Up" value={duration(status.uptime_seconds * 1000)} note={`version ${status.version}`} />
              </div>
              <Card
                title="Calls a minute"
                note={
                  <>
                    since <Time at={all.started_at} />, the last hour at most
                  </>
                }
              >
                {inHour === 0 ? (
                  <RecordSo>Nothing was recorded in the last hour. Agents record their calls so:</RecordSo>
                ) : (
                  <Minutes
                    minutes={minutes}
                    label={`${inHour} calls in the last hour; ${last?.calls ?? 0} in the last minute that had any`}
                  />
                )}
              </Card>
              <Card
                title="What is wrong with documents"
                note={<a href={link('tools', undefined, { tab: 'diagnostics' })}>all diagnostics</a>}
              >
                <Shown asked={catalog}>
                  {({ diagnostics, next_cursor }) => {
                    const faults = diagnostics.filter((fault) => fault.severity !== 'hint').slice(0, 5);
                    if (faults.length === 0)
                      return (
                        <p>{next_cursor == null ? 'Nothing.' : `Only hints among the first ${count(FINDINGS)}.`}</p>
                      );
                    return (
                      <ul class="plain-list" id="faults">
                        {faults.map((fault) => (
                          <li key={`${fault.file}:${fault.line}:${fault.code}:${fault.message}`}>
                            <Badge tone={fault.severity === 'error' ? 'bad' : 'warn'}>{fault.severity}</Badge>{' '}
                            <code>
                              {fault.file}:{fault.line}
                            </code>{' '}
                            {fault.message}
                          </li>
                        ))}
                      </ul>
                    );
                  }}
                </Shown>
              </Card>
            </>
          );
        }}
      </Shown>
    </Page>
  );
}
