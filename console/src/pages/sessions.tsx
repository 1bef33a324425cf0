/** What did this session do? */

import { AlmanacError, api, type ExecutionItem, type SessionItem, type TurnItem } from '../api.js';
import { gather, useAsk } from '../ask.js';
import { count, dollars, duration, many, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { go, link, type Place } from '../router.js';
import {
  Badge,
  Card,
  Chips,
  type Column,
  Forecast,
  Outcome,
  Page,
  RecordSo,
  SessionLink,
  Shown,
  Table,
  Text,
  Tile,
  Time,
  ToolLink,
  ToolName,
} from '../ui.js';
import { useState } from 'preact/hooks';

export function Sessions({ place }: { place: Place }) {
  return place.subject === undefined ? (
    <All place={place} />
  ) : (
    <One key={place.subject} id={place.subject} most={Number(place.query.get('calls')) || CALLS} />
  );
}

/** Sessions that are listed, and calls of one that are looked at, until more are asked for. */
const SESSIONS = 100;
const CALLS = 1000;
/** Calls that are listed one by one, likewise. */
const ROWS = 200;

function All({ place }: { place: Place }) {
  const [name, setName] = useState('');
  const limit = Number(place.query.get('limit')) || SESSIONS;
  const sessions = useAsk(`sessions ${limit}`, (signal) =>
    gather(limit, (page) => api().listSessions({ query: page, signal })),
  );
  useOnEvent(['execution_recorded'], 3000, sessions.again);
  const columns: Column<SessionItem>[] = [
    {
      head: 'Session',
      cell: (row) => <SessionLink id={row.sessionId} />,
      class: 'wide',
    },
    { head: 'Calls', cell: (row) => count(row.calls), isNumber: true },
    { head: 'Failed', cell: (row) => count(row.errors), isNumber: true, isExtra: true },
    { head: 'Timed out', cell: (row) => count(row.timeouts), isNumber: true, isExtra: true },
    { head: 'First call', cell: (row) => <Time at={row.firstAt} />, class: 'nowrap', isExtra: true },
    { head: 'Last call', cell: (row) => <Time at={row.lastAt} />, class: 'nowrap' },
  ];
  return (
    <Page title="Sessions" lead="Who called what, those that called last first.">
      <form
        class="form"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== '') go(link('sessions', name.trim()));
        }}
      >
        <Text label="Open one by its name" value={name} onChange={setName} class="grow" />
        <button class="button" disabled={name.trim() === ''}>
          Open
        </button>
      </form>
      <Shown asked={sessions}>
        {({ items, nextCursor }) => (
          <Card
            title={nextCursor == null ? many(items.length, 'session') : `The latest ${many(items.length, 'session')}`}
            note={nextCursor == null ? 'among the latest 100,000 calls' : 'there are earlier ones'}
          >
            {items.length === 0 ? (
              <RecordSo session="s1">No session called a tool yet. A call with a session makes one:</RecordSo>
            ) : (
              <Table caption="Sessions" columns={columns} rows={items} keyOf={(row) => row.sessionId} />
            )}
            {nextCursor != null && (
              <p class="more">
                <a href={link('sessions', undefined, { limit: limit * 5 })}>Show more</a>
              </p>
            )}
          </Card>
        )}
      </Shown>
    </Page>
  );
}

function One({ id, most }: { id: string; most: number }) {
  const session = useAsk(`session ${id}`, (signal) =>
    api()
      .getSession({ path: { name: id }, signal })
      .catch((error: unknown) => {
        // Calls outlast what is known of a session's turns.
        if (error instanceof AlmanacError && error.code === 'unknown-session') return null;
        throw error;
      }),
  );
  const calls = useAsk(`session calls ${id} ${most}`, (signal) =>
    gather(most, (page) => api().listExecutions({ query: { session: id, ...page }, signal })),
  );
  const turns = useAsk(`session turns ${id}`, (signal) => api().listSessionTurns({ path: { name: id }, signal }));
  const isNone = session.answer === null && calls.answer?.items.length === 0 && turns.answer?.items.length === 0;
  useOnEvent(
    ['execution_recorded', 'message_qualified', 'tools_suggested'],
    1000,
    () => (session.again(), turns.again(), calls.again()),
  );
  return (
    <Page
      title={<code>{id}</code>}
      lead="A session: what it is about, what it called, and how that compares with what was forecast."
      actions={
        <a class="button" href={link('sessions')}>
          All sessions
        </a>
      }
    >
      {isNone ? (
        <p class="fault">
          There is no session <code>{id}</code>: no message, turn or call of it is known.
        </p>
      ) : (
        <>
          <Shown asked={session}>
            {(found) =>
              found === null ? null : (
                <div class="two">
                  <Card title="What it is about">
                    {found.intentContext == null ? (
                      <p>No message of it was qualified.</p>
                    ) : (
                      <>
                        <Chips items={found.intentContext.categories} label="Categories" />
                        {found.intentContext.activeIntent != null && (
                          <p class="prose">{found.intentContext.activeIntent}</p>
                        )}
                        <p class="sub">
                          confidence {share(found.intentContext.lastConfidence)},{' '}
                          {many(found.intentContext.turnsSinceUpdate, 'turn')} old
                        </p>
                      </>
                    )}
                    {found.turnTools != null && found.turnTools.length > 0 && (
                      <div class="part">
                        <h3>Called since its last message</h3>
                        <Chips items={found.turnTools} label="Called since its last message" />
                      </div>
                    )}
                  </Card>
                  {found.usage != null && (
                    <div class="tiles">
                      <Tile label="Turns" value={count(found.usage.turns)} />
                      <Tile
                        label="Tokens in"
                        value={count(found.usage.tokensIn)}
                        note={`${count(found.usage.cachedTokens)} from a cache`}
                      />
                      <Tile label="Tokens out" value={count(found.usage.tokensOut)} />
                      {found.usage.costUsd != null && <Tile label="Cost" value={dollars(found.usage.costUsd)} />}
                    </div>
                  )}
                </div>
              )
            }
          </Shown>
          <Card title="Its last turns" note="the latest first, at most 20">
            <Shown asked={turns}>{({ items }) => <Turns turns={items} />}</Shown>
          </Card>
          <Shown asked={calls}>
            {({ items, next_cursor: earlier }) =>
              items.length === 0 ? (
                <Card title="Its calls">
                  <p>No call of it was recorded.</p>
                </Card>
              ) : (
                <>
                  <Card
                    title="Its calls in time"
                    note={earlier == null ? many(items.length, 'call') : `the latest ${many(items.length, 'call')}`}
                  >
                    <Line calls={items} isCut={earlier != null} />
                    {earlier != null && (
                      <p class="more">
                        There are earlier ones. <a href={link('sessions', id, { calls: most * 2 })}>Show more</a>
                      </p>
                    )}
                  </Card>
                  <Calls calls={items} />
                </>
              )
            }
          </Shown>
        </>
      )}
    </Page>
  );
}

/** Tools with a lane of their own, those that were called most. */
const LANES = 12;
const WIDTH = 600;

/** A lane for each tool, and in it each call as a bar from its beginning to its end. */
function Line({ calls, isCut }: { calls: readonly ExecutionItem[]; isCut: boolean }) {
  const spans = calls.map((call) => {
    const end = Date.parse(call.timestamp);
    return { call, begin: end - (call.duration_ms ?? 0), end };
  });
  const first = spans.reduce((least, { begin }) => Math.min(least, begin), Infinity);
  const span = Math.max(1, spans.reduce((most, { end }) => Math.max(most, end), 0) - first);
  const x = (at: number) => ((at - first) / span) * WIDTH;
  const tools = new Map<string, typeof spans>();
  for (const one of spans) tools.set(one.call.tool_name, [...(tools.get(one.call.tool_name) ?? []), one]);
  const lanes = [...tools].sort(([, one], [, other]) => other.length - one.length);
  return (
    <figure class="line">
      <ul class="lanes">
        {lanes.slice(0, LANES).map(([tool, mine]) => (
          <li key={tool}>
            <span>
              <ToolName name={tool} /> <span class="sub-inline">{mine.length}</span>
            </span>
            <svg
              viewBox={`0 0 ${WIDTH} 16`}
              preserveAspectRatio="none"
              role="img"
              aria-label={`${many(mine.length, 'call')} of ${tool}`}
            >
              <rect class="bar-back" width={WIDTH} height="16" />
              {mine.map(({ call, begin }, index) =>
                call.predicted_ms == null ? null : (
                  <rect
                    key={`said ${index}`}
                    class="said"
                    x={x(begin + (call.predicted_ms[0] ?? 0))}
                    width={Math.max(1, x(begin + (call.predicted_ms[4] ?? 0)) - x(begin + (call.predicted_ms[0] ?? 0)))}
                    height="16"
                  />
                ),
              )}
              {mine.map(({ call, begin, end }, index) => (
                <rect
                  key={index}
                  class={call.outcome === 'success' ? 'inside' : 'failed'}
                  x={x(begin)}
                  width={Math.max(2.5, x(end) - x(begin))}
                  y="4"
                  height="8"
                >
                  <title>{`${call.duration_ms == null ? 'not known' : duration(call.duration_ms)}, ${call.outcome}`}</title>
                </rect>
              ))}
            </svg>
          </li>
        ))}
      </ul>
      <figcaption class="plot-note">
        <span>
          {lanes.length > LANES
            ? `the ${LANES} tools that were called most`
            : `from the first ${isCut ? 'of these calls' : 'call'}`}
        </span>
        <span>
          <span class="key band" aria-hidden="true" /> when nine in ten should end{' '}
          <span class="key inside" aria-hidden="true" /> succeeded <span class="key failed" aria-hidden="true" /> did
          not
        </span>
        <span>{isCut ? `the latest ${duration(span)}` : `${duration(span)} in all`}</span>
      </figcaption>
    </figure>
  );
}

function Turns({ turns }: { turns: readonly TurnItem[] }) {
  if (turns.length === 0) return <p>No message of it was qualified, or that is too long ago.</p>;
  const columns: Column<TurnItem>[] = [
    { head: 'Turn', cell: (turn) => count(turn.number), isNumber: true },
    { head: 'When', cell: (turn) => <Time at={turn.at} />, class: 'nowrap', isExtra: true },
    {
      head: 'Intent',
      cell: (turn) => (
        <>
          {turn.intent}
          <Chips items={turn.categories} label="Categories" />
        </>
      ),
      class: 'wide',
    },
    { head: 'Sure', cell: (turn) => share(turn.confidence), isNumber: true, isExtra: true },
    { head: 'Suggested, and taken', cell: (turn) => <Suggested turn={turn} /> },
  ];
  return <Table caption="Turns" columns={columns} rows={turns} keyOf={(turn) => String(turn.number)} />;
}

function Suggested({ turn: { suggested, taken } }: { turn: TurnItem }) {
  if (suggested.length === 0) return <span class="sub">nothing was suggested</span>;
  return (
    <ul class="plain-list" aria-label="Suggested">
      {suggested.map((tool) => (
        <li key={tool}>
          <ToolLink name={tool} /> {taken.includes(tool) && <Badge tone="good">taken</Badge>}
        </li>
      ))}
    </ul>
  );
}

function Calls({ calls }: { calls: readonly ExecutionItem[] }) {
  const [isWhole, setWhole] = useState(false);
  const columns: Column<ExecutionItem>[] = [
    { head: 'Ended', cell: (call) => <Time at={call.timestamp} />, class: 'nowrap' },
    {
      head: 'Tool',
      cell: (call) => (
        <>
          <ToolLink name={call.tool_name} />
          {call.mode_name != null && <div class="sub">{call.mode_name}</div>}
        </>
      ),
      class: 'wide',
    },
    { head: 'Took', cell: (call) => (call.duration_ms == null ? '–' : duration(call.duration_ms)), isNumber: true },
    { head: 'Was forecast', cell: (call) => <Forecast call={call} />, isNumber: true, isExtra: true },
    {
      head: 'Outcome',
      cell: (call) => <Outcome outcome={call.outcome} />,
    },
  ];
  const rows = isWhole ? calls : calls.slice(0, ROWS);
  return (
    <Card title="One by one" note="the last first">
      <Table caption="Calls" columns={columns} rows={rows} keyOf={(call, index) => `${call.timestamp} ${index}`} />
      {rows.length < calls.length && (
        <p class="more">
          The last {count(rows.length)} of these {count(calls.length)}.{' '}
          <button type="button" class="link" onClick={() => setWhole(true)}>
            Show the others
          </button>
        </p>
      )}
    </Card>
  );
}
