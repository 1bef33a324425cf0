/** How long does it take? */

import { useMemo } from 'preact/hooks';

import { api, type ExecutionItem, type KeyTiming } from '../api.js';
import { useAsk } from '../ask.js';
import { count, duration, many, modeName, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { Plot } from '../plot.js';
import { go, link, type Place } from '../router.js';
import { Badge, Bar, Card, Choice, type Column, Empty, Page, Shown, Table, Time } from '../ui.js';

/** Points that are drawn at most. */
const MAX_POINTS = 10_000;
/** Calls from which on coverage says something. */
const ENOUGH = 20;

export function Timing({ place }: { place: Place }) {
  return place.subject === undefined ? <Keys /> : <OneTool key={place.subject} name={place.subject} place={place} />;
}

/** All of them, page by page. */
async function allKeys(signal: AbortSignal): Promise<KeyTiming[]> {
  const found: KeyTiming[] = [];
  let cursor: string | undefined;
  do {
    const page = await api().listTiming({ query: { limit: 1000, ...(cursor !== undefined && { cursor }) }, signal });
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < 20_000);
  return found;
}

function badness({ recent_accuracy, samples }: KeyTiming): number {
  return recent_accuracy == null || samples < ENOUGH ? 2 : recent_accuracy.coverage90;
}

/** Rows that are drawn. */
const SHOWN = 300;

function Keys() {
  const keys = useAsk('keys', allKeys);
  useOnEvent(['execution_recorded'], 5000, keys.again);
  const columns: Column<KeyTiming>[] = [
    {
      head: 'Tool',
      cell: (key) => (
        <>
          <a href={link('timing', key.tool, { mode: key.mode })}>
            <code>{key.tool}</code>
          </a>
          <div class="sub">{modeName(key.mode)}</div>
        </>
      ),
    },
    {
      head: 'Inside the interval',
      cell: (key) =>
        key.recent_accuracy == null ? (
          '–'
        ) : (
          <Bar value={key.recent_accuracy.coverage90} label={share(key.recent_accuracy.coverage90)} />
        ),
    },
    {
      head: 'Within 20 %',
      cell: (key) => (key.recent_accuracy == null ? '–' : share(key.recent_accuracy.within_20pct)),
      isNumber: true,
      isExtra: true,
    },
    { head: 'Calls', cell: (key) => count(key.samples), isNumber: true },
    { head: 'Usually', cell: (key) => duration(key.p50_ms), isNumber: true, isExtra: true },
    { head: '9 in 10 within', cell: (key) => duration(key.p90_ms), isNumber: true, isExtra: true },
    { head: 'Confidence', cell: (key) => key.confidence, isExtra: true },
  ];
  return (
    <Page
      title="Timing"
      lead="How forecasts came true, the worst first: nine calls in ten should end inside the interval."
    >
      <Shown asked={keys}>
        {(found) => (
          <Card
            title={many(found.length, 'tool and mode', 'tools and modes')}
            {...(found.length > SHOWN && { note: `the worst ${SHOWN} are shown` })}
          >
            {found.length === 0 ? (
              <Empty
                command={`curl ${location.origin}/v1/executions -H 'content-type: application/json' \\\n  -d '{"tool_name": "web_search", "duration_ms": 1200}'`}
              >
                No call was recorded yet. Agents record theirs so:
              </Empty>
            ) : (
              <Table
                caption="Forecasts by tool and mode"
                columns={columns}
                rows={[...found].sort((one, other) => badness(one) - badness(other)).slice(0, SHOWN)}
                keyOf={(key) => `${key.tool} ${key.mode}`}
              />
            )}
          </Card>
        )}
      </Shown>
    </Page>
  );
}

interface Calls {
  items: ExecutionItem[];
  hasMore: boolean;
}

/** The latest calls of a tool, up to the number that is drawn. */
async function latestCalls(tool: string, signal: AbortSignal): Promise<Calls> {
  const items: ExecutionItem[] = [];
  let cursor: string | undefined;
  do {
    const page = await api().listExecutions({
      query: { tool, limit: 1000, ...(cursor !== undefined && { cursor }) },
      signal,
    });
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && items.length < MAX_POINTS);
  return { items: items.slice(0, MAX_POINTS), hasMore: cursor !== undefined };
}

function OneTool({ name, place }: { name: string; place: Place }) {
  const keys = useAsk(`timing ${name}`, (signal) => api().getTiming({ path: { name }, signal }));
  const calls = useAsk(`calls ${name}`, (signal) => latestCalls(name, signal));
  useOnEvent(['execution_recorded'], 5000, () => (keys.again(), calls.again()));
  const modes = keys.answer?.items ?? [];
  const asked = place.query.get('mode') ?? '';
  const key = modes.find(({ mode }) => mode === asked) ?? modes[0];
  return (
    <Page
      title={<code>{name}</code>}
      lead="Its calls over what the model says now."
      actions={
        <a class="button" href={link('tools', name)}>
          Its document
        </a>
      }
    >
      <Shown asked={keys}>
        {() =>
          key === undefined ? null : (
            <>
              {modes.length > 1 && (
                <div class="form">
                  <Choice
                    label="Mode"
                    value={key.mode}
                    options={modes.map(({ mode }) => [mode, modeName(mode)] as const)}
                    onChange={(mode) => go(link('timing', name, { mode }), true)}
                  />
                </div>
              )}
              <Shown asked={calls}>{(found) => <OneKey timing={key} calls={found} />}</Shown>
            </>
          )
        }
      </Shown>
    </Page>
  );
}

/** Is the call one of those that are learnt together? */
function isOf(call: ExecutionItem, key: KeyTiming): boolean {
  return key.mode === `${call.mode_name ?? ''}${call.outcome === 'error' ? '#error' : ''}`;
}

function OneKey({ timing, calls }: { timing: KeyTiming; calls: Calls }) {
  const mine = useMemo(
    () => calls.items.filter((call) => isOf(call, timing) && call.duration_ms != null),
    [calls, timing.mode],
  );
  const points = useMemo(
    () =>
      mine.map((call) => ({
        at: Date.parse(call.timestamp) / 1000,
        ms: call.duration_ms ?? 0,
        isBad: call.outcome === 'timeout' || call.outcome === 'cancelled',
      })),
    [mine],
  );
  const [low, high] = timing.interval_ms;
  const bad = points.filter((point) => point.isBad).length;
  const inside = points.filter(({ ms, isBad }) => !isBad && ms >= low && ms <= high).length;
  const good = points.length - bad;
  const drift = driftOf(points);
  return (
    <>
      <Card
        title={many(points.length, 'call')}
        note={calls.hasMore ? `of the latest ${count(MAX_POINTS)} of the tool; there are more` : 'all that are kept'}
      >
        <Plot
          points={points}
          band={{ low, middle: timing.p50_ms, high }}
          label={`${points.length} calls by time and duration; nine in ten should take ${duration(low)} to ${duration(high)}`}
        />
        <p class="plot-note">
          <span>
            <span class="key band" aria-hidden="true" /> nine in ten should be inside, as the model says now; the dashed
            line is the middle. What it said at the time of a call is not kept.
          </span>
          <span>
            <span class="key failed" aria-hidden="true" /> given up by their callers: {bad}
          </span>
        </p>
        {drift !== undefined && (
          <p>
            <Badge tone="warn">Drift</Badge> The last fifth of the calls took {drift.toFixed(1)} times as long as those
            before.
          </p>
        )}
      </Card>
      <div class="two">
        <Card title="Distribution" note="of calls that came to their end">
          <Distribution
            points={points.filter((point) => !point.isBad).map((point) => point.ms)}
            low={low}
            high={high}
          />
          {good > 0 && (
            <p class="sub">
              {share(inside / good)} of {count(good)} ended inside; of late{' '}
              {timing.recent_accuracy == null ? 'none was judged' : share(timing.recent_accuracy.coverage90)}, as
              forecast at the time.
            </p>
          )}
        </Card>
        <Card title="The latest">
          <Latest calls={mine.slice(0, 8)} />
        </Card>
      </div>
    </>
  );
}

function Latest({ calls }: { calls: readonly ExecutionItem[] }) {
  const columns: Column<ExecutionItem>[] = [
    { head: 'Ended', cell: (call) => <Time at={call.timestamp} />, class: 'nowrap' },
    { head: 'Took', cell: (call) => duration(call.duration_ms ?? 0), isNumber: true },
    {
      head: 'Outcome',
      cell: (call) => <Badge tone={call.outcome === 'success' ? 'good' : 'bad'}>{call.outcome}</Badge>,
    },
    {
      head: 'Session',
      cell: (call) =>
        call.session_id == null ? '–' : <a href={link('sessions', call.session_id)}>{call.session_id}</a>,
      isExtra: true,
    },
  ];
  return (
    <Table
      caption="Latest calls"
      columns={columns}
      rows={calls}
      keyOf={(call, index) => `${call.timestamp} ${index}`}
    />
  );
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}

/** How much longer the last fifth took than the others, if that is more than half again as long, or less than two thirds. */
function driftOf(points: readonly { at: number; ms: number; isBad: boolean }[]): number | undefined {
  const good = points.filter((point) => !point.isBad).sort((one, other) => one.at - other.at);
  if (good.length < 50) return undefined;
  const cut = Math.floor(good.length * 0.8);
  const ratio =
    median(good.slice(cut).map(({ ms }) => ms)) / Math.max(1, median(good.slice(0, cut).map(({ ms }) => ms)));
  return ratio > 1.5 || ratio < 0.67 ? ratio : undefined;
}

const BINS = 24;

/** A histogram over a logarithmic axis; what is inside the interval is darker. */
function Distribution({ points, low, high }: { points: readonly number[]; low: number; high: number }) {
  if (points.length === 0) return <p>No call came to its end.</p>;
  const logs = points.map((ms) => Math.log(Math.max(1, ms)));
  const least = logs.reduce((one, other) => Math.min(one, other));
  const most = logs.reduce((one, other) => Math.max(one, other)) + 1e-9;
  const width = Math.max(1e-6, (most - least) / BINS);
  const bins = Array.from({ length: BINS }, () => 0);
  for (const log of logs) {
    const bin = Math.min(BINS - 1, Math.floor((log - least) / width));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const highest = Math.max(...bins);
  const isInside = (bin: number) => {
    const middle = Math.exp(least + (bin + 0.5) * width);
    return middle >= low && middle <= high;
  };
  return (
    <figure class="histogram">
      <svg
        viewBox={`0 0 ${BINS * 10} 80`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Durations from ${duration(Math.exp(least))} to ${duration(Math.exp(most))}`}
      >
        {bins.map((number, bin) => (
          <rect
            key={bin}
            class={isInside(bin) ? 'inside' : 'outside'}
            x={bin * 10 + 1}
            width={8}
            y={80 - (number / highest) * 78}
            height={(number / highest) * 78}
          />
        ))}
      </svg>
      <figcaption class="plot-note">
        <span>{duration(Math.exp(least))}</span>
        <span>
          <span class="key inside" aria-hidden="true" /> inside <span class="key outside" aria-hidden="true" /> outside
        </span>
        <span>{duration(Math.exp(most))}</span>
      </figcaption>
    </figure>
  );
}
