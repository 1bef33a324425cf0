/** How long does it take? */

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';

import { api, type CallPoint, type CallPoints, type ExecutionItem, type KeyTiming } from '../api.js';
import { useAsk } from '../ask.js';
import { count, duration, many, modeName, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { Plot, type Point } from '../plot.js';
import { go, link, type Place } from '../router.js';
import {
  Badge,
  Bar,
  Card,
  Choice,
  type Column,
  Forecast,
  Outcome,
  Page,
  RecordSo,
  SessionLink,
  Shown,
  Table,
  Time,
} from '../ui.js';

/** Calls of the tool that are looked through for the latest ones of a mode. */
const LOOKED_THROUGH = 200;
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
              <RecordSo>No call was recorded yet. Agents record theirs so:</RecordSo>
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

function OneTool({ name, place }: { name: string; place: Place }) {
  const keys = useAsk(`timing ${name}`, (signal) => api().getTiming({ path: { name }, signal }));
  useOnEvent(['execution_recorded'], 5000, keys.again);
  const modes = keys.answer?.items ?? [];
  const asked = place.query.get('mode') ?? '';
  const key = modes.find(({ mode }) => mode === asked) ?? modes[0];
  return (
    <Page
      title={<code>{name}</code>}
      lead="Its calls over what the model said of each just before it learnt it."
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
              <OfKey key={key.mode} timing={key} />
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

function OfKey({ timing }: { timing: KeyTiming }) {
  const { tool, mode } = timing;
  const points = useAsk(`points ${tool} ${mode}`, (signal) =>
    api().listTimedCalls({ path: { name: tool }, query: { ...(mode !== '' && { mode }) }, signal }),
  );
  const calls = useAsk(`calls ${tool} ${mode}`, (signal) =>
    api().listExecutions({ query: { tool, limit: LOOKED_THROUGH }, signal }),
  );
  useOnEvent(['execution_recorded'], 5000, () => (points.again(), calls.again()));
  return (
    <Shown asked={points}>
      {(found) => (
        <Drawn timing={timing} found={found}>
          <Shown asked={calls}>
            {({ items }) => <Latest calls={items.filter((call) => isOf(call, timing)).slice(0, 8)} />}
          </Shown>
        </Drawn>
      )}
    </Shown>
  );
}

function isGivenUp({ outcome }: CallPoint): boolean {
  return outcome === 'timeout' || outcome === 'cancelled';
}

/** Did it end inside what nine in ten should? */
function isInside({ duration_ms: ms, predicted_ms: said }: CallPoint): boolean {
  return said != null && ms >= (said[0] ?? 0) && ms <= (said[4] ?? 0);
}

function Drawn({ timing, found, children }: { timing: KeyTiming; found: CallPoints; children: ComponentChildren }) {
  const { items, total, thinned } = found;
  const points = useMemo(
    () =>
      items.map((call): Point => ({
        at: call.at_ms / 1000,
        ms: call.duration_ms,
        isBad: isGivenUp(call),
        predicted: call.predicted_ms ?? undefined,
      })),
    [items],
  );
  const ended = items.filter((call) => !isGivenUp(call));
  const judged = ended.filter(({ predicted_ms: said }) => said != null);
  const without = items.filter(({ predicted_ms: said }) => said == null).length;
  const drift = driftOf(points);
  const [low, high] = timing.interval_ms;
  return (
    <>
      <Card
        title={many(total, 'call')}
        note={
          thinned
            ? `${count(items.length)} are drawn, the shortest and the longest among them`
            : 'the latest 100,000 at most'
        }
      >
        <Plot points={points} label={`${items.length} calls by time and duration, over what was forecast of each`} />
        <p class="plot-note">
          <span>
            <span class="key wide" aria-hidden="true" /> nine in ten should be inside{' '}
            <span class="key band" aria-hidden="true" /> half of them; the line is the middle
            {without > 0 && <>. What was said of {count(without)} was not kept</>}
          </span>
          <span>
            <span class="key failed" aria-hidden="true" /> given up by their callers: {items.length - ended.length}
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
        <Card title="Distribution" note="of calls that came to their end, by what is forecast now">
          <Distribution durations={ended.map((call) => call.duration_ms)} low={low} high={high} />
          {judged.length > 0 && (
            <p class="sub">
              {share(judged.filter(isInside).length / judged.length)} of {count(judged.length)} ended inside what was
              forecast of them
              {timing.recent_accuracy != null && <>, {share(timing.recent_accuracy.coverage90)} of late</>}.
            </p>
          )}
        </Card>
        <Card title="The latest">{children}</Card>
      </div>
    </>
  );
}

function Latest({ calls }: { calls: readonly ExecutionItem[] }) {
  const columns: Column<ExecutionItem>[] = [
    {
      head: 'Ended',
      cell: (call) => (
        <>
          <Time at={call.timestamp} />
          {call.session_id != null && (
            <div class="sub">
              <SessionLink id={call.session_id} />
            </div>
          )}
        </>
      ),
    },
    { head: 'Took', cell: (call) => duration(call.duration_ms ?? 0), isNumber: true },
    { head: 'Was forecast', cell: (call) => <Forecast call={call} />, isNumber: true },
    {
      head: 'Outcome',
      cell: (call) => <Outcome outcome={call.outcome} />,
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
function driftOf(points: readonly Point[]): number | undefined {
  const good = points.filter((point) => !point.isBad);
  if (good.length < 50) return undefined;
  const cut = Math.floor(good.length * 0.8);
  const ratio =
    median(good.slice(cut).map(({ ms }) => ms)) / Math.max(1, median(good.slice(0, cut).map(({ ms }) => ms)));
  return ratio > 1.5 || ratio < 0.67 ? ratio : undefined;
}

const BINS = 24;

/** A histogram over a logarithmic axis; what is inside the interval is darker. */
function Distribution({ durations, low, high }: { durations: readonly number[]; low: number; high: number }) {
  if (durations.length === 0) return <p>No call came to its end.</p>;
  const logs = durations.map((ms) => Math.log(Math.max(1, ms)));
  const least = logs.reduce((one, other) => Math.min(one, other));
  const most = logs.reduce((one, other) => Math.max(one, other)) + 1e-9;
  const width = Math.max(1e-6, (most - least) / BINS);
  const bins = Array.from({ length: BINS }, () => 0);
  for (const log of logs) {
    const bin = Math.min(BINS - 1, Math.floor((log - least) / width));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const highest = Math.max(...bins);
  const isBinInside = (bin: number) => {
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
            class={isBinInside(bin) ? 'inside' : 'outside'}
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
