/** How long does it take? */

import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';

import { api, type CallPoints, type ExecutionItem, type KeyTiming } from '../api.js';
import { gather, useAsk } from '../ask.js';
import { count, duration, many, modeName, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { Plot } from '../plot.js';
import { driftOf, type Ended, endedOf, histogramOf, pointsOf } from '../points.js';
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

/** Tools and modes that are looked at. */
const MOST = 20_000;

function badness({ recent_accuracy, samples }: KeyTiming): number {
  return recent_accuracy == null || samples < ENOUGH ? 2 : recent_accuracy.coverage90;
}

/** Rows that are drawn. */
const SHOWN = 300;

function Keys() {
  const keys = useAsk('keys', (signal) => gather(MOST, (page) => api().listTiming({ query: page, signal })));
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
        {({ items: found }) => (
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
    api().listExecutions({
      query: { tool, limit: LOOKED_THROUGH, ...(mode.endsWith('#error') && { outcome: 'error' }) },
      signal,
    }),
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

function Drawn({ timing, found, children }: { timing: KeyTiming; found: CallPoints; children: ComponentChildren }) {
  const { items, total, thinned } = found;
  const points = useMemo(() => pointsOf(items), [items]);
  const ended = useMemo(() => endedOf(points), [points]);
  const drift = useMemo(() => driftOf(ended), [ended]);
  const { givenUp, unsaid, judged, inside } = points;
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
            {unsaid > 0 && <>. What was said of {count(unsaid)} was not kept</>}
          </span>
          <span>
            <span class="key failed" aria-hidden="true" /> given up by their callers: {givenUp}
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
          <Distribution ended={ended} low={low} high={high} />
          {judged > 0 && (
            <p class="sub">
              {share(inside / judged)} of {count(judged)} ended inside what was forecast of them
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
  if (calls.length === 0) return <p>None of these is among the tool's latest {LOOKED_THROUGH} calls.</p>;
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

const BINS = 24;

/** A histogram over a logarithmic axis; what is inside the interval is darker. */
function Distribution({ ended, low, high }: { ended: Ended; low: number; high: number }) {
  const { least, most, width, bins } = useMemo(() => histogramOf(ended, BINS), [ended]);
  if (most < least) return <p>No call came to its end.</p>;
  const highest = Math.max(...bins);
  const isBinInside = (bin: number) => {
    const middle = 10 ** (least + (bin + 0.5) * width);
    return middle >= low && middle <= high;
  };
  return (
    <figure class="histogram">
      <svg
        viewBox={`0 0 ${BINS * 10} 80`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`Durations from ${duration(10 ** least)} to ${duration(10 ** most)}`}
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
        <span>{duration(10 ** least)}</span>
        <span>
          <span class="key inside" aria-hidden="true" /> inside <span class="key outside" aria-hidden="true" /> outside
        </span>
        <span>{duration(10 ** most)}</span>
      </figcaption>
    </figure>
  );
}
